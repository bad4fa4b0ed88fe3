import { describe, expect } from 'vitest'
import type { Notes } from '../../src/domain/entry.ts'
import { type Key, parseKey } from '../../src/domain/key.ts'
import type { Model, Store } from '../../src/domain/ports.ts'
import type { Profile } from '../../src/domain/profile.ts'
import { type Incoming, type Memory, openMemory, profiles, ramStore, upkeepWith } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'

const key = 'acme:ann'
const hour = 3_600_000
const start = Date.UTC(2026, 2, 2, 9)

/** Some hundred and twenty tokens. */
const turn = (number: number): Incoming => ({
  role: number % 2 === 1 ? 'user' : 'assistant',
  content: `Turn ${number}. ${`We talked about Berlin and the harbour number ${number}. `.repeat(11)}`,
})
const turns = (from: number, to: number): Incoming[] =>
  Array.from({ length: to - from + 1 }, (_, at) => turn(from + at))

/** One message after the other, as somebody says them who waits for a context before each reply. */
async function talk(memory: Memory, from: number, to: number): Promise<void> {
  for (const message of turns(from, to)) {
    await memory.append(key, [message])
    await memory.context(key)
  }
  await memory.upkeep.settled()
}

/** How many messages there are, and how many of them the summaries reach. */
async function reach(memory: Memory): Promise<readonly [messages: number, summed: number]> {
  const covers = (await memory.upkeep.summaries(key)).map(({ covers: [, last] }) => last)
  return [(await memory.transcript(key)).length, Math.max(0, ...covers)]
}

/** A model that fails at once: the built-in rules take over, but the session was leased for it. */
const down: Model = {
  name: 'down',
  // biome-ignore lint/correctness/useYield: it never comes to that
  async *reply() {
    throw new Error('down')
  },
}
/** A model that never answers. */
const silent: Model = {
  name: 'silent',
  async *reply(_, signal) {
    await new Promise((_, refuse) => signal?.addEventListener('abort', () => refuse(signal.reason)))
  },
}

const notesIn = async (store: Store): Promise<Notes | undefined> =>
  (await store.head(parseKey(key), 0)).derived.find((entry) => entry.kind === 'notes')

async function put(store: Store, notes: Partial<Notes>): Promise<void> {
  const { key: of, epoch, revision: base, expiresAt } = await store.head(parseKey(key), 0)
  const entry: Notes = { kind: 'notes', id: 'notes', at: start, sources: [], ...notes }
  await store.commit({ key: of, at: start, epoch, base, append: [], put: [entry], drop: [], expiresAt })
}

describe('a lease', () => {
  for (const [whose, ahead, summed] of [
    ['of somebody who may still be at work', 60_000, false],
    ['that is over', 0, true],
    ['from a clock that is a year ahead', 365 * 24 * hour, true],
  ] as const)
    verifies('C-12', `${whose} is ${summed ? 'not waited for' : 'waited for'}`, async () => {
      const store = ramStore()
      await using memory = await openMemory({ profile: 'summary', store, model: down, clock: () => start })
      await memory.append(key, [turn(1)])
      await memory.upkeep.settled()
      await put(store, { lease: { holder: 'somebody else', until: start + ahead } })
      await talk(memory, 2, 60)
      expect((await memory.upkeep.summaries(key)).length > 0).toBe(summed)
      expect((await notesIn(store))?.lease?.holder).toBe(summed ? undefined : 'somebody else')
    })

  verifies('C-11', 'is not left behind by a step that fails, and the next one goes well', async () => {
    const ram = ramStore()
    const disk = { isBroken: true }
    const store: typeof ram = {
      ...ram,
      page: async (...asked) => (disk.isBroken ? Promise.reject(new Error('disk')) : ram.page(...asked)),
    }
    await using memory = await openMemory({ profile: 'summary', store, model: down, clock: () => start })
    await memory.append(key, turns(1, 40))
    await memory.upkeep.settled()
    expect([memory.health().degraded, (await notesIn(ram))?.lease]).toEqual([
      [{ step: 'upkeep', why: 'failed', at: start }],
      undefined,
    ])
    disk.isBroken = false
    // Another process: whoever holds a lease may take it again.
    await using other = await openMemory({ profile: 'summary', store, model: down, clock: () => start })
    await talk(other, 41, 41)
    const [messages, summed] = await reach(other)
    expect([messages, summed > 30]).toEqual([41, true])
  })
})

