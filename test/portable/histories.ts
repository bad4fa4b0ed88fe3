import fc from 'fast-check'
import { replaceLoneSurrogates } from '../../src/domain/chat.ts'
import type { DerivedEntry, Fact, Json, NewMessage, Source } from '../../src/domain/entry.ts'
import { formatMessageId } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import type { SearchIndex, Store, TableWrite } from '../../src/domain/ports.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { newMessage as line } from '../../src/stores/conformance/fixtures.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { arbitraryName, arbitraryText, blankText } from '../context/arbitraryText.ts'

/** One commit to a session; `drop` are the sequence numbers of dropped messages. */
type Step = {
  readonly at: number
  readonly append: readonly NewMessage[]
  readonly put: readonly DerivedEntry[]
  readonly drop: readonly number[]
  /** Sequence numbers to reserve before the messages, and a reply that is stored in the first gap afterwards. */
  readonly reserve?: number
  readonly reply?: NewMessage
  /** Replaces the newest message after the commit. */
  readonly replacement?: NewMessage
}
/** The commits of a session, and rows of its scope; the messages in `erased` are erased at the end. */
export type History = {
  readonly key: string
  readonly steps: readonly Step[]
  readonly erased: readonly number[]
  readonly expiresAt: number
  readonly rows?: readonly (TableWrite & { readonly at: number })[]
}

const time = fc.integer({ min: 1_700_000_000_000, max: 1_800_000_000_000 })
const tokenCount = fc.integer({ min: 0, max: 500 })
// Messages are made well-formed when they are parsed.
const oddText = fc
  .oneof({ weight: 8, arbitrary: arbitraryText }, { weight: 1, arbitrary: blankText })
  .map(replaceLoneSurrogates)
const tokenFields = {
  at: time,
  tokens: tokenCount,
  lineTokens: tokenCount,
  // Counts of built-in tokenizers are computed again by an import.
  tokenizer: fc.constantFrom('test', 'other'),
  weight: tokenCount,
}
const optionalFields = {
  packedPayload: oddText.map((text) => JSON.stringify({ protocol: 'chat', items: [text] })),
  branch: fc.integer({ min: 1, max: 9 }),
  externalId: fc.constant('ü'),
}
const requiredKeys = ['at', 'tokens', 'lineTokens', 'tokenizer', 'weight', 'role', 'content'] as const
const call = fc.record({
  id: fc.constantFrom('c1', 'c2', 'ü'),
  name: fc.constantFrom('look', 'run'),
  arguments: oddText,
})
const message: fc.Arbitrary<NewMessage> = fc.oneof(
  fc.record(
    {
      ...tokenFields,
      ...optionalFields,
      role: fc.constantFrom('user' as const, 'system' as const),
      content: oddText,
      name: arbitraryName.map(replaceLoneSurrogates),
    },
    { requiredKeys: [...requiredKeys] },
  ),
  fc.record(
    {
      ...tokenFields,
      ...optionalFields,
      role: fc.constant('assistant' as const),
      content: oddText,
      toolCalls: fc.array(call, { minLength: 1, maxLength: 3 }),
    },
    { requiredKeys: [...requiredKeys, 'toolCalls'] },
  ),
  fc.record(
    {
      ...tokenFields,
      ...optionalFields,
      role: fc.constant('tool' as const),
      content: oddText,
      toolCallId: fc.constantFrom('c1', 'c2', 'ü'),
    },
    { requiredKeys: [...requiredKeys, 'toolCallId'] },
  ),
)

const source: fc.Arbitrary<Source> = fc.record(
  { message: fc.constantFrom('m1', 'm2'), session: fc.constantFrom('bob'), span: fc.constant([0, 4] as const) },
  { requiredKeys: ['message'] },
)
const base = {
  id: fc.constantFrom('a', 'b', 'Z', '10', '9', 'ü', '\u{1f642}', 'a b'),
  at: time,
  sources: fc.array(source, { maxLength: 2 }),
}
const number = fc.double({ noNaN: true, min: 0, max: 1 })
const json = fc.jsonValue() as fc.Arbitrary<Json>
const derived: fc.Arbitrary<DerivedEntry> = fc.oneof(
  fc.record({
    ...base,
    kind: fc.constant('summary' as const),
    tier: fc.constantFrom('progressive' as const, 'hour' as const, 'session' as const, 'batch' as const),
    text: oddText,
    covers: fc.constant([0, 0] as const),
    endOffset: fc.nat(999),
    version: fc.nat(9),
    by: fc.constantFrom('builtin', 'gpt'),
    lossyRanges: fc.array(fc.constant([0, 0] as const), { maxLength: 1 }),
  }),
  fc.record(
    {
      ...base,
      kind: fc.constant('fact' as const),
      field: oddText,
      key: oddText,
      value: json,
      importance: number,
      supersedes: fc.constant('a'),
      until: time,
    },
    { requiredKeys: ['id', 'at', 'sources', 'kind', 'field', 'key', 'value', 'importance'] },
  ),
  fc.record({
    ...base,
    kind: fc.constant('knowledge' as const),
    category: oddText,
    key: oddText,
    value: json,
    confidence: number,
    usedAt: time,
  }),
  fc.record({
    ...base,
    kind: fc.constant('item' as const),
    category: fc.constantFrom('code' as const, 'file' as const, 'data' as const, 'concept' as const, 'task' as const),
    content: oddText,
    importance: number,
    marked: fc.boolean(),
  }),
  fc.record({ ...base, kind: fc.constant('encrypted' as const), ciphertext: fc.base64String() }),
)

