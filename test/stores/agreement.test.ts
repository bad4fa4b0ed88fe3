import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect } from 'vitest'
import { type Derived, messageId, type Said, textOf } from '../../src/domain/entry.ts'
import { MemoryError } from '../../src/domain/error.ts'
import { type Key, parseKey } from '../../src/domain/key.ts'
import type { Index, Store } from '../../src/domain/ports.ts'
import { never } from '../../src/domain/session.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { campaign, patience, seed } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-agreement-'))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0

const keys = ['a', 'a:1', 'a:2', 'a-b:1', 'b:1'].map((text) => parseKey(text))
const words = ['walrus', 'ice', 'the', 'sleeps', 'Zoë', '猫', '\u0000', 'call()', '']

/** With every index kept in the file, so that a reopened store begins with it. */
const open = (file: string): Store & Index => sqliteStore(file, { worthKeeping: 1 })

type Both = {
  readonly ram: Store & Index
  disk: Store & Index
  file: string
  now: number
  last: { id: string; key: Key } | undefined
  next: { id: string; key: Key } | undefined
}
/** One step, done to both stores; its answers are compared. */
type Step = (store: Store & Index, both: Both) => Promise<unknown>

const key = fc.constantFrom(...keys)
const text = fc.array(fc.constantFrom(...words), { maxLength: 6 }).map((parts) => parts.join(' '))
const ids = fc.array(fc.oneof(fc.integer({ min: 1, max: 12 }).map(messageId), fc.constantFrom('f1', 'f2', 's1')), {
  maxLength: 4,
})
const said: fc.Arbitrary<Omit<Said, 'at'>> = fc.record({
  role: fc.constantFrom('user' as const, 'assistant' as const, 'system' as const),
  content: text,
  tokens: fc.nat(50),
  lineTokens: fc.nat(50),
  tokenizer: fc.constant('test'),
  weight: fc.nat(50),
})
const derived = fc.tuple(fc.constantFrom('f1', 'f2'), text).map(([id, value]): Derived => {
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

const commit = fc
  .record({
    key,
    append: fc.array(said, { maxLength: 3 }),
    put: fc.array(derived, { maxLength: 2 }),
    drop: ids,
    stale: fc.boolean(),
    again: fc.boolean(),
    skip: fc.boolean(),
    life: fc.constantFrom(never, 50, 5_000),
  })
  .map(
    ({ key: one, append, put, drop, stale, again, skip, life }): Step =>
      async (store, both) => {
        const head = await store.head(one, 0)
        const repeated =
          again && both.last !== undefined
            ? both.last
            : { id: `op ${both.now} ${append.length} ${put.length}`, key: one }
        return store.commit({
          ...repeated,
          at: both.now,
          epoch: stale ? Math.max(0, head.epoch - 1) : head.epoch,
          ...(stale ? { base: head.revision - 1 } : {}),
          ...(skip ? { from: { sequence: head.last + 3, offset: 1_000 * (head.last + 1) } } : {}),
          append: append.map((words) => ({ ...words, at: both.now })),
          put,
          drop,
          expiresAt: life === never ? never : both.now + life,
        })
      },
  )

const reading = fc
  .tuple(key, fc.nat(14), fc.nat(14), fc.integer({ min: 1, max: 8 }), fc.boolean())
  .map(([one, after, before, limit, newest]): Step => {
    return async (store) => [
      await store.head(one, limit),
      await store.page(one, { after, before: before + 1, limit, newest }),
    ]
  })
const searching = fc
  .tuple(key, text, fc.boolean(), fc.integer({ min: 1, max: 5 }))
  .map(([one, query, whole, limit]): Step => {
    return (store) => store.search(whole ? { scope: one.scope } : one, { text: query, limit })
  })
const meaning = fc
  .tuple(key, ids, fc.constantFrom('e', 'f'), fc.integer({ min: 1, max: 5 }))
  .map(([one, entries, model, limit]): Step => {
    return async (store) => {
      const { epoch } = await store.head(one, 0)
      const values = (id: string): Float32Array => Float32Array.of(id.length, id.charCodeAt(0), id.charCodeAt(1), 1)
      const kept = await store.embed(
        model,
        await Promise.all(
          entries.map(async (id) => ({ key: one, id, epoch, text: await says(store, one, id), values: values(id) })),
        ),
      )
      return [
        kept,
        await store.embedded(model),
        await store.search({ scope: one.scope }, { text: 'walrus', vector: { model, values: values('m3') }, limit }),
      ]
    }
  })
const forgetting = fc
  .tuple(key, ids, fc.constantFrom('entries', 'expired', 'all'))
  .map(([one, entries, what]): Step => {
    return (store, { now }) =>
      store.erase(one, what === 'entries' ? { entries } : what === 'expired' ? { expiredBy: now } : undefined)
  })
const listing = fc
  .tuple(fc.constantFrom(undefined, 'a', 'b'), fc.constantFrom('', 'a', 'a:1', 'a-b:1'), fc.boolean())
  .map(([scope, after, expired]): Step => {
    return (store, { now }) =>
      store.list({ ...(scope === undefined ? {} : { scope }), ...(expired ? { expiredBy: now } : {}), after, limit: 3 })
  })
/** What an entry says now, to be embedded. */
async function says(store: Store, one: Key, id: string): Promise<string> {
  const { recent, derived: known } = await store.head(one, 99)
  const entry = [...recent, ...known].find((found) => found.id === id)
  return entry === undefined ? '' : textOf(entry)
}

/** The clock goes on, or jumps, also back. */
const clock = fc.constantFrom(1, 60, 10_000, -30)
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: commit },
    { weight: 2, arbitrary: reading },
    { weight: 2, arbitrary: searching },
    { weight: 1, arbitrary: meaning },
    { weight: 1, arbitrary: forgetting },
    { weight: 1, arbitrary: listing },
    { weight: 2, arbitrary: clock },
    { weight: 1, arbitrary: fc.constantFrom('reopen' as const, 'crash' as const) },
  ),
  { maxLength: 30 },
)

