import { describe, expect, it } from 'vitest'
import { branchKey, outboxKey, parseKey, receiptsKey } from '../../src/domain/key.ts'
import type { Store } from '../../src/domain/ports.ts'
import { never } from '../../src/domain/session.ts'
import {
  lifecycleWith,
  type Memory,
  type MemoryOptions,
  type OnSessionEnd,
  openMemory,
  profiles,
  ramStore,
} from '../../src/index.ts'
import { backoff } from '../../src/lifecycle/deliveries.ts'
import { said as stored } from '../../src/stores/conformance/stage.ts'
import { verifies } from '../requirements/verifies.ts'

const start = 1_800_000_000_000
const day = 86_400_000
const outbox = outboxKey('acme')

/** A memory of profile support whose clock and time-outs are in the test's hands. */
async function opened(onSessionEnd: OnSessionEnd, more: MemoryOptions = {}) {
  const clock = { now: start }
  const patience: AbortController[] = []
  const expire = (): AbortSignal => {
    const controller = new AbortController()
    patience.push(controller)
    return controller.signal
  }
  const sessions = ramStore()
  const memory = await openMemory({
    profile: 'support',
    clock: () => clock.now,
    sessions,
    lifecycle: lifecycleWith({ onSessionEnd, expire }),
    ...more,
  })
  return { memory, clock, sessions, patience }
}

const say = (memory: Memory, key: string, content = 'Hello') => memory.append(key, [{ role: 'user', content }])

/** A callback that notes what it hears, and fails as long as it is told to. */
function listener() {
  const heard: { readonly id: string; readonly end: string; readonly contents: readonly string[] }[] = []
  const state = { failing: false, tries: 0 }
  const onSessionEnd: OnSessionEnd = async (id, { messages }, meta) => {
    state.tries++
    if (state.failing) throw new Error('not now')
    heard.push({ id: meta.id, end: `${id} ${meta.reason}`, contents: messages.map(({ content }) => content) })
  }
  return { heard, state, onSessionEnd }
}

