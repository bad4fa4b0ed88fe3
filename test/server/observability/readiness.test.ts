import { describe, expect, it } from 'vitest'
import { checkReadiness, type ServerHealth } from '../../../src/server/observability/readiness.ts'
import { verifies } from '../../requirements/verifies.ts'

const healthy: ServerHealth = {
  store: 'ok',
  upstreams: [{ name: 'openai', state: 'ok' }],
  draining: false,
  upkeep: [],
  bytes: { used: 10, limit: 100 },
  pendingDeliveries: 0,
}
const check = (state: Partial<ServerHealth>) => checkReadiness({ ...healthy, ...state })

describe('checkReadiness', () => {
  verifies('S-07', 'with healthy parts is ready', () =>
    expect(checkReadiness(healthy)).toEqual({ ready: true, status: 'ok', degraded: [] }),
  )

  it('without upstreams is ready, because the built-in model answers', () =>
    expect(check({ upstreams: [] }).ready).toBe(true))

  verifies('S-07', 'while draining, without its store, or without any upstream is not ready', () => {
    expect(check({ draining: true })).toEqual({
      ready: false,
      status: 'draining',
      degraded: [{ part: 'server', why: 'shutting down' }],
    })
    expect(check({ store: { fault: 'the disk is full' } })).toEqual({
      ready: false,
      status: 'unavailable',
      degraded: [{ part: 'store', why: 'the disk is full' }],
    })
    expect(check({ upstreams: [{ name: 'openai', state: 'down' }] })).toEqual({
      ready: false,
      status: 'unavailable',
      degraded: [{ part: 'upstream', why: 'openai is down' }],
    })
  })

  it('with degraded parts is ready and lists them', () => {
    const state: Partial<ServerHealth> = {
      upstreams: [
        { name: 'openai', state: 'down' },
        { name: 'claude', state: 'failing' },
        { name: 'local', state: 'ok' },
      ],
      upkeep: [{ step: 'summary', why: 'timeout' }],
      bytes: { used: 100, limit: 100 },
      pendingDeliveries: 3,
    }
    expect(check(state)).toEqual({
      ready: true,
      status: 'degraded',
      degraded: [
        { part: 'upstream', why: 'openai is down' },
        { part: 'upstream', why: 'claude is failing' },
        {
          part: 'upkeep',
          why: 'The summary from the model did not arrive in time; the built-in summary was used.',
          code: 'summary-timeout',
        },
        { part: 'memory', why: '100 of 100 bytes are used; the least recently used sessions are ended' },
        { part: 'outbox', why: '3 session ends wait for delivery' },
      ],
    })
  })

  it('without a RAM limit is never full', () =>
    expect(check({ bytes: { used: Number.MAX_SAFE_INTEGER } }).status).toBe('ok'))

  it('lists a reason in every unhealthy state', () => {
    const states: Partial<ServerHealth>[] = [
      { draining: true },
      { store: { fault: 'x' } },
      { upstreams: [{ name: 'a', state: 'down' }] },
      { pendingDeliveries: 1 },
    ]
    expect(states.map((state) => check(state).degraded.length)).toEqual([1, 1, 1, 1])
  })
})
