import fc from 'fast-check'
import { wellFormed } from '../../src/domain/chat.ts'
import type { Derived, Json, Said, Source } from '../../src/domain/entry.ts'
import { messageId } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import type { Index, Store } from '../../src/domain/ports.ts'
import { never } from '../../src/domain/session.ts'
import { said as line } from '../../src/stores/conformance/fixtures.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { blank, name, text } from '../context/texts.ts'

/** One change of a session: what is said, what is derived, and which messages, by their numbers, leave. */
type Step = {
  readonly at: number
  readonly append: readonly Said[]
  readonly put: readonly Derived[]
  readonly drop: readonly number[]
}
/** How a session came to be what it is; messages in `erased` are forgotten at the end. */
export type History = {
  readonly key: string
  readonly steps: readonly Step[]
  readonly erased: readonly number[]
  readonly expiresAt: number
}

const time = fc.integer({ min: 1_700_000_000_000, max: 1_800_000_000_000 })
const price = fc.integer({ min: 0, max: 500 })
// messages are made well-formed where they come in
const odd = fc.oneof({ weight: 8, arbitrary: text }, { weight: 1, arbitrary: blank }).map(wellFormed)
const prices = {
  at: time,
  tokens: price,
  lineTokens: price,
  tokenizer: fc.constantFrom('o200k_base', 'chars-4'),
  weight: price,
}
const call = fc.record({ id: fc.constantFrom('c1', 'c2', 'ü'), name: fc.constantFrom('look', 'run'), arguments: odd })
const said: fc.Arbitrary<Said> = fc.oneof(
  fc.record(
    { ...prices, role: fc.constantFrom('user' as const, 'system' as const), content: odd, name: name.map(wellFormed) },
    { requiredKeys: ['at', 'tokens', 'lineTokens', 'tokenizer', 'weight', 'role', 'content'] },
  ),
  fc.record({
    ...prices,
    role: fc.constant('assistant' as const),
    content: odd,
    calls: fc.array(call, { minLength: 1, maxLength: 3 }),
  }),
  fc.record({ ...prices, role: fc.constant('tool' as const), content: odd, answers: fc.constantFrom('c1', 'c2', 'ü') }),
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
const number = fc.double({ noNaN: true, noDefaultInfinity: true })
const json = fc.jsonValue() as fc.Arbitrary<Json>
const derived: fc.Arbitrary<Derived> = fc.oneof(
  fc.record({
    ...base,
    kind: fc.constant('summary' as const),
    tier: fc.constantFrom('progressive' as const, 'hour' as const, 'session' as const, 'batch' as const),
    text: odd,
    covers: fc.constant([1, 3] as const),
    reach: fc.nat(999),
    version: fc.nat(9),
    by: fc.constantFrom('builtin', 'gpt'),
    lost: fc.array(fc.constant([2, 3] as const), { maxLength: 1 }),
  }),
  fc.record(
    {
      ...base,
      kind: fc.constant('fact' as const),
      field: odd,
      key: odd,
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
    category: odd,
    key: odd,
    value: json,
    confidence: number,
    usedAt: time,
  }),
  fc.record({
    ...base,
    kind: fc.constant('item' as const),
    category: fc.constantFrom('code' as const, 'file' as const, 'data' as const, 'concept' as const, 'task' as const),
    content: odd,
    importance: number,
    marked: fc.boolean(),
  }),
  fc.record({ ...base, kind: fc.constant('sealed' as const), box: fc.base64String() }),
)

const place = fc.integer({ min: 1, max: 12 })
const step: fc.Arbitrary<Step> = fc.record({
  at: time,
  append: fc.array(said, { maxLength: 5 }),
  put: fc.array(derived, { maxLength: 3 }),
  drop: fc.array(place, { maxLength: 2 }),
})
const history: fc.Arbitrary<History> = fc.record({
  key: fc.constantFrom('acme', 'acme:ann', 'acme:Bob', 'acme-x:ann', 'zeta:+1555', 'acme:a.b@c'),
  steps: fc.array(step, { minLength: 1, maxLength: 4 }),
  erased: fc.array(place, { maxLength: 3 }),
  expiresAt: fc.oneof(fc.constant(never), time),
})

/** Sessions with gaps at either end and between, tool calls, names, derived entries of all kinds and odd text. */
export const memory: fc.Arbitrary<readonly History[]> = fc.uniqueArray(history, {
  maxLength: 4,
  selector: ({ key }) => key,
})

/** Lives through the histories, in a store that is empty. */
export async function remember(store: Store, histories: readonly History[]): Promise<void> {
  for (const { key: name, steps, erased, expiresAt } of histories) {
    const key = parseKey(name)
    for (const [turn, { at, append, put, drop }] of steps.entries())
      await store.commit({ id: `step ${turn}`, key, at, epoch: 0, append, put, drop: drop.map(messageId), expiresAt })
    await store.erase(key, { entries: erased.map(messageId) })
  }
}

/** A store in RAM with these histories. */
export async function storeWith(...histories: readonly History[]): Promise<Store & Index> {
  const store = ramStore()
  await remember(store, histories)
  return store
}

/** A session in which one message after another is said, and the messages with these numbers are forgotten. */
export const talk = (
  key: string,
  contents: readonly string[],
  erased: readonly number[] = [],
  put: readonly Derived[] = [],
): History => ({
  key,
  steps: [
    { at: 1_000, append: contents.map((content) => line(content)), put: [], drop: [] },
    { at: 2_000, append: [], put, drop: [] },
  ],
  erased,
  expiresAt: never,
})
