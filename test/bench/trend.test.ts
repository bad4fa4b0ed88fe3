import { describe, expect, it } from 'vitest'
import { fitTrend, type Point } from '../../bench/soak/trend.ts'

const points = (values: readonly number[]): readonly Point[] => values.map((value, minute) => [minute, value])

describe('fitTrend', () => {
  it('of a steady rise › returns all of it, from the first to the last point', () => {
    const { first, last, slope, rise } = fitTrend(points([400, 410, 420, 430, 440]))
    expect([first, last, slope, rise.toFixed(6)]).toEqual([400, 440, 10, '0.100000'])
  })

  it('of values that vary around a constant › returns no rise', () => {
    const { rise, slope } = fitTrend(points([400, 420, 400, 420, 400]))
    expect([rise, slope]).toEqual([0, 0])
  })

  it('of one peak at the end › counts it as one of many', () => {
    const { rise } = fitTrend(points([...Array.from({ length: 99 }, () => 400), 800]))
    expect(rise).toBeGreaterThan(0)
    expect(rise).toBeLessThan(0.07)
  })
})
