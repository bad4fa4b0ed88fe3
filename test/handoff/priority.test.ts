import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { byPriority, frequencyOf, importanceOf, recencyOf, scoreOf, specificityOf } from '../../src/handoff/priority.ts'
import { verifies } from '../requirements/verifies.ts'
import { item } from './renderFixtures.ts'

const part = fc.double({ min: 0, max: 1, noNaN: true })
const factors = fc.record({ recency: part, frequency: part, specificity: part, type: part, marking: fc.constant(0) })
const none = { recency: 0, frequency: 0, specificity: 0, type: 0, marking: 0 }

describe('priority', () => {
  verifies(
    'H-03',
    'recency halves after a thousand tokens, frequency is full with eight messages, specificity grows with each name',
    () => {
      expect([0, 1_000, 3_000].map(recencyOf)).toEqual([1, 0.5, 0.25])
      expect([0, 1, 2, 8, 100].map(frequencyOf)).toEqual([0, 0, 1 / 3, 1, 1])
      expect([0, 1, 3].map(specificityOf)).toEqual([0, 0.5, 0.75])
    },
  )
  verifies('H-03', 'runs from 1 to 9, and only a marked item has 10', () => {
    expect(importanceOf(none)).toBe(1)
    expect(importanceOf({ recency: 1, frequency: 1, specificity: 1, type: 1, marking: 0 }, 2)).toBe(9)
    expect(importanceOf({ ...none, marking: 1 }, 0.5)).toBe(10)
  })
  verifies('H-03', 'never falls when a factor rises', () =>
    fc.assert(
      fc.property(
        factors,
        fc.constantFrom('recency', 'frequency', 'specificity', 'type'),
        part,
        (given, name, value) => {
          const more = { ...given, [name]: Math.max(given[name], value) }
          expect(scoreOf(more)).toBeGreaterThanOrEqual(scoreOf(given))
          expect(importanceOf(more)).toBeGreaterThanOrEqual(importanceOf(given))
        },
      ),
    ),
  )
  verifies('H-03', 'takes similarity as a quarter, where somebody can tell', () => {
    expect(scoreOf({ ...none, similarity: 1 })).toBe(0.25)
    expect(scoreOf({ recency: 1, frequency: 1, specificity: 1, type: 1, marking: 0, similarity: 0 })).toBeCloseTo(0.75)
  })
  it('is the same order, however the items come', () => {
    const items = [item({ id: 'a', importance: 3 }), item({ id: 'b', importance: 9 }), item({ id: 'c', importance: 3 })]
    const order = (some: typeof items) => [...some].sort(byPriority).map(({ id }) => id)
    expect([order(items), order([...items].reverse())]).toEqual([
      ['b', 'a', 'c'],
      ['b', 'a', 'c'],
    ])
  })
})
