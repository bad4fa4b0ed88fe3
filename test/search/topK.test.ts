import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TopK } from '../../src/search/topK.ts'

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
