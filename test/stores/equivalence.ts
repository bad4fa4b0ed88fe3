import fc from 'fast-check'
import { expect } from 'vitest'
import {
  type DerivedEntry,
  formatMessageId,
  getEntryText,
  type Json,
  metadataId,
  type NewMessage,
} from '../../src/domain/entry.ts'
import { MemoryError } from '../../src/domain/error.ts'
import { type Key, parseKey } from '../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../src/domain/ports.ts'
import { noExpiry, type SessionChange, type SessionHead } from '../../src/domain/session.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { textAnalysis } from '../../src/stores/textAnalysis.ts'
import { isCampaign, propertyTimeoutMs, seed } from '../context/campaign.ts'

const keys = ['a', 'a:1', 'a:2', 'a-b:1', 'b:1'].map((text) => parseKey(text))
const words = ['walrus', 'ice', 'the', 'sleeps', 'Zoë', '猫', '\u0000', 'call()', '']

/** State of a run of steps. */
type Run = {
  now: number
  /** The last commit, which a later one may repeat. It changes only after both stores have run the step. */
  last: { id: string; key: Key } | undefined
  next: { id: string; key: Key } | undefined
}
/** One step, applied to both stores; the results are compared. */
type Step = (store: Store & SearchIndex, run: Run) => Promise<unknown>

const key = fc.constantFrom(...keys)
const text = fc.array(fc.constantFrom(...words), { maxLength: 6 }).map((parts) => parts.join(' '))
const ids = fc.array(
  fc.oneof(fc.integer({ min: 1, max: 12 }).map(formatMessageId), fc.constantFrom('f1', 'f2', 's1')),
  {
    maxLength: 4,
  },
)
/** Few, so that changes often repeat one. */
const externalIds = ['x', 'X', 'Zoë 1', 'id 4', 'id 5', 'id 6', 'id 7']
const message: fc.Arbitrary<Omit<NewMessage, 'at'>> = fc.record(
  {
    role: fc.constantFrom('user' as const, 'assistant' as const, 'system' as const),
    content: text,
    tokens: fc.nat(50),
    lineTokens: fc.nat(50),
    tokenizer: fc.constant('test'),
    weight: fc.nat(50),
    packedPayload: fc.constantFrom('{"protocol":"chat","items":["Zoë"]}', '{}'),
    branch: fc.integer({ min: 1, max: 9 }),
    externalId: fc.constantFrom(...externalIds),
  },
  { requiredKeys: ['role', 'content', 'tokens', 'lineTokens', 'tokenizer', 'weight'] },
)
const metadataFields = fc.dictionary(
  fc.constantFrom('channel', 'open', '\u0000'),
  fc.constantFrom('web', '1', 1, true, null),
)
const about = fc.oneof(metadataFields, fc.constant('web'), fc.constant(null)).map((metadata): DerivedEntry => {
  return { kind: 'about', id: metadataId, at: 7, metadata, sources: [] }
})
const fact = fc.tuple(fc.constantFrom('f1', 'f2'), text).map(([id, value]): DerivedEntry => {
  return {
    kind: 'fact',
    id,
    at: 7,
    field: 'important_facts',
    key: '',
    value,
    importance: 1,
    sources: [{ message: 'm1' }],
  }
})

const derived = fc.oneof({ weight: 3, arbitrary: fact }, { weight: 1, arbitrary: about })

/** Position after the end, inside a gap, or, without a gap, at a number that may be taken. */
function positionIn(
  { lastSequence, gaps }: SessionHead,
  place: 'end' | 'skip' | 'reserve' | 'gap',
  slot: number,
): Pick<SessionChange, 'from'> {
  if (place === 'end') return {}
  if (place === 'skip') return { from: { sequence: lastSequence + 3, offset: 1_000 * (lastSequence + 1) } }
  if (place === 'reserve') return { from: { sequence: lastSequence + 1 + (slot % 4) } }
  const [first, last] = gaps[slot % Math.max(1, gaps.length)] ?? [slot, slot]
  return { from: { sequence: first + (slot % (last - first + 1)) } }
}

