import { describe, expect, it } from 'vitest'
import { evaluateEvidence, evaluateFutureReference } from '../../src/evaluation/evaluate.ts'
import { generateDataset } from '../../src/evaluation/generate/generate.ts'
import { evaluateIsolation } from '../../src/evaluation/isolation.ts'
import { createProfileSystem } from '../../src/evaluation/systems/profile.ts'
import { evaluateUpdate } from '../../src/evaluation/update.ts'

/**
 * Regression gate of the default profile. Floors are the measured figures less about two points; raise them with every
 * improvement.
 */
const floors = {
  evidence: [
    { budget: 500, byTurn: 0.535, byWord: 0.545 },
    { budget: 1_000, byTurn: 0.635, byWord: 0.655 },
    { budget: 2_000, byTurn: 0.75, byWord: 0.81 },
  ],
  future: [
    { budget: 1_000, reused: 0.43 },
    { budget: 2_000, reused: 0.56 },
  ],
  update: [{ budget: 1_000, current: 24, maxStaleOnly: 1 }],
}
const dataset = generateDataset()
const system = createProfileSystem('thread')
const budgetsOf = (rows: readonly { readonly budget: number }[]): number[] => rows.map(({ budget }) => budget)

describe('thread on the generated dataset', () => {
  it('evidence by turn and by word › is not below the floor', async () => {
    const results = await evaluateEvidence(dataset, { system, budgets: budgetsOf(floors.evidence) })
    for (const [index, { budget, byTurn, byWord }] of floors.evidence.entries()) {
      const result = results[index]
      expect(result?.overBudget).toBe(0)
      expect(result?.byTurn, `by turn at ${budget}`).toBeGreaterThanOrEqual(byTurn)
      expect(result?.byWord, `by word at ${budget}`).toBeGreaterThanOrEqual(byWord)
    }
  })
  it('future reference › is not below the floor', async () => {
    const results = await evaluateFutureReference(dataset, { system, budgets: budgetsOf(floors.future) })
    for (const [index, { budget, reused }] of floors.future.entries()) {
      expect(results[index]?.overBudget).toBe(0)
      expect(results[index]?.reused, `at ${budget}`).toBeGreaterThanOrEqual(reused)
    }
  })
  it('update › shows the newest value as often as before', async () => {
    const results = await evaluateUpdate(dataset, { system, budgets: budgetsOf(floors.update) })
    for (const [index, { current, maxStaleOnly }] of floors.update.entries()) {
      expect(results[index]?.current).toBeGreaterThanOrEqual(current)
      expect(results[index]?.staleOnly).toBeLessThanOrEqual(maxStaleOnly)
    }
  })
  it('isolation › shows no foreign turn and the same contexts', async () => {
    const [result] = (await evaluateIsolation(dataset, { system, budgets: [1_000], limit: 40 })) ?? []
    expect(result).toMatchObject({ questions: 40, foreignTurns: 0, identical: 1 })
    expect(result?.sharedByTurn).toBe(result?.aloneByTurn)
  })
})
