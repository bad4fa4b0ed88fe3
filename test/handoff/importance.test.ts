import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  compareByPriority,
  computeImportance,
  frequencyFactor,
  recencyFactor,
  scoreFactors,
  specificityFactor,
} from '../../src/handoff/item.ts'
import { verifies } from '../requirements/verifies.ts'
import { item } from './renderFixtures.ts'

const fraction = fc.double({ min: 0, max: 1, noNaN: true })
const factors = fc.record({
  recency: fraction,
  frequency: fraction,
  specificity: fraction,
  type: fraction,
  marking: fc.constant(0),
})
const zeroFactors = { recency: 0, frequency: 0, specificity: 0, type: 0, marking: 0 }

describe('importance', () => {
  verifies(
    'H-03',
    'has a recency of one half after 1000 tokens, full frequency with eight messages, and specificity by name count',
    () => {
      expect([0, 1_000, 3_000].map(recencyFactor)).toEqual([1, 0.5, 0.25])
      expect([0, 1, 2, 8, 100].map(frequencyFactor)).toEqual([0, 0, 1 / 3, 1, 1])
      expect([0, 1, 3].map(specificityFactor)).toEqual([0, 0.5, 0.75])
    },
  )
  verifies('H-03', 'is from 1 to 9, and 10 only for marked items', () => {
    expect(computeImportance(zeroFactors)).toBe(1)
    expect(computeImportance({ recency: 1, frequency: 1, specificity: 1, type: 1, marking: 0 }, 2)).toBe(9)
    expect(computeImportance({ ...zeroFactors, marking: 1 }, 0.5)).toBe(10)
  })
  verifies('H-03', 'never falls when a factor rises', () =>
    fc.assert(
      fc.property(
        factors,
        fc.constantFrom('recency', 'frequency', 'specificity', 'type'),
        fraction,
        (given, name, value) => {
          const more = { ...given, [name]: Math.max(given[name], value) }
          expect(scoreFactors(more)).toBeGreaterThanOrEqual(scoreFactors(given))
          expect(computeImportance(more)).toBeGreaterThanOrEqual(computeImportance(given))
        },
      ),
    ),
  )
  verifies('H-03', 'with similarity weighs it as a quarter', () => {
    expect(scoreFactors({ ...zeroFactors, similarity: 1 })).toBe(0.25)
    expect(scoreFactors({ recency: 1, frequency: 1, specificity: 1, type: 1, marking: 0, similarity: 0 })).toBeCloseTo(
      0.75,
    )
  })
  it('sorts items in the same order regardless of input order', () => {
    const items = [item({ id: 'a', importance: 3 }), item({ id: 'b', importance: 9 }), item({ id: 'c', importance: 3 })]
    const order = (some: typeof items) => [...some].sort(compareByPriority).map(({ id }) => id)
    expect([order(items), order([...items].reverse())]).toEqual([
      ['b', 'a', 'c'],
      ['b', 'a', 'c'],
    ])
  })
})