const commitStep = fc
  .record({
    key,
    append: fc.array(message, { maxLength: 3 }),
    put: fc.array(derived, { maxLength: 2 }),
    drop: ids,
    /** Sequence numbers of messages to replace. */
    replace: fc.array(fc.tuple(fc.integer({ min: 1, max: 6 }), message), { maxLength: 2 }),
    stale: fc.boolean(),
    isRepeated: fc.boolean(),
    place: fc.constantFrom('end' as const, 'end' as const, 'skip' as const, 'reserve' as const, 'gap' as const),
    slot: fc.nat(20),
    ttl: fc.constantFrom(noExpiry, 50, 5_000),
  })
  .map(
    ({ key: target, append, put, drop, replace, stale, isRepeated, place, slot, ttl }): Step =>
      async (store, run) => {
        const head = await store.readHead(target, 0)
        const operation =
          isRepeated && run.last !== undefined
            ? run.last
            : { id: `op ${run.now} ${append.length} ${put.length}`, key: target }
        run.next = operation
        return store.commit({
          ...operation,
          at: run.now,
          epoch: stale ? Math.max(0, head.epoch - 1) : head.epoch,
          ...(stale ? { base: head.revision - 1 } : replace.length > 0 ? { base: head.revision } : {}),
          ...(replace.length > 0 && {
            replace: replace.map(([sequence, message]) => ({
              id: formatMessageId(sequence),
              message: { ...message, at: run.now },
            })),
          }),
          ...positionIn(head, place, slot),
          append: append.map((message) => ({ ...message, at: run.now })),
          put,
          drop,
          expiresAt: ttl === noExpiry ? noExpiry : run.now + ttl,
        })
      },
  )

const readStep = fc
  .tuple(key, fc.nat(14), fc.nat(14), fc.integer({ min: 1, max: 8 }), fc.boolean())
  .map(([target, after, before, limit, newest]): Step => {
    return async (store) => [
      await store.readHead(target, limit),
      await store.readMessages(target, { after, before: before + 1, limit, newest }),
      await store.findMessages(target, externalIds.slice(0, limit)),
    ]
  })
const searchStep = fc
  .tuple(key, text, fc.boolean(), fc.integer({ min: 1, max: 5 }))
  .map(([target, query, wholeScope, limit]): Step => {
    return (store) => store.search(wholeScope ? { scope: target.scope } : target, { text: query, limit })
  })
const embedStep = fc
  .tuple(key, ids, fc.constantFrom('e', 'f'), fc.integer({ min: 1, max: 5 }))
  .map(([target, entries, model, limit]): Step => {
    return async (store) => {
      const { epoch } = await store.readHead(target, 0)
      const values = (id: string): Float32Array => Float32Array.of(id.length, id.charCodeAt(0), id.charCodeAt(1), 1)
      const stored = await store.storeVectors(
        model,
        await Promise.all(
          entries.map(async (id) => ({
            key: target,
            id,
            epoch,
            text: await readText(store, target, id),
            values: values(id),
          })),
        ),
      )
      return [
        stored,
        await store.countVectors(model),
        await store.search({ scope: target.scope }, { text: 'walrus', vector: { model, values: values('m3') }, limit }),
      ]
    }
  })
const eraseStep = fc
  .tuple(key, ids, fc.constantFrom('entries', 'expired', 'all'))
  .map(([target, entries, what]): Step => {
    return (store, { now }) =>
      store.erase(target, what === 'entries' ? { entries } : what === 'expired' ? { expiredBy: now } : undefined)
  })
const listStep = fc
  .tuple(
    fc.constantFrom(undefined, 'a', 'b'),
    fc.constantFrom('', 'a', 'a:1', 'a-b:1'),
    fc.boolean(),
    fc.option(metadataFields, { nil: undefined }),
  )
  .map(([scope, after, expired, metadata]): Step => {
    return (store, { now }) =>
      store.list({
        ...(scope === undefined ? {} : { scope }),
        ...(expired ? { expiredBy: now } : {}),
        ...(metadata === undefined ? {} : { metadata }),
        after,
        limit: 3,
      })
  })
