import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Top } from '../../src/search/top.ts'

describe('the top of a ranking', () => {
  it('is what sorting everything would give', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 200 }),
        fc.integer({ min: 0, max: 30 }),
        (scores, most) => {
          const top = new Top(most)
          for (const [place, score] of scores.entries()) top.offer(place, score)
          const sorted = scores
            .map((score, place) => ({ place, score }))
            .sort((a, b) => b.score - a.score || b.place - a.place)
          expect(top.best()).toEqual(sorted.slice(0, most))
        },
      ),
    )
  })
})
