import { describe, expect, it } from 'vitest'
import { readiness, type State } from '../../../src/server/observability/ready.ts'
import { verifies } from '../../requirements/verifies.ts'

const well: State = {
  store: 'ok',
  upstreams: [{ name: 'openai', state: 'ok' }],
  draining: false,
  upkeep: [],
  bytes: { used: 10, limit: 100 },
  waiting: 0,
}
const told = (given: Partial<State>) => readiness({ ...well, ...given })

describe('readiness', () => {
  verifies('S-07', 'is there when requests would be answered', () =>
    expect(readiness(well)).toEqual({ ready: true, status: 'ok', degraded: [] }),
  )

  it('needs no upstream where the built-in model answers', () => expect(told({ upstreams: [] }).ready).toBe(true))

  verifies('S-07', 'is gone while the server shuts down, without its store, or without any upstream', () => {
    expect(told({ draining: true })).toEqual({
      ready: false,
      status: 'draining',
      degraded: [{ part: 'server', why: 'is shutting down' }],
    })
    expect(told({ store: { fault: 'the disk is full' } })).toEqual({
      ready: false,
      status: 'unavailable',
      degraded: [{ part: 'store', why: 'the disk is full' }],
    })
    expect(told({ upstreams: [{ name: 'openai', state: 'down' }] })).toEqual({
      ready: false,
      status: 'unavailable',
      degraded: [{ part: 'upstream', why: 'openai is down' }],
    })
  })

  it('stays while something works worse than it should, and says what', () => {
    const state: Partial<State> = {
      upstreams: [
        { name: 'openai', state: 'down' },
        { name: 'claude', state: 'failing' },
        { name: 'local', state: 'ok' },
      ],
      upkeep: [{ step: 'summary', why: 'timeout' }],
      bytes: { used: 100, limit: 100 },
      waiting: 3,
    }
    expect(told(state)).toEqual({
      ready: true,
      status: 'degraded',
      degraded: [
        { part: 'upstream', why: 'openai is down' },
        { part: 'upstream', why: 'claude is failing' },
        { part: 'upkeep', why: 'summary timeout' },
        { part: 'memory', why: '100 of 100 bytes are used: the oldest sessions are ended' },
        { part: 'outbox', why: '3 ends of sessions wait to be delivered' },
      ],
    })
  })

  it('has no limit in RAM where none is set', () =>
    expect(told({ bytes: { used: Number.MAX_SAFE_INTEGER } }).status).toBe('ok'))

  it('says why in every state that is not well', () => {
    const states: Partial<State>[] = [
      { draining: true },
      { store: { fault: 'x' } },
      { upstreams: [{ name: 'a', state: 'down' }] },
      { waiting: 1 },
    ]
    expect(states.map((state) => told(state).degraded.length)).toEqual([1, 1, 1, 1])
  })
})
