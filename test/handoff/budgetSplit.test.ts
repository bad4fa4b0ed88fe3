import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { allocate, splitBudget } from '../../src/handoff/render/budget.ts'
import { verifies } from '../requirements/verifies.ts'

const amount = fc.nat({ max: 20_000 })
const demands = fc.record({ code: amount, conversation: amount, metadata: amount })
const sum = (amounts: Readonly<Record<string, number>>): number =>
  Object.values(amounts).reduce((total, tokens) => total + tokens, 0)

describe('budget split', () => {
  verifies('H-12', 'is 60, 30 and 10 percent with code, and 70 and 30 without', () => {
    expect(splitBudget(4_000, true)).toEqual({ code: 2_400, conversation: 1_200, metadata: 400 })
    expect(splitBudget(4_000, false)).toEqual({ code: 0, conversation: 2_800, metadata: 1_200 })
    expect(splitBudget(7, true)).toEqual({ code: 4, conversation: 3, metadata: 0 })
  })
  verifies('H-12', 'with enough demand gives each part its share, and otherwise passes unused tokens on', () => {
    const shares = splitBudget(1_000, true)
    expect(allocate(shares, { code: 9_000, conversation: 9_000, metadata: 9_000 })).toEqual(shares)
    expect(allocate(shares, { code: 100, conversation: 9_000, metadata: 50 })).toEqual({
      code: 100,
      conversation: 850,
      metadata: 50,
    })
    expect(allocate(shares, { code: 9_000, conversation: 100, metadata: 0 })).toEqual({
      code: 900,
      conversation: 100,
      metadata: 0,
    })
    expect(allocate(shares, { code: 1, conversation: 2, metadata: 3 })).toEqual({
      code: 1,
      conversation: 2,
      metadata: 3,
    })
  })
  verifies('H-12', 'with any demand guarantees each share, uses all demanded tokens and never exceeds the budget', () =>
    fc.assert(
      fc.property(amount, fc.boolean(), demands, (budget, hasCode, demand) => {
        const shares = splitBudget(budget, hasCode)
        const allocated = allocate(shares, demand)
        expect(sum(shares)).toBe(budget)
        expect(sum(allocated)).toBe(Math.min(budget, sum(demand)))
        for (const part of ['code', 'conversation', 'metadata'] as const) {
          expect(allocated[part]).toBeLessThanOrEqual(demand[part])
          expect(allocated[part]).toBeGreaterThanOrEqual(Math.min(shares[part], demand[part]))
        }
      }),
    ),
  )
})