async function outcome(step: Step, store: Store & Index, both: Both): Promise<string> {
  try {
    return canonical(await step(store, both))
  } catch (error) {
    if (error instanceof MemoryError) return `${error.code}: ${error.message}`
    throw error
  }
}

const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )

/** A file as it lies on the disk at this moment, log included, is opened as if the process had been killed. */
async function crashed(both: Both): Promise<void> {
  const copy = join(folder, `${++files}.db`)
  for (const end of ['', '-wal']) if (existsSync(both.file + end)) copyFileSync(both.file + end, copy + end)
  await both.disk.close()
  both.file = copy
  both.disk = open(copy)
}

describe('the RAM and the SQLite store', () => {
  verifies(
    'X-07',
    'agree byte for byte whatever is done to them, across reopening, crashes, forgetting and jumps of the clock',
    async () => {
      await fc.assert(
        fc.asyncProperty(steps, async (all) => {
          const file = join(folder, `${++files}.db`)
          const both: Both = { ram: ramStore(), disk: open(file), file, now: 1_000, last: undefined, next: undefined }
          try {
            for (const step of all) {
              if (typeof step === 'number') both.now += step
              else if (step === 'crash') await crashed(both)
              else if (step === 'reopen') {
                await both.disk.close()
                both.disk = open(both.file)
              } else {
                expect(await outcome(step, both.disk, both)).toBe(await outcome(step, both.ram, both))
                both.last = both.next
              }
            }
            for (const one of keys) {
              const whole: Step = async (store) => [
                await store.head(one, 99),
                await store.page(one, { limit: 999 }),
                await store.changes(one, 0).then(({ sessions }) => sessions),
              ]
              expect(await outcome(whole, both.disk, both)).toBe(await outcome(whole, both.ram, both))
            }
          } finally {
            await both.disk.close()
          }
        }),
        { numRuns: campaign ? 2_000 : 40, seed, interruptAfterTimeLimit: patience },
      )
    },
  )
})
