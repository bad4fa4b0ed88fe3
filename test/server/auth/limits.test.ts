import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Limits, visitorOf } from '../../../src/server/auth/limits.ts'
import { Refusal } from '../../../src/server/http/httpError.ts'

const second = 1000
/** What a visitor is told: nothing if it is let in. */
const told = (enter: () => unknown): unknown => {
  try {
    enter()
    return 'in'
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const { status, type, code, message, headers } = error
    return `${status} ${type} ${code}: ${message} (${headers['retry-after']}, ${headers['x-should-retry']})`
  }
}
const tooFast = (wait: string, after: string) =>
  `429 rate_limit_error rate_limit_exceeded: At most 2 requests per minute are allowed. Try again in ${wait}. (${after}, true)`
const tooMany =
  '429 rate_limit_error too_many_concurrent_requests: At most 2 requests may be under way at the same time. Try again in a second. (1, true)'
const busy =
  '429 rate_limit_error server_busy: This server has too many requests under way. Try again in a second. (1, true)'

describe('a visitor', () => {
  it('may ask so often, and is told when to come again', () => {
    const limits = new Limits({ perMinute: 2 })
    const ask = (now: number) => told(() => limits.enter('ann', now)())
    expect([ask(0), ask(0), ask(0)]).toEqual(['in', 'in', tooFast('30 seconds', '30')])
    expect([ask(29.5 * second), ask(30 * second), ask(30 * second)]).toEqual([
      tooFast('a second', '1'),
      'in',
      tooFast('30 seconds', '30'),
    ])
    expect(told(() => limits.enter('ben', 30 * second))).toBe('in')
  })

  it('gains nothing when a clock is set back', () => {
    const limits = new Limits({ perMinute: 2 })
    const ask = (now: number) => told(() => limits.enter('ann', now)())
    expect([ask(90 * second), ask(90 * second), ask(0), ask(second)]).toEqual([
      'in',
      'in',
      tooFast('30 seconds', '30'),
      tooFast('29 seconds', '29'),
    ])
  })

  it('may have so many requests under way, and leaves once', () => {
    const limits = new Limits({ abreast: 2 })
    const leave = limits.enter('ann', 0)
    limits.enter('ann', 0)
    expect(told(() => limits.enter('ann', 0))).toBe(tooMany)
    leave()
    leave()
    expect([told(() => limits.enter('ann', 0)), told(() => limits.enter('ann', 0))]).toEqual(['in', tooMany])
  })

  it('shares the server with all others', () => {
    const limits = new Limits({ total: 2 })
    const leave = limits.enter('ann', 0)
    limits.enter('ben', 0)
    expect(told(() => limits.enter('eve', 0))).toBe(busy)
    leave()
    expect(told(() => limits.enter('eve', 0))).toBe('in')
  })

  it('is not limited where there are no limits', () => {
    const limits = new Limits({})
    for (let at = 0; at < 1000; at++) expect(told(() => limits.enter('ann', at % 2))).toBe('in')
    expect(() => new Limits({ perMinute: 0 })).toThrow('perMinute is 0; it must be a whole number, 1 or more.')
  })

  it('never gets more than its share in any minute that begins with a full one', () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 20 * second }), { maxLength: 60 })
    fc.assert(
      fc.property(gaps, fc.integer({ min: 1, max: 10 }), (waits, perMinute) => {
        const limits = new Limits({ perMinute })
        let now = 0
        let entered = 0
        for (const wait of waits) {
          now += wait
          if (told(() => limits.enter('ann', now)()) === 'in') entered++
          expect(entered).toBeLessThanOrEqual(perMinute + Math.floor((now / 60_000) * perMinute + 1e-6))
        }
      }),
    )
  })
})

describe('those who left', () => {
  it('are forgotten when they have all their requests left again', () => {
    const limits = new Limits({ perMinute: 5 })
    const leave = limits.enter('stays', 0)
    for (let at = 0; at < 100; at++) limits.enter(`visitor ${at}`, 1)()
    expect(limits.size).toBe(101)
    for (let at = 0; at < 100; at++) told(() => limits.enter('other', 60_001 + at)())
    expect(limits.size).toBe(2)
    leave()
  })

  it('are never more than can be remembered', () => {
    const limits = new Limits({ perMinute: 5 })
    for (let at = 0; at < 25_000; at++) limits.enter(`visitor ${at}`, 1)()
    expect(limits.size).toBe(10_000)
  })
})

describe('who is counted', () => {
  it('is the holder of a key, else an address or the network it is in', () => {
    const credential = { id: '7fK2mQ9x', name: '', scopes: ['acme'], rights: 'use', createdAt: 0 } as const
    expect(visitorOf(credential, '10.0.0.1')).toBe('key 7fK2mQ9x')
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
    expect(addresses.map((address) => visitorOf(undefined, address))).toEqual([
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