describe('the end of a session', () => {
  verifies('T-07', 'is told with what was said, as it was kept', async () => {
    const told: Parameters<OnSessionEnd>[] = []
    const { memory, clock } = await opened((...end) => void told.push(end))
    await say(memory, 'acme:ann', 'My password: correct-horse-battery-9')
    clock.now += 5
    await memory.append('acme:ann', [{ role: 'assistant', content: 'Noted.' }])
    clock.now += day
    expect((await memory.sweep()).ended).toEqual(['acme:ann'])
    await memory.lifecycle.settled()
    const [[fullId, data, meta] = []] = told
    expect([told.length, fullId, meta]).toEqual([1, 'acme:ann', { id: `end:acme:ann:0:${start}`, reason: 'expired' }])
    expect(data).toMatchObject({ createdAt: start, lastAccessed: start + 5, messageCount: 2, summaries: [] })
    expect(data?.messages.map(({ id, role, sequence }) => `${id} ${role} ${sequence}`)).toEqual([
      'm1 user 1',
      'm2 assistant 2',
    ])
    expect(JSON.stringify(data)).not.toContain('correct-horse')
    await memory.close()
  })

  verifies('T-07', 'is told with its summaries', async () => {
    const told: Parameters<OnSessionEnd>[1][] = []
    const { memory } = await opened((_, data) => void told.push(data))
    for (let turn = 0; turn < 50; turn++)
      await say(memory, 'acme:ann', `Turn ${turn}: the parcel ${turn} has not come to Bergen yet.`)
    await memory.sweep()
    await memory.upkeep.settled()
    expect(await memory.end('acme:ann')).toBe(true)
    await memory.lifecycle.settled()
    expect(told[0]?.summaries).toEqual([{ text: expect.stringContaining('parcel'), covers: [1, 20], tier: 'hour' }])
    expect(told[0]?.messageCount).toBe(50)
    await memory.close()
  })

  verifies(
    'T-07',
    'is told once, whoever finds it: a sweep, an access, an explicit end, all at the same time',
    async () => {
      const { heard, onSessionEnd } = listener()
      const { memory, clock } = await opened(onSessionEnd)
      await say(memory, 'acme:ann', 'old')
      clock.now += day
      await Promise.all([memory.sweep(), memory.sweep(), say(memory, 'acme:ann', 'new'), memory.sweep()])
      await memory.lifecycle.settled()
      expect(heard.map(({ end, contents }) => [end, ...contents])).toEqual([['acme:ann expired', 'old']])
      const ended = await Promise.all([memory.end('acme:ann'), memory.end('acme:ann'), memory.sweep()])
      await memory.lifecycle.settled()
      expect(ended[0] || ended[1]).toBe(true)
      expect(heard.map(({ end, contents }) => [end, ...contents])).toEqual([
        ['acme:ann expired', 'old'],
        ['acme:ann ended', 'new'],
      ])
      expect(await memory.end('acme:ann')).toBe(false)
      await memory.close()
    },
  )

  it('loses nothing that is said while it is under way', async () => {
    const { heard, onSessionEnd } = listener()
    const { memory } = await opened(onSessionEnd)
    await say(memory, 'acme:ann', '0')
    const saying = Array.from({ length: 40 }, (_, turn) => say(memory, 'acme:ann', `${turn + 1}`))
    await Promise.all([...saying.slice(0, 20), memory.end('acme:ann'), ...saying.slice(20), memory.end('acme:ann')])
    await memory.end('acme:ann')
    await memory.close()
    const all = heard.flatMap(({ contents }) => contents).map(Number)
    expect(all.sort((a, b) => a - b)).toEqual(Array.from({ length: 41 }, (_, turn) => turn))
  })

  verifies(
    'T-07',
    'is told again when the callback throws: after a second, then twice as long, at most an hour',
    async () => {
      const { heard, state, onSessionEnd } = listener()
      const { memory, clock } = await opened(onSessionEnd)
      state.failing = true
      await say(memory, 'acme:ann')
      await memory.end('acme:ann')
      await memory.lifecycle.settled()
      expect([state.tries, memory.lifecycle.waiting]).toEqual([1, 1])
      for (const [wait, tries] of [
        [999, 1],
        [1, 2],
        [1_999, 2],
        [1, 3],
        [3_999, 3],
        [1, 4],
      ] as const) {
        clock.now += wait
        await memory.sweep()
        await memory.lifecycle.settled()
        expect(state.tries).toBe(tries)
      }
      expect([1, 2, 12, 13, 100].map(backoff)).toEqual([1_000, 2_000, 2_048_000, 3_600_000, 3_600_000])
      state.failing = false
      clock.now += 8_000
      await memory.sweep()
      await memory.lifecycle.settled()
      expect([heard.length, memory.lifecycle.waiting]).toEqual([1, 0])
      clock.now += day
      await memory.sweep()
      await memory.lifecycle.settled()
      expect(heard.length).toBe(1)
      await memory.close()
    },
  )

  verifies('T-07', 'holds up nobody when the callback hangs, and is told again after its time', async () => {
    const heard: string[] = []
    let isHanging = true
    const { memory, clock, patience } = await opened((id) => {
      if (isHanging && id === 'acme:stuck') return new Promise(() => undefined)
      heard.push(id)
    })
    for (const name of ['stuck', 'other']) await say(memory, `acme:${name}`)
    clock.now += day
    expect((await memory.sweep()).ended).toEqual(['acme:other', 'acme:stuck'])
    // A second look while it hangs begins nothing twice.
    await memory.sweep()
    await say(memory, 'acme:stuck', 'begun anew')
    while (heard.length === 0) await new Promise(setImmediate)
    expect(heard).toEqual(['acme:other'])
    isHanging = false
    for (const controller of patience) controller.abort()
    await memory.lifecycle.settled()
    clock.now += 1_000
    await memory.sweep()
    await memory.lifecycle.settled()
    expect(heard).toEqual(['acme:other', 'acme:stuck'])
    expect((await memory.transcript('acme:stuck')).map(({ content }) => content)).toEqual(['begun anew'])
    await memory.close()
  })

  it('takes along what is kept beside the session, and leaves an outbox that goes a day later', async () => {
    const { heard, onSessionEnd } = listener()
    const { memory, clock, sessions } = await opened(onSessionEnd)
    const beside = (key: string) => [
      receiptsKey(parseKey(key)),
      ...[1, 2, 3].map((number) => branchKey(parseKey(key), number)),
    ]
    for (const name of ['acme:ann', 'acme:ann2']) {
      await say(memory, name)
      for (const key of beside(name))
        await sessions.commit({ key, at: start, epoch: 0, append: [stored('x')], put: [], drop: [], expiresAt: never })
    }
    await memory.end('acme:ann')
    await memory.lifecycle.settled()
    const ids = async () => (await sessions.list({ limit: 99 })).map(({ key }) => key.id)
    expect(await ids()).toEqual([':outbox', 'ann2', 'ann2:1', 'ann2:2', 'ann2:3', 'ann2:receipts'])
    clock.now += day
    expect((await memory.sweep()).ended).toEqual(['acme:ann2'])
    await memory.lifecycle.settled()
    expect(await ids()).toEqual([':outbox'])
    clock.now += day
    expect((await memory.sweep()).ended).toEqual([])
    expect(await ids()).toEqual([])
    expect(heard.map(({ end }) => end)).toEqual(['acme:ann ended', 'acme:ann2 expired'])
    await memory.close()
  })

  it('writes nothing where nobody wants to hear of it', async () => {
    const sessions = ramStore()
    const memory = await openMemory({ profile: 'support', sessions })
    await say(memory, 'acme:ann')
    await memory.end('acme:ann')
    expect(await sessions.list({ limit: 9 })).toEqual([])
    expect((await sessions.head(outbox, 0)).epoch).toBe(0)
    await memory.close()
  })
})

