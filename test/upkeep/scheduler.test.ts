import { describe, expect } from 'vitest'
import type { UpkeepNotes } from '../../src/domain/entry.ts'
import { type Key, parseKey } from '../../src/domain/key.ts'
import type { Model, Store } from '../../src/domain/ports.ts'
import type { Profile } from '../../src/domain/profile.ts'
import { createUpkeep, type Memory, type MessageInput, openMemory, profiles, ramStore } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'

const key = 'acme:ann'
const hour = 3_600_000
const start = Date.UTC(2026, 2, 2, 9)

/** About 120 tokens. */
const turn = (number: number): MessageInput => ({
  role: number % 2 === 1 ? 'user' : 'assistant',
  content: `Turn ${number}. ${`We talked about Berlin and the harbour number ${number}. `.repeat(11)}`,
})
const turns = (from: number, to: number): MessageInput[] =>
  Array.from({ length: to - from + 1 }, (_, at) => turn(from + at))

/** Appends messages one by one and builds a context after each. */
async function converse(memory: Memory, from: number, to: number): Promise<void> {
  for (const message of turns(from, to)) {
    await memory.append(key, [message])
    await memory.context(key)
  }
  await memory.upkeep.whenIdle()
}

/** Returns the number of messages and the last one that summaries cover. */
async function coverage(memory: Memory): Promise<readonly [messages: number, summarised: number]> {
  const covers = (await memory.upkeep.summaries(key)).map(({ covers: [, last] }) => last)
  return [(await memory.transcript(key)).length, Math.max(0, ...covers)]
}

