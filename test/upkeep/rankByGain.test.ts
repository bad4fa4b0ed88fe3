import { describe, expect, it } from 'vitest'
import { type Content, rankByGain } from '../../src/upkeep/summarise/score.ts'

const content = (index: number, factor = 1): Content => ({ words: 5, factor, terms: new Map([[`term ${index}`, 1]]) })

/** Runs the ranking; returns its order and the sum of its work. */
function rank(contents: readonly Content[], needs: readonly (number | undefined)[]) {
  const steps = rankByGain(contents, needs)
  let work = 0
  let step = steps.next()
  for (; step.done !== true; step = steps.next()) work += step.value
  return { order: step.value, work }
}

describe('rankByGain', () => {
  it('puts texts after the ones they need, unless they are much better', () => {
    expect(rank([content(0), content(1, 1.2)], [undefined, 0]).order).toEqual([0, 1])
    expect(rank([content(0), content(1, 3)], [undefined, 0]).order).toEqual([1, 0])
  })

  it('with a chain in which each text needs the one before › takes linear work, and loses none', () => {
    const chain = (length: number) =>
      rank(
        // The later a text, the better: all come to the top before the first one.
        Array.from({ length }, (_, index) => content(index, 1 + index / length)),
        Array.from({ length }, (_, index) => (index === 0 ? undefined : index - 1)),
      )
    expect(chain(4_000).order.toSorted((left, right) => left - right)).toEqual([...Array(4_000).keys()])
    expect(chain(4_000).work / chain(500).work).toBeLessThan(12)
  })
})
