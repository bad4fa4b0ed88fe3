import { copyFileSync, existsSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { type DerivedEntry, formatMessageId, getEntryText, type NewMessage } from '../../src/domain/entry.ts'
import { MemoryError } from '../../src/domain/error.ts'
import { type Key, parseKey } from '../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../src/domain/ports.ts'
import { noExpiry, type SessionChange, type SessionHead } from '../../src/domain/session.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { textAnalysis } from '../../src/stores/textAnalysis.ts'
import { isCampaign, propertyTimeoutMs, seed } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from './tempPaths.ts'

const newPath = createTempPaths()

const keys = ['a', 'a:1', 'a:2', 'a-b:1', 'b:1'].map((text) => parseKey(text))
const words = ['walrus', 'ice', 'the', 'sleeps', 'Zoë', '猫', '\u0000', 'call()', '']

/** Saves every search index, so that a reopened store starts with it. */
const open = (file: string): Store & SearchIndex => sqliteStore(file, { minSnapshotMessages: 1 })

type StorePair = {
  readonly ram: Store & SearchIndex
  disk: Store & SearchIndex
  file: string
  now: number
  /** The last commit, which a later one may repeat. It changes only after both stores have run the step. */
  last: { id: string; key: Key } | undefined
  next: { id: string; key: Key } | undefined
}
/** One step, applied to both stores; the results are compared. */
type Step = (store: Store & SearchIndex, pair: StorePair) => Promise<unknown>

const key = fc.constantFrom(...keys)
const text = fc.array(fc.constantFrom(...words), { maxLength: 6 }).map((parts) => parts.join(' '))
const ids = fc.array(
  fc.oneof(fc.integer({ min: 1, max: 12 }).map(formatMessageId), fc.constantFrom('f1', 'f2', 's1')),
  {
    maxLength: 4,
  },
)
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
  },
  { requiredKeys: ['role', 'content', 'tokens', 'lineTokens', 'tokenizer', 'weight'] },
)
const derived = fc.tuple(fc.constantFrom('f1', 'f2'), text).map(([id, value]): DerivedEntry => {
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
    stale: fc.boolean(),
    isRepeated: fc.boolean(),
    place: fc.constantFrom('end' as const, 'end' as const, 'skip' as const, 'reserve' as const, 'gap' as const),
    slot: fc.nat(20),
    ttl: fc.constantFrom(noExpiry, 50, 5_000),
  })
  .map(
    ({ key: target, append, put, drop, stale, isRepeated, place, slot, ttl }): Step =>
      async (store, pair) => {
        const head = await store.readHead(target, 0)
        const operation =
          isRepeated && pair.last !== undefined
            ? pair.last
            : { id: `op ${pair.now} ${append.length} ${put.length}`, key: target }
        pair.next = operation
        return store.commit({
          ...operation,
          at: pair.now,
          epoch: stale ? Math.max(0, head.epoch - 1) : head.epoch,
          ...(stale ? { base: head.revision - 1 } : {}),
          ...positionIn(head, place, slot),
          append: append.map((message) => ({ ...message, at: pair.now })),
          put,
          drop,
          expiresAt: ttl === noExpiry ? noExpiry : pair.now + ttl,
        })
      },
  )

const readStep = fc
  .tuple(key, fc.nat(14), fc.nat(14), fc.integer({ min: 1, max: 8 }), fc.boolean())
  .map(([target, after, before, limit, newest]): Step => {
    return async (store) => [
      await store.readHead(target, limit),
      await store.readMessages(target, { after, before: before + 1, limit, newest }),
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
  .tuple(fc.constantFrom(undefined, 'a', 'b'), fc.constantFrom('', 'a', 'a:1', 'a-b:1'), fc.boolean())
  .map(([scope, after, expired]): Step => {
    return (store, { now }) =>
      store.list({ ...(scope === undefined ? {} : { scope }), ...(expired ? { expiredBy: now } : {}), after, limit: 3 })
  })
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
    { weight: 6, arbitrary: commitStep },
    { weight: 2, arbitrary: readStep },
    { weight: 2, arbitrary: searchStep },
    { weight: 1, arbitrary: embedStep },
    { weight: 1, arbitrary: eraseStep },
    { weight: 1, arbitrary: listStep },
    { weight: 2, arbitrary: clockStep },
    { weight: 1, arbitrary: fc.constantFrom('reopen' as const, 'crash' as const) },
  ),
  { maxLength: 30 },
)

async function outcomeOf(step: Step, store: Store & SearchIndex, pair: StorePair): Promise<string> {
  try {
    return canonicalJson(await step(store, pair))
  } catch (error) {
    if (error instanceof MemoryError) return `${error.code}: ${error.message}`
    throw error
  }
}

const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )

/** Copies the file and its log as they are now and opens the copy, as after a killed process. */
async function simulateCrash(pair: StorePair): Promise<void> {
  const copy = newPath()
  for (const suffix of ['', '-wal']) if (existsSync(pair.file + suffix)) copyFileSync(pair.file + suffix, copy + suffix)
  await pair.disk.close()
  pair.file = copy
  pair.disk = open(copy)
}

describe('ramStore and sqliteStore', () => {
  verifies(
    'X-07',
    'return the same bytes after any steps, including reopening, crashes, erasures and clock jumps',
    async () => {
      await fc.assert(
        fc.asyncProperty(steps, async (run) => {
          const file = newPath()
          const pair: StorePair = {
            ram: ramStore({ analysis: textAnalysis }),
            disk: open(file),
            file,
            now: 1_000,
            last: undefined,
            next: undefined,
          }
          try {
            for (const step of run) {
              if (typeof step === 'number') pair.now += step
              else if (step === 'crash') await simulateCrash(pair)
              else if (step === 'reopen') {
                await pair.disk.close()
                pair.disk = open(pair.file)
              } else {
                expect(await outcomeOf(step, pair.disk, pair)).toBe(await outcomeOf(step, pair.ram, pair))
                pair.last = pair.next
              }
            }
            for (const target of keys) {
              const readAll: Step = async (store) => [
                await store.readHead(target, 99),
                await store.readMessages(target, { limit: 999 }),
                await store.changesSince(target, 0).then(({ sessions }) => sessions),
              ]
              expect(await outcomeOf(readAll, pair.disk, pair)).toBe(await outcomeOf(readAll, pair.ram, pair))
            }
          } finally {
            await pair.disk.close()
          }
        }),
        { numRuns: isCampaign ? 2_000 : 40, seed, interruptAfterTimeLimit: propertyTimeoutMs },
      )
    },
  )
})
