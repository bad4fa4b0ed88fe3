import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { UpstreamResponse } from '../../../src/server/upstreams/backend.ts'
import { replyWith, startUpstream } from '../../providers/upstream.ts'
import { createPool, createRequest, openaiUpstream, readBody } from './fixtures.ts'

// The timers are fake for the whole file, because undici keeps one shared timer for all its timeouts once it is created.
beforeAll(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterAll(() => void vi.useRealTimers())

/** Advance that expires each undici timeout of up to 499 ms: undici checks them every 499 ms, from the second check on. */
const expiryMs = 1_000

async function waitFor(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate)
}

/** Advances the fake time until the promise rejects, and returns the error. */
async function expire(promise: Promise<unknown>): Promise<unknown> {
  let isSettled = false
  const outcome = promise
    .catch((error: unknown) => error)
    .finally(() => {
      isSettled = true
    })
  while (!isSettled) {
    await vi.advanceTimersByTimeAsync(expiryMs)
    await new Promise(setImmediate)
  }
  return outcome
}

describe('timeouts', () => {
  it('before the headers make the pool use the next upstream', async () => {
    await using one = await startUpstream({ does: 'hang' })
    await using other = await startUpstream(replyWith('There.'))
    await using pool = createPool({
      upstreams: [openaiUpstream(one.url), openaiUpstream(other.url, { name: 'second' })],
      timeouts: { firstByte: 50 },
    })
    const pending = pool.ask(createRequest())
    await waitFor(() => one.requests.length === 1)
    await vi.advanceTimersByTimeAsync(expiryMs)
    const response = await pending
    const expected: Partial<UpstreamResponse> = {
      status: 200,
      upstream: 'second',
      retries: 1,
      failedUpstreams: ['first'],
    }
    expect(response).toMatchObject(expected)
    expect([await readBody(response), one.requests.length, other.requests.length, pool.delays]).toEqual([
      expect.stringContaining('There.'),
      1,
      1,
      [],
    ])
  })

  it('before the headers are not retried with the only upstream', async () => {
    await using upstream = await startUpstream({ does: 'hang' })
    await using pool = createPool({ upstreams: [openaiUpstream(upstream.url)], timeouts: { firstByte: 50 } })
    const pending = pool.ask(createRequest())
    await waitFor(() => upstream.requests.length === 1)
    expect(await expire(pending)).toMatchObject({ code: 'timeout' })
    expect([await upstream.requests[0]?.outcome, upstream.requests.length, pool.states()]).toEqual([
      'hung up',
      1,
      [{ name: 'first', state: 'failing' }],
    ])
  })

  it('between two chunks end the response with an error', async () => {
    await using upstream = await startUpstream({ does: 'stall', pieces: ['Once'] })
    await using pool = createPool({ upstreams: [openaiUpstream(upstream.url)], timeouts: { idle: 50 } })
    expect(await expire(readBody(await pool.ask(createRequest())))).toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('did not answer in time'),
    })
    expect(await upstream.requests[0]?.outcome).toBe('hung up')
  })

  it('for the whole response end one that never stops', async () => {
    await using upstream = await startUpstream({ does: 'babble', pieces: ['Once'] })
    await using pool = createPool({ upstreams: [openaiUpstream(upstream.url)], timeouts: { total: 50 } })
    expect(await expire(readBody(await pool.ask(createRequest())))).toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('in 50 ms'),
    })
    expect(await upstream.requests[0]?.outcome).toBe('hung up')
  })
})
