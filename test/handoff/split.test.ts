import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { flowed, split } from '../../src/handoff/split.ts'
import { verifies } from '../requirements/verifies.ts'

const amount = fc.nat({ max: 20_000 })
const wants = fc.record({ code: amount, conversation: amount, metadata: amount })
const sum = (amounts: Readonly<Record<string, number>>): number =>
  Object.values(amounts).reduce((total, one) => total + one, 0)

describe('the split of a budget', () => {
  verifies('H-12', 'is 60, 30 and 10 percent with code, and 70 and 30 without', () => {
    expect(split(4_000, true)).toEqual({ code: 2_400, conversation: 1_200, metadata: 400 })
    expect(split(4_000, false)).toEqual({ code: 0, conversation: 2_800, metadata: 1_200 })
    expect(split(7, true)).toEqual({ code: 4, conversation: 3, metadata: 0 })
  })
  verifies(
    'H-12',
    'is exact when there is plenty of everything, and a share that nobody wants is given to the others',
    () => {
      const shares = split(1_000, true)
      expect(flowed(shares, { code: 9_000, conversation: 9_000, metadata: 9_000 })).toEqual(shares)
      expect(flowed(shares, { code: 100, conversation: 9_000, metadata: 50 })).toEqual({
        code: 100,
        conversation: 850,
        metadata: 50,
      })
      expect(flowed(shares, { code: 9_000, conversation: 100, metadata: 0 })).toEqual({
        code: 900,
        conversation: 100,
        metadata: 0,
      })
      expect(flowed(shares, { code: 1, conversation: 2, metadata: 3 })).toEqual({
        code: 1,
        conversation: 2,
        metadata: 3,
      })
    },
  )
  verifies('H-12', 'keeps every promise, wastes nothing, and never gives more than there is', () =>
    fc.assert(
      fc.property(amount, fc.boolean(), wants, (budget, hasCode, wanted) => {
        const shares = split(budget, hasCode)
        const rooms = flowed(shares, wanted)
        expect(sum(shares)).toBe(budget)
        expect(sum(rooms)).toBe(Math.min(budget, sum(wanted)))
        for (const part of ['code', 'conversation', 'metadata'] as const) {
          expect(rooms[part]).toBeLessThanOrEqual(wanted[part])
          expect(rooms[part]).toBeGreaterThanOrEqual(Math.min(shares[part], wanted[part]))
        }
      }),
    ),
  )
})
