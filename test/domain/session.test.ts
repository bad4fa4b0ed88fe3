import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addGap, countExisting, type Gap } from '../../src/domain/session.ts'

describe('withGap', () => {
  it('merges adjacent gaps', () => {
    expect(addGap([], 5)).toEqual([[5, 5]])
    expect(addGap([[5, 5]], 6)).toEqual([[5, 6]])
    expect(
      addGap(
        [
          [2, 3],
          [5, 6],
        ],
        4,
      ),
    ).toEqual([[2, 6]])
    expect(addGap([[2, 3]], 9)).toEqual([
      [2, 3],
      [9, 9],
    ])
  })

  it('keeps gaps ordered, and countBetween counts the remaining numbers', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 1, max: 40 })),
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 0, max: 40 }),
        (deleted, first, length) => {
          let gaps: readonly Gap[] = []
          for (const sequence of deleted) gaps = addGap(gaps, sequence)
          const last = first + length - 1
          const remaining = Array.from({ length }, (_, index) => first + index).filter(
            (sequence) => !deleted.includes(sequence),
          )
          expect(countExisting(gaps, first, last)).toBe(remaining.length)
          expect(gaps).toEqual([...gaps].sort((a, b) => a[0] - b[0]))
        },
      ),
    )
  })
})
