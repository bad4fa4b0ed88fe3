import { describe, expect, it } from 'vitest'
import { branchKey, outboxKey, parseKey } from '../../src/domain/key.ts'
import type { Store } from '../../src/domain/ports.ts'
import { noExpiry } from '../../src/domain/session.ts'
import {
  createLifecycle,
  type MemoryOptions,
  type OnSessionEnd,
  openMemory,
  profiles,
  ramStore,
} from '../../src/index.ts'
import { deliveryDelay } from '../../src/lifecycle/delivery.ts'
import { newMessage as stored } from '../../src/stores/conformance/fixtures.ts'
import { verifies } from '../requirements/verifies.ts'
import { appendUser } from './fixtures.ts'

const start = 1_800_000_000_000
const day = 86_400_000
const outbox = outboxKey('acme')

/** Opens a memory with the support profile, a manual clock and manual timeouts. */
async function openTestMemory(onSessionEnd: OnSessionEnd, options: MemoryOptions = {}) {
  const clock = { now: start }
  const timeouts: AbortController[] = []
  const timeoutSignal = (): AbortSignal => {
    const controller = new AbortController()
    timeouts.push(controller)
    return controller.signal
  }
  const sessions = ramStore()
  const memory = await openMemory({
    profile: 'support',
    clock: () => clock.now,
    sessions,
    lifecycle: createLifecycle({ onSessionEnd, timeoutSignal }),
    ...options,
  })
  return { memory, clock, sessions, timeouts }
}

/** A handler that records end events, and fails while `failing` is set. */
function createListener() {
  const received: { readonly id: string; readonly end: string; readonly contents: readonly string[] }[] = []
  const state = { failing: false, attempts: 0 }
  const onSessionEnd: OnSessionEnd = async (id, { messages }, meta) => {
    state.attempts++
    if (state.failing) throw new Error('not now')
    received.push({ id: meta.id, end: `${id} ${meta.reason}`, contents: messages.map(({ content }) => content) })
  }
  return { received, state, onSessionEnd }
}

