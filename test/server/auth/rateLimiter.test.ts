import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RateLimiter, rateLimitKey } from '../../../src/server/auth/rateLimiter.ts'
import { HttpError } from '../../../src/server/http/httpError.ts'

const secondMs = 1000
/** `admitted`, or the error of the refusal. */
const outcome = (enter: () => unknown): unknown => {
  try {
    enter()
    return 'admitted'
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    const { status, type, code, message, headers } = error
    return `${status} ${type} ${code}: ${message} (${headers['retry-after']}, ${headers['x-should-retry']})`
  }
}
const rateExceeded = (wait: string, after: string) =>
  `429 rate_limit_error rate_limit_exceeded: At most 2 requests per minute are allowed. Try again in ${wait}. (${after}, true)`
const concurrencyExceeded =
  '429 rate_limit_error too_many_concurrent_requests: At most 2 concurrent requests are allowed. Try again in a second. (1, true)'
const busy =
  '429 rate_limit_error server_busy: This server has too many requests in progress. Try again in a second. (1, true)'

describe('rate limit', () => {
  it('refuses requests beyond the rate and reports when to retry', () => {
    const limits = new RateLimiter({ requestsPerMinute: 2 })
    const ask = (now: number) => outcome(() => limits.acquire('ann', now)())
    expect([ask(0), ask(0), ask(0)]).toEqual(['admitted', 'admitted', rateExceeded('30 seconds', '30')])
    expect([ask(29.5 * secondMs), ask(30 * secondMs), ask(30 * secondMs)]).toEqual([
      rateExceeded('a second', '1'),
      'admitted',
      rateExceeded('30 seconds', '30'),
    ])
    expect(outcome(() => limits.acquire('ben', 30 * secondMs))).toBe('admitted')
  })

  it('with a clock that is set back adds no tokens', () => {
    const limits = new RateLimiter({ requestsPerMinute: 2 })
    const ask = (now: number) => outcome(() => limits.acquire('ann', now)())
    expect([ask(90 * secondMs), ask(90 * secondMs), ask(0), ask(secondMs)]).toEqual([
      'admitted',
      'admitted',
      rateExceeded('30 seconds', '30'),
      rateExceeded('29 seconds', '29'),
    ])
  })

  it('limits concurrent requests of one client, and releases once', () => {
    const limits = new RateLimiter({ concurrency: 2 })
    const release = limits.acquire('ann', 0)
    limits.acquire('ann', 0)
    expect(outcome(() => limits.acquire('ann', 0))).toBe(concurrencyExceeded)
    release()
    release()
    expect([outcome(() => limits.acquire('ann', 0)), outcome(() => limits.acquire('ann', 0))]).toEqual([
      'admitted',
      concurrencyExceeded,
    ])
  })

  it('limits concurrent requests of all clients', () => {
    const limits = new RateLimiter({ totalConcurrency: 2 })
    const release = limits.acquire('ann', 0)
    limits.acquire('ben', 0)
    expect(outcome(() => limits.acquire('eve', 0))).toBe(busy)
    release()
    expect(outcome(() => limits.acquire('eve', 0))).toBe('admitted')
  })

  it('without limits admits everything, and refuses invalid limits', () => {
    const limits = new RateLimiter({})
    for (let at = 0; at < 1000; at++) expect(outcome(() => limits.acquire('ann', at % 2))).toBe('admitted')
    expect(() => new RateLimiter({ requestsPerMinute: 0 })).toThrow(/ is 0; it must be a whole number, 1 or more\.$/)
  })

  it('never admits more than the rate plus one burst', () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 20 * secondMs }), { maxLength: 60 })
    fc.assert(
      fc.property(gaps, fc.integer({ min: 1, max: 10 }), (waits, perMinute) => {
        const limits = new RateLimiter({ requestsPerMinute: perMinute })
        let now = 0
        let entered = 0
        for (const wait of waits) {
          now += wait
          if (outcome(() => limits.acquire('ann', now)()) === 'admitted') entered++
          expect(entered).toBeLessThanOrEqual(perMinute + Math.floor((now / 60_000) * perMinute + 1e-6))
        }
      }),
    )
  })
})

describe('shared rate limit', () => {
  it('with counters that fail › asks them again after ten seconds, and limits on its own meanwhile', async () => {
    const asked: number[] = []
    const faults: unknown[] = []
    let now = 0
    let isDown = true
    const limits = new RateLimiter(
      { requestsPerMinute: 2 },
      {
        buckets: {
          take: async () => {
            asked.push(now)
            if (isDown) throw new Error('down')
            return 0
          },
        },
        onFault: (error) => faults.push(error),
      },
    )
    const ask = async (at: number) => {
      now = at * secondMs
      return limits.acquireShared('ann', now).then(
        (release) => release(),
        (error: HttpError) => error.code,
      )
    }
    const outcomes = [await ask(0), await ask(1), await ask(2)]
    isDown = false
    outcomes.push(await ask(9), await ask(10), await ask(11), await ask(12))
    expect(outcomes).toEqual([
      undefined,
      undefined,
      ...Array(2).fill('rate_limit_exceeded'),
      ...Array(3).fill(undefined),
    ])
    expect(asked).toEqual([0, 10, 11, 12].map((second) => second * secondMs))
    expect(faults).toHaveLength(1)
  })
})

describe('buckets', () => {
  it('are dropped when they are full again', () => {
    const limits = new RateLimiter({ requestsPerMinute: 5 })
    const release = limits.acquire('stays', 0)
    for (let at = 0; at < 100; at++) limits.acquire(`client ${at}`, 1)()
    expect(limits.size).toBe(101)
    for (let at = 0; at < 100; at++) outcome(() => limits.acquire('other', 60_001 + at)())
    expect(limits.size).toBe(2)
    release()
  })

  it('never exceed the maximum', () => {
    const limits = new RateLimiter({ requestsPerMinute: 5 })
    for (let at = 0; at < 25_000; at++) limits.acquire(`client ${at}`, 1)()
    expect(limits.size).toBe(10_000)
  })
})

describe('rateLimitKey', () => {
  it('returns the key, else the address or its IPv6 network', () => {
    const credential = { id: '7fK2mQ9x', name: '', scopes: ['acme'], rights: 'use', createdAt: 0 } as const
    expect(rateLimitKey(credential, '10.0.0.1')).toBe('key 7fK2mQ9x')
    const addresses = [
      '10.0.0.1',
      '::ffff:10.0.0.1',
      '2001:db8::1',
      '2001:DB8:0:0:ffff::2',
      '2001:db8:0:1::1',
      '::1',
      'fe80::1%eth0',
      undefined,
    ]
    expect(addresses.map((address) => rateLimitKey(undefined, address))).toEqual([
      'address 10.0.0.1',
      'address 10.0.0.1',
      'address 2001:db8:0:0',
      'address 2001:db8:0:0',
      'address 2001:db8:0:1',
      'address 0:0:0:0',
      'address fe80:0:0:0',
      'address ',
    ])
  })
})