describe('what waits to be told', () => {
  /** A session that has ended, and whose end nobody could be told. */
  async function waiting(more: MemoryOptions = {}) {
    const { heard, state, onSessionEnd } = listener()
    const all = await opened(onSessionEnd, more)
    state.failing = true
    for (const name of ['ann', 'bob']) {
      await say(all.memory, `acme:${name}`, `the walrus of ${name}`)
      await all.memory.end(`acme:${name}`)
    }
    await all.memory.lifecycle.settled()
    state.failing = false
    const retry = async () => {
      all.clock.now += day
      await all.memory.sweep()
      await all.memory.lifecycle.settled()
      return heard.map(({ end }) => end)
    }
    return { ...all, retry }
  }

  it('is found by no search, and by no embedder', async () => {
    const embedded: string[] = []
    const embedder = {
      name: 'e',
      embed: async (texts: readonly string[]) => {
        embedded.push(...texts)
        return texts.map(() => Float32Array.of(1, 0))
      },
    }
    const { memory, sessions } = await waiting({ embedder })
    expect((await sessions.head(outbox, 0)).messages).toBe(2)
    await memory.embedded({ settled: true })
    const before = embedded.length
    expect(await memory.search('acme', 'walrus')).toEqual([])
    await memory.embedded({ settled: true })
    expect(embedded.slice(before).filter((text) => text.includes('walrus of'))).toEqual([])
    await memory.close()
  })

  it('is forgotten with its session, with its scope, and by what it says', async () => {
    const first = await waiting()
    await first.memory.forget({ key: 'acme:ann' })
    expect(await first.retry()).toEqual(['acme:bob ended'])
    const second = await waiting()
    await second.memory.forget({ scope: 'acme' })
    expect(await second.retry()).toEqual([])
    const third = await waiting()
    await third.memory.forget({ scope: 'acme', text: 'Walrus of BOB' })
    expect(await third.retry()).toEqual(['acme:ann ended'])
    for (const { memory } of [first, second, third]) await memory.close()
  })

  it('does not bring back a session that is forgotten while it ends', async () => {
    const { heard, onSessionEnd } = listener()
    const sessions = ramStore()
    const clock = { now: start }
    let atOutbox = async (): Promise<void> => undefined
    const between: typeof sessions = {
      ...sessions,
      commit: async (change) => {
        if (change.key.id === outbox.id) await atOutbox()
        return sessions.commit(change)
      },
    }
    const memory = await openMemory({ profile: 'support', sessions: between, clock: () => clock.now, onSessionEnd })
    await say(memory, 'acme:ann', 'forget me')
    atOutbox = async () => {
      atOutbox = async () => undefined
      await memory.forget({ key: 'acme:ann' })
      await say(memory, 'acme:ann', 'somebody else')
    }
    clock.now += day
    await memory.sweep()
    await memory.lifecycle.settled()
    expect(heard).toEqual([])
    expect((await memory.transcript('acme:ann')).map(({ content }) => content)).toEqual(['somebody else'])
    await memory.close()
  })

  it('is withdrawn if the session is used after all, and told when it ends', async () => {
    const { heard, onSessionEnd } = listener()
    const store = ramStore()
    const clock = { now: start }
    let atErase = async (): Promise<void> => undefined
    const sessions: Store & typeof store = {
      ...store,
      erase: async (key, only) => {
        if (key.id === 'ann') await atErase()
        return store.erase(key, only)
      },
    }
    const memory = await openMemory({ profile: 'support', sessions, clock: () => clock.now, onSessionEnd })
    await say(memory, 'acme:ann', 'old')
    atErase = async () => {
      atErase = async () => undefined
      // By a process whose clock is a little behind.
      const { epoch } = await store.head(parseKey('acme:ann'), 0)
      const change = {
        key: parseKey('acme:ann'),
        at: start + 1,
        epoch,
        append: [stored('just in time')],
        put: [],
        drop: [],
        expiresAt: start + 2 * day,
      }
      await store.commit(change)
    }
    clock.now += day
    expect((await memory.sweep()).ended).toEqual([])
    await memory.lifecycle.settled()
    expect(heard).toEqual([])
    clock.now += day
    expect((await memory.sweep()).ended).toEqual(['acme:ann'])
    await memory.lifecycle.settled()
    expect(heard).toEqual([
      { id: `end:acme:ann:0:${start}`, end: 'acme:ann expired', contents: ['old', 'just in time'] },
    ])
    await memory.close()
  })

  it('of a hundred ends is told to the last one, a few at a time', async () => {
    let [now, most] = [0, 0]
    const heard = new Set<string>()
    const { memory, clock } = await opened(
      async (id) => {
        most = Math.max(most, ++now)
        await new Promise(setImmediate)
        now--
        heard.add(id)
      },
      { profile: { ...profiles.support, upkeep: [] } },
    )
    for (let session = 0; session < 100; session++) await say(memory, `acme:${session}`)
    clock.now += day
    expect((await memory.sweep()).ended).toHaveLength(100)
    await memory.lifecycle.settled()
    expect([heard.size, most]).toEqual([100, 16])
    await memory.close()
  })
})