describe('what went wrong', () => {
  verifies('C-11', 'is no longer told once the optimizer runs well again', async () => {
    let now = start
    const ram = ramStore()
    const disk = { isBroken: true }
    const store: typeof ram = {
      ...ram,
      page: async (...asked) => (disk.isBroken ? Promise.reject(new Error('disk')) : ram.page(...asked)),
    }
    await using memory = await openMemory({ profile: 'agent', store, clock: () => now })
    const run = async (content: string): Promise<void> => {
      await memory.append(key, [{ role: 'user', content }])
      now += 180_000
      await memory.sweep(now)
      await memory.upkeep.settled()
    }
    await run('Hello there my dear friend, see https://acme.example/x')
    expect(memory.health().degraded.map(({ step, why }) => [step, why])).toEqual([['upkeep', 'failed']])
    disk.isBroken = false
    await run('There are more words to be said here.')
    expect([memory.health().degraded, (await memory.upkeep.optimizer(key)).totalOptimizations]).toEqual([[], 1])
  })
})

describe('a session without a model', () => {
  verifies('T-05', 'does not wait for the models of others, however many of them hang', async () => {
    const model = ({ id }: Key): Model | undefined => (id.startsWith('slow') ? silent : undefined)
    const never = (): AbortSignal => new AbortController().signal
    await using memory = await openMemory({
      profile: 'summary',
      clock: () => start,
      upkeep: upkeepWith({ model, expire: never }),
    })
    for (let place = 1; place <= 8; place++) await memory.append(`other:slow${place}`, turns(1, 40))
    await memory.append(key, turns(1, 40))
    expect((await memory.context(key)).ledger.lines.filter(({ band }) => band === 'summary').length).toBe(1)
    expect(memory.health().running).toBe(8)
  })
})

describe('one look with a large budget', () => {
  const count = async (memory: Memory): Promise<number> => (await memory.upkeep.summaries(key)).length

  verifies('C-02', 'does not end upkeep, which goes by the last one', async () => {
    await using memory = await openMemory({ profile: 'thread', clock: () => start })
    await memory.append(key, [turn(1)])
    await memory.context(key, { budget: 1_000_000 })
    await talk(memory, 2, 120)
    expect(await count(memory)).toBe(1)
  })

  verifies(
    'C-02',
    'does not end upkeep either when so much was said meanwhile that it would have been due',
    async () => {
      await using memory = await openMemory({ profile: 'thread', clock: () => start })
      await memory.append(key, [turn(1)])
      await memory.context(key, { budget: 1_000_000 })
      for (const message of turns(2, 120)) await memory.append(key, [message])
      await memory.upkeep.settled()
      expect(await count(memory)).toBe(0)
      await talk(memory, 121, 122)
      expect(await count(memory)).toBe(1)
    },
  )
})

describe('a session begun anew', () => {
  const short: Profile = { ...profiles.summary, lifetime: { idle: hour, whenFull: 'refuse' } }
  for (const [how, isSwept, isAtOnce] of [
    ['after it expired', false, false],
    ['after it was swept', true, false],
    ['after it expired, with more at once than it had before', false, true],
    ['after it was swept, with more at once than it had before', true, true],
  ] as const)
    verifies('C-02', `${how}, is summed up like any other`, async () => {
      let now = start
      await using memory = await openMemory({ profile: short, clock: () => now })
      await talk(memory, 1, 80)
      const [messages, summed] = await reach(memory)
      expect([messages, summed > 55]).toEqual([80, true])
      now += 2 * hour
      if (isSwept) expect(await memory.sweep(now)).toEqual({ ended: [key] })
      if (isAtOnce) await memory.append(key, turns(1, 82))
      await talk(memory, isAtOnce ? 83 : 1, isAtOnce ? 84 : 60)
      const [after, reached] = await reach(memory)
      expect([after, after - reached < 25]).toEqual([isAtOnce ? 84 : 60, true])
      expect((await memory.context(key)).ledger.lines.filter(({ verdict }) => verdict === 'dropped')).toEqual([])
    })
})
