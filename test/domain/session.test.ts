import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { countBetween, type Gap, withGap } from '../../src/domain/session.ts'

describe('gaps', () => {
  it('join with their neighbours', () => {
    expect(withGap([], 5)).toEqual([[5, 5]])
    expect(withGap([[5, 5]], 6)).toEqual([[5, 6]])
    expect(
      withGap(
        [
          [2, 3],
          [5, 6],
        ],
        4,
      ),
    ).toEqual([[2, 6]])
    expect(withGap([[2, 3]], 9)).toEqual([
      [2, 3],
      [9, 9],
    ])
  })

  it('count what is left like a set of numbers would', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 1, max: 40 })),
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 0, max: 40 }),
        (gone, first, length) => {
          let gaps: readonly Gap[] = []
          for (const sequence of gone) gaps = withGap(gaps, sequence)
          const last = first + length - 1
          const left = Array.from({ length }, (_, at) => first + at).filter((sequence) => !gone.includes(sequence))
          expect(countBetween(gaps, first, last)).toBe(left.length)
          expect(gaps).toEqual([...gaps].sort((a, b) => a[0] - b[0]))
        },
      ),
    )
  })
})
