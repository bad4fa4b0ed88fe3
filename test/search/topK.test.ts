import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { selectHighest, TopK } from '../../src/search/topK.ts'

describe('TopK', () => {
  it('with any scores returns the same rows as a full sort', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 200 }),
        fc.integer({ min: 0, max: 30 }),
        (scores, capacity) => {
          const top = new TopK(capacity)
          for (const [row, score] of scores.entries()) top.push(row, score)
          const sorted = scores.map((score, row) => ({ row, score })).sort((a, b) => b.score - a.score || b.row - a.row)
          expect(top.sorted()).toEqual(sorted.slice(0, capacity))
        },
      ),
    )
  })
})

describe('selectHighest', () => {
  it('of any scores › returns at least the requested rows with the highest scores above 0, best first', () => {
    fc.assert(
      fc.property(
        fc.array(fc.float({ min: 0, max: 10, noNaN: true }), { maxLength: 300 }),
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 5 }),
        (values, count, step) => {
          const scores = Float32Array.from(values)
          const isEligible = (row: number): boolean => row % step === 0
          const expected = [...scores]
            .map((score, row) => ({ row, score }))
            .filter(({ row, score }) => score > 0 && isEligible(row))
            .sort((a, b) => b.score - a.score || b.row - a.row)
          const found = selectHighest(scores, scores.length, count, isEligible)
          expect(found.length).toBeGreaterThanOrEqual(Math.min(count, expected.length))
          expect(found).toEqual(expected.slice(0, found.length))
        },
      ),
    )
  })
})
