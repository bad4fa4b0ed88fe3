import { describe, expect, it } from 'vitest'
import { parseRetryAfter, retryDelay } from '../../src/domain/retry.ts'

const policy = { tries: 4, baseDelay: 500, maxDelay: 5_000 }

describe('retryDelay', () => {
  it('without the wish of a server › grows with each attempt and ends with the tries', () => {
    const delaysOf = (factor?: number): (number | undefined)[] =>
      [1, 2, 3, 4].map((attempts) =>
        retryDelay(attempts, factor === undefined ? policy : { ...policy, factor }, undefined),
      )
    expect(delaysOf()).toEqual([500, 1_000, 2_000, undefined])
    expect(delaysOf(3)).toEqual([500, 1_500, 4_500, undefined])
  })

  it('with jitter › is between half and all of the backoff, and leaves the wish of a server alone', () => {
    expect([0, 0.5, 1].map((random) => retryDelay(2, policy, undefined, () => random))).toEqual([500, 750, 1_000])
    expect(retryDelay(2, policy, 700, () => 0)).toBe(700)
  })

  it('with a wish above the maximum › is undefined', () => {
    expect([4_999, 5_000, 5_001].map((wish) => retryDelay(1, policy, wish))).toEqual([4_999, 5_000, undefined])
  })
})

describe('parseRetryAfter', () => {
  const parse = (headers: Readonly<Record<string, string>>, now?: number): number | undefined =>
    parseRetryAfter((name) => headers[name], now)
  const date = 'Mon, 02 Nov 2026 10:00:12 GMT'

  it('with milliseconds, seconds or a fraction › returns milliseconds', () => {
    expect(parse({ 'retry-after-ms': '250', 'retry-after': '9' })).toBe(250)
    expect([' 7 ', '1.5', '0'].map((text) => parse({ 'retry-after': text }))).toEqual([7_000, 1_500, 0])
  })

  it("with a date › compares it with the server's clock, else with the given time", () => {
    const now = Date.parse('Mon, 02 Nov 2026 10:00:02 GMT')
    expect(parse({ 'retry-after': date, date: 'Mon, 02 Nov 2026 10:00:00 GMT' }, now)).toBe(12_000)
    expect(parse({ 'retry-after': date }, now)).toBe(10_000)
    expect(parse({ 'retry-after': date }, now + 60_000)).toBe(0)
    expect(parse({ 'retry-after': date })).toBeUndefined()
  })

  it('with anything else › is undefined', () => {
    for (const text of ['', 'soon', '-3', '1,5', 'NaN']) expect(parse({ 'retry-after': text }, 0), text).toBeUndefined()
    expect(parse({ 'retry-after-ms': '-1' }, 0)).toBeUndefined()
  })
})