/** A model that always fails: the built-in rules are used, but the session is leased. */
const down: Model = {
  name: 'down',
  // biome-ignore lint/correctness/useYield: throws before the first chunk
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

const notesIn = async (store: Store): Promise<UpkeepNotes | undefined> =>
  (await store.readHead(parseKey(key), 0)).derived.find((entry) => entry.kind === 'notes')

async function putNotes(store: Store, notes: Partial<UpkeepNotes>): Promise<void> {
  const { key: of, epoch, revision: base, expiresAt } = await store.readHead(parseKey(key), 0)
  const entry: UpkeepNotes = { kind: 'notes', id: 'notes', at: start, sources: [], ...notes }
  await store.commit({ key: of, at: start, epoch, base, append: [], put: [entry], drop: [], expiresAt })
}

describe('a compaction', () => {
  verifies('K-04', 'before the results of a tool call that takes most of the text › waits for the reply', async () => {
    await using memory = await openMemory({ profile: 'summary' })
    const call = (id: string) => ({ id, type: 'function' as const, function: { name: 'read', arguments: '{}' } })
    const page = 'The harbour was built in 1904 by the town. '.repeat(200)
    await memory.append(key, [
      turn(1),
      { role: 'assistant', content: '', tool_calls: [call('c1'), call('c2')] },
      { role: 'tool', tool_call_id: 'c1', content: page },
      { role: 'tool', tool_call_id: 'c2', content: page },
    ])
    await memory.upkeep.whenIdle()
    expect(await memory.upkeep.summaries(key)).toEqual([])
    await memory.append(key, [turn(2), turn(3)])
    await memory.upkeep.whenIdle()
    expect((await memory.upkeep.summaries(key)).map(({ covers }) => covers)).toEqual([[1, 4]])
  })
})

describe('a lease', () => {
  for (const [origin, ahead, summarised] of [
    ['of another active process', 60_000, false],
    ['that is expired', 0, true],
    ['from a clock one year ahead', 365 * 24 * hour, true],
  ] as const)
    verifies('C-12', `${origin} ${summarised ? 'does not block' : 'blocks'} summarising`, async () => {
      const store = ramStore()
      await using memory = await openMemory({ profile: 'summary', store, model: down, clock: () => start })
      await memory.append(key, [turn(1)])
      await memory.upkeep.whenIdle()
      await putNotes(store, { lease: { holder: 'somebody else', until: start + ahead } })
      await converse(memory, 2, 60)
      expect((await memory.upkeep.summaries(key)).length > 0).toBe(summarised)
      expect((await notesIn(store))?.lease?.holder).toBe(summarised ? undefined : 'somebody else')
    })

  verifies('C-11', 'is released after a failed step, and the next step succeeds', async () => {
    const ram = ramStore()
    const disk = { isBroken: true }
    const store: typeof ram = {
      ...ram,
      readMessages: async (...asked) =>
        disk.isBroken ? Promise.reject(new Error('disk')) : ram.readMessages(...asked),
    }
    await using memory = await openMemory({ profile: 'summary', store, model: down, clock: () => start })
    await memory.append(key, turns(1, 40))
    await memory.upkeep.whenIdle()
    expect([memory.health().degraded, (await notesIn(ram))?.lease]).toEqual([
      [{ step: 'upkeep', why: 'failed', at: start }],
      undefined,
    ])
    disk.isBroken = false
    // Another process, because the holder of a lease could take it again.
    await using other = await openMemory({ profile: 'summary', store, model: down, clock: () => start })
    await converse(other, 41, 41)
    const [messages, summarised] = await coverage(other)
    expect([messages, summarised > 30]).toEqual([41, true])
  })
})

describe('long work on a session', () => {
  verifies('C-11', 'when the memory is closed › is interrupted and releases the lease', async () => {
    const store = ramStore()
    const messages = Array.from(
      { length: 1_500 },
      (_, at): MessageInput => ({ role: 'user', content: `My box is ${at}.` }),
    )
    let pauses = 0
    let closing: Promise<void> | undefined
    const pause = async (): Promise<void> => {
      if (pauses++ === 200) closing = memory.close()
    }
    const memory = await openMemory({ store, model: down, clock: () => start, upkeep: createUpkeep({ pause }) })
    await memory.append(key, messages)
    await memory.upkeep.whenIdle()
    await closing
    expect([pauses, await notesIn(store)]).toEqual([201, undefined])
  })
})

describe('health', () => {
  verifies('C-11', 'after a successful optimizer run no longer lists the fault', async () => {
    let now = start
    const ram = ramStore()
    const disk = { isBroken: true }
    const store: typeof ram = {
      ...ram,
      readMessages: async (...asked) =>
        disk.isBroken ? Promise.reject(new Error('disk')) : ram.readMessages(...asked),
    }
    await using memory = await openMemory({ profile: 'agent', store, clock: () => now })
    const run = async (content: string): Promise<void> => {
      await memory.append(key, [{ role: 'user', content }])
      now += 180_000
      await memory.sweep(now)
      await memory.upkeep.whenIdle()
    }
    await run('Hello there my dear friend, see https://acme.example/x')
    expect(memory.health().degraded.map(({ step, why }) => [step, why])).toEqual([['upkeep', 'failed']])
    disk.isBroken = false
    await run('There are more words to be said here.')
    expect([memory.health().degraded, (await memory.upkeep.optimizerStatus(key)).totalOptimizations]).toEqual([[], 1])
  })
})

describe('a session without a model', () => {
  verifies('T-05', 'does not wait for hanging models of other sessions', async () => {
    const model = ({ id }: Key): Model | undefined => (id.startsWith('slow') ? silent : undefined)
    const never = (): AbortSignal => new AbortController().signal
    await using memory = await openMemory({
      profile: 'summary',
      clock: () => start,
      upkeep: createUpkeep({ model, timeoutSignal: never }),
    })
    for (let number = 1; number <= 8; number++) await memory.append(`other:slow${number}`, turns(1, 40))
    await memory.append(key, turns(1, 40))
    expect((await memory.context(key)).ledger.lines.filter(({ band }) => band === 'summary').length).toBe(1)
    expect(memory.health().running).toBe(8)
  })
})

describe('a context with a large budget', () => {
  const count = async (memory: Memory): Promise<number> => (await memory.upkeep.summaries(key)).length

  verifies('C-02', 'does not stop upkeep, which uses the last budget', async () => {
    await using memory = await openMemory({ profile: 'thread', clock: () => start })
    await memory.append(key, [turn(1)])
    await memory.context(key, { budget: 1_000_000 })
    await converse(memory, 2, 120)
    expect(await count(memory)).toBe(1)
  })

  verifies('C-02', 'does not stop upkeep when enough was appended meanwhile to make it due', async () => {
    await using memory = await openMemory({ profile: 'thread', clock: () => start })
    await memory.append(key, [turn(1)])
    await memory.context(key, { budget: 1_000_000 })
    for (const message of turns(2, 120)) await memory.append(key, [message])
    await memory.upkeep.whenIdle()
    expect(await count(memory)).toBe(0)
    await converse(memory, 121, 122)
    expect(await count(memory)).toBe(1)
  })
})

describe('a session with a budget above the one of the profile', () => {
  verifies('C-02', 'after many other such sessions › is summarised for its own budget', async () => {
    await using memory = await openMemory({ profile: { ...profiles.thread, budget: 3_000 } })
    for (let other = 0; other < 100_000; other++) memory.upkeep.whenReady(parseKey(`acme:${other}`), 32_000)
    memory.upkeep.whenReady(parseKey(key), 32_000)
    await memory.append(key, turns(1, 40))
    await memory.upkeep.whenIdle()
    expect(await memory.upkeep.summaries(key)).toEqual([])
  })
})

describe('a restarted session', () => {
  const short: Profile = { ...profiles.summary, lifetime: { idle: hour, whenFull: 'refuse' } }
  for (const [condition, isSwept, isAtOnce] of [
    ['after expiry', false, false],
    ['after a sweep', true, false],
    ['after expiry, with more messages at once than before', false, true],
    ['after a sweep, with more messages at once than before', true, true],
  ] as const)
    verifies('C-02', `${condition}, is summarised`, async () => {
      let now = start
      await using memory = await openMemory({ profile: short, clock: () => now })
      await converse(memory, 1, 80)
      const [messages, summarised] = await coverage(memory)
      expect([messages, summarised > 55]).toEqual([80, true])
      now += 2 * hour
      if (isSwept) expect(await memory.sweep(now)).toEqual({ ended: [key] })
      if (isAtOnce) await memory.append(key, turns(1, 82))
      await converse(memory, isAtOnce ? 83 : 1, isAtOnce ? 84 : 60)
      const [after, reached] = await coverage(memory)
      expect([after, after - reached < 25]).toEqual([isAtOnce ? 84 : 60, true])
      expect((await memory.context(key)).ledger.lines.filter(({ verdict }) => verdict === 'dropped')).toEqual([])
    })
})