describe('onSessionEnd', () => {
  verifies('T-07', 'receives the masked messages', async () => {
    const calls: Parameters<OnSessionEnd>[] = []
    const { memory, clock } = await openTestMemory((...end) => void calls.push(end))
    await appendUser(memory, 'acme:ann', 'My password: correct-horse-battery-9')
    clock.now += 5
    await memory.append('acme:ann', [{ role: 'assistant', content: 'Noted.' }])
    clock.now += day
    expect((await memory.sweep()).ended).toEqual(['acme:ann'])
    await memory.lifecycle.whenIdle()
    const [[fullId, data, meta] = []] = calls
    expect([calls.length, fullId, meta]).toEqual([1, 'acme:ann', { id: `end:acme:ann:0:${start}`, reason: 'expired' }])
    expect(data).toMatchObject({ createdAt: start, lastAccessed: start + 5, messageCount: 2, summaries: [] })
    expect(data?.messages.map(({ id, role, sequence }) => `${id} ${role} ${sequence}`)).toEqual([
      'm1 user 1',
      'm2 assistant 2',
    ])
    expect(JSON.stringify(data)).not.toContain('correct-horse')
    await memory.close()
  })

  verifies('T-07', 'receives the summaries', async () => {
    const ends: Parameters<OnSessionEnd>[1][] = []
    const { memory } = await openTestMemory((_, data) => void ends.push(data))
    for (let turn = 0; turn < 50; turn++)
      await appendUser(memory, 'acme:ann', `Turn ${turn}: the parcel ${turn} has not come to Bergen yet.`)
    await memory.sweep()
    await memory.upkeep.whenIdle()
    expect(await memory.end('acme:ann')).toBe(true)
    await memory.lifecycle.whenIdle()
    expect(ends[0]?.summaries).toEqual([{ text: expect.stringContaining('parcel'), covers: [1, 20], tier: 'hour' }])
    expect(ends[0]?.messageCount).toBe(50)
    await memory.close()
  })

  verifies('T-07', 'end › while a sweep erases the session that it has just expired › is true', async () => {
    const { received, onSessionEnd } = createListener()
    const sessions = ramStore()
    const { memory } = await openTestMemory(onSessionEnd, { sessions })
    await appendUser(memory, 'acme:ann', 'hello')
    const commit = sessions.commit.bind(sessions)
    sessions.commit = async (change) => {
      const messages = await commit(change)
      if (change.expiresAt === start) await memory.sweep()
      return messages
    }
    expect(await memory.end('acme:ann')).toBe(true)
    await memory.lifecycle.whenIdle()
    expect(received).toHaveLength(1)
    expect(await memory.end('acme:ann')).toBe(false)
    await memory.close()
  })

  verifies('T-07', 'is called once when sweeps, an access and an explicit end detect it at the same time', async () => {
    const { received, onSessionEnd } = createListener()
    const { memory, clock } = await openTestMemory(onSessionEnd)
    await appendUser(memory, 'acme:ann', 'old')
    clock.now += day
    await Promise.all([memory.sweep(), memory.sweep(), appendUser(memory, 'acme:ann', 'new'), memory.sweep()])
    await memory.lifecycle.whenIdle()
    expect(received.map(({ end, contents }) => [end, ...contents])).toEqual([['acme:ann expired', 'old']])
    const ended = await Promise.all([memory.end('acme:ann'), memory.end('acme:ann'), memory.sweep()])
    await memory.lifecycle.whenIdle()
    expect(ended[0] || ended[1]).toBe(true)
    expect(received.map(({ end, contents }) => [end, ...contents])).toEqual([
      ['acme:ann expired', 'old'],
      ['acme:ann ended', 'new'],
    ])
    expect(await memory.end('acme:ann')).toBe(false)
    await memory.close()
  })

  it('receives every message appended during the end', async () => {
    const { received, onSessionEnd } = createListener()
    const { memory } = await openTestMemory(onSessionEnd)
    await appendUser(memory, 'acme:ann', '0')
    const appends = Array.from({ length: 40 }, (_, turn) => appendUser(memory, 'acme:ann', `${turn + 1}`))
    await Promise.all([...appends.slice(0, 20), memory.end('acme:ann'), ...appends.slice(20), memory.end('acme:ann')])
    await memory.end('acme:ann')
    await memory.close()
    const all = received.flatMap(({ contents }) => contents).map(Number)
    expect(all.sort((a, b) => a - b)).toEqual(Array.from({ length: 41 }, (_, turn) => turn))
  })

  verifies('T-07', 'that throws is called again after one second, then doubled delays up to one hour', async () => {
    const { received, state, onSessionEnd } = createListener()
    const { memory, clock } = await openTestMemory(onSessionEnd)
    state.failing = true
    await appendUser(memory, 'acme:ann')
    await memory.end('acme:ann')
    await memory.lifecycle.whenIdle()
    expect([state.attempts, memory.lifecycle.failingDeliveries]).toEqual([1, 1])
    for (const [wait, attempts] of [
      [999, 1],
      [1, 2],
      [1_999, 2],
      [1, 3],
      [3_999, 3],
      [1, 4],
    ] as const) {
      clock.now += wait
      await memory.sweep()
      await memory.lifecycle.whenIdle()
      expect(state.attempts).toBe(attempts)
    }
    expect([1, 2, 12, 13, 100].map(deliveryDelay)).toEqual([1_000, 2_000, 2_048_000, 3_600_000, 3_600_000])
    state.failing = false
    clock.now += 8_000
    await memory.sweep()
    await memory.lifecycle.whenIdle()
    expect([received.length, memory.lifecycle.failingDeliveries]).toEqual([1, 0])
    clock.now += day
    await memory.sweep()
    await memory.lifecycle.whenIdle()
    expect(received.length).toBe(1)
    await memory.close()
  })

  it('that fails, before another process delivers the event › is no longer counted as failing', async () => {
    const [broken, working] = [createListener(), createListener()]
    broken.state.failing = true
    const { memory, clock, sessions } = await openTestMemory(broken.onSessionEnd)
    const other = await openTestMemory(working.onSessionEnd, { sessions, clock: () => clock.now })
    await appendUser(memory, 'acme:ann')
    await memory.end('acme:ann')
    await memory.lifecycle.whenIdle()
    expect(memory.lifecycle.failingDeliveries).toBe(1)
    clock.now += 1_000
    await appendUser(other.memory, 'acme:bob')
    await other.memory.end('acme:bob')
    await other.memory.lifecycle.whenIdle()
    expect(working.received.map(({ end }) => end).sort()).toEqual(['acme:ann ended', 'acme:bob ended'])
    await memory.sweep()
    expect([memory.lifecycle.failingDeliveries, broken.state.attempts]).toEqual([0, 1])
    await Promise.all([memory.close(), other.memory.close()])
  })

  verifies('T-07', 'that hangs blocks nothing, and is called again after its timeout', async () => {
    const received: string[] = []
    let isHanging = true
    const { memory, clock, timeouts } = await openTestMemory((id) => {
      if (isHanging && id === 'acme:stuck') return new Promise(() => undefined)
      received.push(id)
    })
    for (const name of ['stuck', 'other']) await appendUser(memory, `acme:${name}`)
    clock.now += day
    expect((await memory.sweep()).ended).toEqual(['acme:other', 'acme:stuck'])
    // A second sweep while it hangs starts no second attempt.
    await memory.sweep()
    await appendUser(memory, 'acme:stuck', 'begun anew')
    while (received.length === 0) await new Promise(setImmediate)
    expect(received).toEqual(['acme:other'])
    isHanging = false
    for (const controller of timeouts) controller.abort()
    await memory.lifecycle.whenIdle()
    clock.now += 1_000
    await memory.sweep()
    await memory.lifecycle.whenIdle()
    expect(received).toEqual(['acme:other', 'acme:stuck'])
    expect((await memory.transcript('acme:stuck')).map(({ content }) => content)).toEqual(['begun anew'])
    await memory.close()
  })

  it('erases auxiliary data, and leaves an outbox that is erased a day later', async () => {
    const { received, onSessionEnd } = createListener()
    const { memory, clock, sessions } = await openTestMemory(onSessionEnd)
    const auxiliaryKeys = (key: string) => [1, 2, 3].map((number) => branchKey(parseKey(key), number))
    for (const name of ['acme:ann', 'acme:ann2']) {
      await appendUser(memory, name)
      for (const key of auxiliaryKeys(name))
        await sessions.commit({
          key,
          at: start,
          epoch: 0,
          append: [stored('x')],
          put: [],
          drop: [],
          expiresAt: noExpiry,
        })
    }
    await memory.end('acme:ann')
    await memory.lifecycle.whenIdle()
    const ids = async () => (await sessions.list({ limit: 99 })).map(({ key }) => key.id)
    expect(await ids()).toEqual([':outbox', 'ann2', 'ann2:1', 'ann2:2', 'ann2:3'])
    clock.now += day
    expect((await memory.sweep()).ended).toEqual(['acme:ann2'])
    await memory.lifecycle.whenIdle()
    expect(await ids()).toEqual([':outbox'])
    clock.now += day
    expect((await memory.sweep()).ended).toEqual([])
    expect(await ids()).toEqual([])
    expect(received.map(({ end }) => end)).toEqual(['acme:ann ended', 'acme:ann2 expired'])
    await memory.close()
  })

  it('without a handler writes nothing', async () => {
    const sessions = ramStore()
    const memory = await openMemory({ profile: 'support', sessions })
    await appendUser(memory, 'acme:ann')
    await memory.end('acme:ann')
    expect(await sessions.list({ limit: 9 })).toEqual([])
    expect((await sessions.readHead(outbox, 0)).epoch).toBe(0)
    await memory.close()
  })
})