const scopeName = fc.constantFrom('a', 'a-b', 'b')
const namePart = fc.constantFrom('a', 'b', 'ab', '\u0001', 'Zoë', '\u{1f642}', '\ufb01', '\ud800')
const tableKey = fc.record({ namespace: fc.array(namePart, { maxLength: 2 }), key: namePart })
const tableWrite = fc.tuple(
  tableKey,
  fc.oneof(fc.constant(undefined), fc.jsonValue() as fc.Arbitrary<Json>, fc.uint8Array({ maxLength: 9 })),
  fc.option(fc.nat(3), { nil: undefined }),
)
const writeRowsStep = fc.tuple(scopeName, fc.array(tableWrite, { maxLength: 4 })).map(([scope, writes]): Step => {
  return (store, { now }) =>
    store.table.writeRows(
      scope,
      now,
      writes.map(([name, value, expected]) => ({ ...name, value, ...(expected !== undefined && { expected }) })),
    )
})
const readRowsStep = fc
  .tuple(scopeName, fc.array(tableKey, { maxLength: 3 }), fc.array(namePart, { maxLength: 2 }), fc.nat(5))
  .map(([scope, names, prefix, limit]): Step => {
    return async ({ table }) => [
      await table.readRows(scope, names),
      await table.listRows(scope, { prefix, limit, ...(names[0] && { after: names[0] }) }),
      await table.listScopes('', limit),
    ]
  })
const eraseRowsStep = scopeName.map(
  (scope): Step =>
    ({ table }) =>
      table.eraseRows(scope),
)
/** Reads the current text of an entry; empty if it does not exist. */
async function readText(store: Store, target: Key, id: string): Promise<string> {
  const { recent, derived: known } = await store.readHead(target, 99)
  const entry = [...recent, ...known].find((found) => found.id === id)
  return entry === undefined ? '' : getEntryText(entry)
}

/** Milliseconds by which the clock advances, or goes back. */
const clockStep = fc.constantFrom(1, 60, 10_000, -30)
const steps = fc.array(
  fc.oneof(
    { weight: 60, arbitrary: commitStep },
    { weight: 20, arbitrary: readStep },
    { weight: 20, arbitrary: searchStep },
    { weight: 10, arbitrary: embedStep },
    { weight: 10, arbitrary: eraseStep },
    { weight: 10, arbitrary: listStep },
    { weight: 30, arbitrary: writeRowsStep },
    { weight: 20, arbitrary: readRowsStep },
    { weight: 3, arbitrary: eraseRowsStep },
    { weight: 20, arbitrary: clockStep },
    { weight: 10, arbitrary: fc.constantFrom('reopen' as const, 'crash' as const) },
  ),
  { maxLength: 30 },
)

async function outcomeOf(step: Step, store: Store & SearchIndex, run: Run): Promise<string> {
  try {
    return canonicalJson(await step(store, run))
  } catch (error) {
    if (error instanceof MemoryError) return `${error.code}: ${error.message}`
    throw error
  }
}

export const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )

/** A store that is compared with `ramStore`. */
export type ComparedStore = {
  readonly store: Store & SearchIndex
  /** Closes the store and opens it again, after a normal end or as after a killed process. */
  reopen(how: 'reopen' | 'crash'): Promise<void>
  close(): Promise<void>
}

/** Runs random steps on `ramStore` and on new stores, and compares every result byte for byte. */
export async function expectSameAsRam(open: () => Promise<ComparedStore>, runs: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const ram = ramStore({ analysis: textAnalysis })
      const other = await open()
      const run: Run = { now: 1_000, last: undefined, next: undefined }
      const expectSame = async (step: Step): Promise<void> =>
        expect(await outcomeOf(step, other.store, run)).toBe(await outcomeOf(step, ram, run))
      try {
        for (const step of list) {
          if (typeof step === 'number') run.now += step
          else if (typeof step === 'string') await other.reopen(step)
          else {
            await expectSame(step)
            run.last = run.next
          }
        }
        for (const target of keys)
          await expectSame(async (store) => [
            await store.readHead(target, 99),
            await store.readMessages(target, { limit: 999 }),
            await store.changesSince(target, 0).then(({ sessions }) => sessions),
            await store.table.listRows(target.scope, { prefix: [], limit: 99 }),
          ])
      } finally {
        await other.close()
      }
    }),
    { numRuns: isCampaign ? 2_000 : runs, seed, interruptAfterTimeLimit: propertyTimeoutMs },
  )
}