const sequence = fc.integer({ min: 1, max: 12 })
const step: fc.Arbitrary<Step> = fc.record(
  {
    at: time,
    append: fc.array(message, { maxLength: 5 }),
    put: fc.array(derived, { maxLength: 3 }),
    drop: fc.array(sequence, { maxLength: 2 }),
    reserve: fc.integer({ min: 0, max: 2 }),
    reply: message,
    replacement: message,
  },
  { requiredKeys: ['at', 'append', 'put', 'drop'] },
)
const nameText = fc
  .array(fc.constantFrom('a', 'b', '!', 'Zoë', '\u{1f642}', '\ufb01', '\ud800', '\uffff'), {
    minLength: 1,
    maxLength: 3,
  })
  .map((parts) => parts.join(''))
const tableWrite = fc.record({
  at: time,
  namespace: fc.array(nameText, { maxLength: 3 }),
  key: nameText,
  value: fc.oneof(json, fc.uint8Array({ maxLength: 40 }), fc.constant(undefined)),
})
const history: fc.Arbitrary<History> = fc.record({
  key: fc.constantFrom('acme', 'acme:ann', 'acme:Bob', 'acme-x:ann', 'zeta:+1555', 'acme:a.b@c'),
  steps: fc.array(step, { minLength: 1, maxLength: 4 }),
  erased: fc.array(sequence, { maxLength: 3 }),
  expiresAt: fc.oneof(fc.constant(noExpiry), time),
  rows: fc.array(tableWrite, { maxLength: 5 }),
})

/** Generates sessions with gaps, tool calls, names, replaced messages, derived entries of all kinds, rows and odd text. */
export const historiesArbitrary: fc.Arbitrary<readonly History[]> = fc.uniqueArray(history, {
  maxLength: 4,
  selector: ({ key }) => key,
})

const unnamed = ({ externalId: _, ...message }: NewMessage): NewMessage => message

/** Applies the histories to an empty store. */
export async function applyHistories(store: Store, histories: readonly History[]): Promise<void> {
  for (const { key: name, steps, erased, expiresAt, rows = [] } of histories) {
    const key = parseKey(name)
    for (const { at, ...write } of rows) await store.table.writeRows(key.scope, at, [write])
    for (const [index, { at, append, put, drop, reserve, reply, replacement }] of steps.entries()) {
      const change = { key, at, epoch: 0, append: [], put: [], drop: [], expiresAt }
      const { lastSequence } = await store.readHead(key, 0)
      const from = reserve === undefined ? {} : { from: { sequence: lastSequence + 1 + reserve } }
      const named = append.map((message, position) =>
        message.externalId === undefined ? message : { ...message, externalId: `ü ${index} ${position}` },
      )
      await store.commit({
        ...change,
        ...from,
        id: `step ${index}`,
        append: named,
        put,
        drop: drop.map(formatMessageId),
      })
      const [gap] = (await store.readHead(key, 0)).gaps
      if (reply !== undefined && gap !== undefined)
        await store.commit({ ...change, id: `reply ${index}`, append: [unnamed(reply)], from: { sequence: gap[1] } })
      if (replacement === undefined) continue
      const { revision, recent } = await store.readHead(key, 1)
      const replace = recent.map(({ id }) => ({ id, message: { ...replacement, externalId: `replaced ${index}` } }))
      await store.commit({ ...change, id: `replace ${index}`, base: revision, replace })
    }
    await store.erase(key, { entries: erased.map(formatMessageId) })
  }
}

/** Creates a store in RAM with these histories. */
export async function createStoreWith(...histories: readonly History[]): Promise<Store & SearchIndex> {
  const store = ramStore()
  await applyHistories(store, histories)
  return store
}

/** Creates a history with these messages, of which the `erased` sequence numbers are erased at the end. */
export const conversation = (
  key: string,
  contents: readonly string[],
  erased: readonly number[] = [],
  put: readonly DerivedEntry[] = [],
): History => ({
  key,
  steps: [
    { at: 1_000, append: contents.map((content) => line(content)), put: [], drop: [] },
    { at: 2_000, append: [], put, drop: [] },
  ],
  erased,
  expiresAt: noExpiry,
})

/** A fact without sources. */
export const fact: Fact = {
  kind: 'fact',
  id: 'f1',
  at: 5,
  field: 'key_decisions',
  key: '',
  value: 'x',
  importance: 5,
  sources: [],
}