describe('pending end events', () => {
  /** Opens a memory with two ended sessions whose events could not be delivered. */
  async function openWithPending(options: MemoryOptions = {}) {
    const { received, state, onSessionEnd } = createListener()
    const all = await openTestMemory(onSessionEnd, options)
    state.failing = true
    for (const name of ['ann', 'bob']) {
      await appendUser(all.memory, `acme:${name}`, `the walrus of ${name}`)
      await all.memory.end(`acme:${name}`)
    }
    await all.memory.lifecycle.whenIdle()
    state.failing = false
    const retry = async () => {
      all.clock.now += day
      await all.memory.sweep()
      await all.memory.lifecycle.whenIdle()
      return received.map(({ end }) => end)
    }
    return { ...all, retry }
  }

  it('are neither searched nor embedded', async () => {
    const embedded: string[] = []
    const embedder = {
      name: 'e',
      embed: async (texts: readonly string[]) => {
        embedded.push(...texts)
        return texts.map(() => Float32Array.of(1, 0))
      },
    }
    const { memory, sessions } = await openWithPending({ embedder })
    expect((await sessions.readHead(outbox, 0)).messages).toBe(2)
    await memory.embeddingProgress({ settled: true })
    const before = embedded.length
    expect(await memory.search('acme', 'walrus')).toEqual([])
    await memory.embeddingProgress({ settled: true })
    expect(embedded.slice(before).filter((text) => text.includes('walrus of'))).toEqual([])
    await memory.close()
  })

  it('are forgotten with their session, with their scope, and by text', async () => {
    const first = await openWithPending()
    await first.memory.forget({ key: 'acme:ann' })
    expect(await first.retry()).toEqual(['acme:bob ended'])
    const second = await openWithPending()
    await second.memory.forget({ scope: 'acme' })
    expect(await second.retry()).toEqual([])
    const third = await openWithPending()
    await third.memory.forget({ scope: 'acme', text: 'Walrus of BOB' })
    expect(await third.retry()).toEqual(['acme:ann ended'])
    for (const { memory } of [first, second, third]) await memory.close()
  })

  it('of a session that is forgotten while it ends are not stored', async () => {
    const { received, onSessionEnd } = createListener()
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
    await appendUser(memory, 'acme:ann', 'forget me')
    atOutbox = async () => {
      atOutbox = async () => undefined
      await memory.forget({ key: 'acme:ann' })
      await appendUser(memory, 'acme:ann', 'somebody else')
    }
    clock.now += day
    await memory.sweep()
    await memory.lifecycle.whenIdle()
    expect(received).toEqual([])
    expect((await memory.transcript('acme:ann')).map(({ content }) => content)).toEqual(['somebody else'])
    await memory.close()
  })

  it('of a session that is used after all are removed, and sent when it ends', async () => {
    const { received, onSessionEnd } = createListener()
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
    await appendUser(memory, 'acme:ann', 'old')
    atErase = async () => {
      atErase = async () => undefined
      // Appended by a process whose clock is slightly behind.
      const { epoch } = await store.readHead(parseKey('acme:ann'), 0)
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
    await memory.lifecycle.whenIdle()
    expect(received).toEqual([])
    clock.now += day
    expect((await memory.sweep()).ended).toEqual(['acme:ann'])
    await memory.lifecycle.whenIdle()
    expect(received).toEqual([
      { id: `end:acme:ann:0:${start}`, end: 'acme:ann expired', contents: ['old', 'just in time'] },
    ])
    await memory.close()
  })

  it('of a hundred sessions are all delivered, at maxConcurrent 16 at a time', async () => {
    let [now, maxConcurrent] = [0, 0]
    const received = new Set<string>()
    const { memory, clock } = await openTestMemory(
      async (id) => {
        maxConcurrent = Math.max(maxConcurrent, ++now)
        await new Promise(setImmediate)
        now--
        received.add(id)
      },
      { profile: { ...profiles.support, upkeep: [] } },
    )
    for (let session = 0; session < 100; session++) await appendUser(memory, `acme:${session}`)
    clock.now += day
    expect((await memory.sweep()).ended).toHaveLength(100)
    await memory.lifecycle.whenIdle()
    expect([received.size, maxConcurrent]).toEqual([100, 16])
    await memory.close()
  })
})
