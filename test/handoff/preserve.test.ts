import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { categories, evenWeights, type Weights } from '../../src/handoff/item.ts'
import { adapted, averageOf, preservation, preservationOf } from '../../src/handoff/preserve.ts'
import { verifies } from '../requirements/verifies.ts'
import { hostileText } from '../text/hostile.ts'
import { item } from './renderFixtures.ts'

const sum = (weights: Weights): number => Object.values(weights).reduce((total, weight) => total + weight, 0)

describe('preservation', () => {
  const original = 'Deploy src/app.ts to port 8080.\nNever deploy on Fridays.\nAnn likes tea.'

  verifies('H-14', 'is 1 for the whole, 0 for something else, and in between for a part', () => {
    expect(preservation(original, original)).toEqual({ similarity: expect.closeTo(1), facts: 1 })
    expect(preservation(original, 'Nothing of this kind.')).toEqual({ similarity: 0, facts: 0 })
    const { similarity } = preservation(original, 'Deploy src/app.ts to port 8080.')
    expect(similarity).toBeGreaterThan(0.5)
    expect(similarity).toBeLessThan(0.9)
  })
  verifies('H-14', 'counts the names, numbers, paths and constraints that are still there to the letter', () => {
    expect(preservation('See src/app.ts on port 8080.', 'It was port 8080.').facts).toBe(0.5)
    expect(preservation('See src/app.ts on port 8080.', 'It was src/app.tsx on port 18080.').facts).toBe(0)
    expect(preservation('Never deploy at night.', 'At night, deploy never.').facts).toBe(1)
    expect(preservation('Never deploy at night.', 'Deploy at night.').facts).toBe(0)
  })
  verifies(
    'H-14',
    'goes by what words mean more than by how they end, and by rare words more than by common ones',
    () => {
      expect(preservation('deploying the servers', 'deploy the server').similarity).toBeCloseTo(1)
      const text = 'the server is up\nthe server is slow\nthe server restarts\nquorum quorum quorum'
      expect(preservation(text, 'quorum').similarity).toBeGreaterThan(preservation(text, 'server').similarity)
    },
  )
  verifies('H-14', 'is measured for each category by itself', () => {
    const items = [
      item({ category: 'file', content: 'src/app.ts' }),
      item({ category: 'file', content: 'src/user.ts' }),
      item({ category: 'task', content: 'Call Ann' }),
    ]
    const found = preservationOf(items, 'Call Ann about src/app.ts, and much more that nobody has asked for.')
    expect(found.task).toEqual({ similarity: expect.closeTo(1), facts: 1 })
    expect(found.file?.facts).toBe(0.5)
    expect(Object.keys(found)).toEqual(['file', 'task'])
    expect(averageOf({ similarity: 0.6, facts: 1 })).toBe(0.8)
  })
  it('of nothing is whole', () => expect(preservation('', 'anything')).toEqual({ similarity: 1, facts: 1 }))
  it('is always from 0 to 1, and 1 for the same', () =>
    fc.assert(
      fc.property(hostileText, hostileText, (before, after) => {
        for (const value of Object.values(preservation(before, after))) expect(value >= 0 && value <= 1).toBe(true)
        expect(preservation(before, before).similarity).toBeCloseTo(1)
      }),
      { numRuns: 200 },
    ))
})

describe('adapting weights', () => {
  const weights = fc.record({
    code: fc.double(),
    file: fc.double({ min: 0, max: 10 }),
    data: fc.double({ min: 0.5, max: 2 }),
    concept: fc.double({ min: 0.5, max: 2 }),
    task: fc.double({ min: 0.5, max: 2 }),
  })
  const average = fc.double({ min: 0, max: 1, noNaN: true })
  const averages = fc.record(
    { code: average, file: average, data: average, concept: average, task: average },
    { requiredKeys: [] },
  )

  verifies(
    'H-14',
    'a category that averages under 0.8 weighs a tenth more than before, compared with the others',
    () => {
      const after = adapted(evenWeights, { code: 0.79, file: 0.8, data: 1 })
      expect(after.code / after.file).toBeCloseTo(1.1)
      expect([after.data, after.concept, after.task]).toEqual([after.file, after.file, after.file])
      expect(sum(after)).toBeCloseTo(5)
    },
  )
  verifies('H-14', 'nothing changes when all are preserved well, or all badly', () => {
    expect(adapted(evenWeights, {})).toEqual(evenWeights)
    const badly = adapted(evenWeights, { code: 0.1, file: 0.1, data: 0.1, concept: 0.1, task: 0.1 })
    for (const category of categories) expect(badly[category]).toBeCloseTo(1)
  })
  verifies('H-14', 'however often it is done, weights are from 0.5 to 2 and sum up to five', () => {
    let current = evenWeights
    for (let time = 0; time < 100; time++) current = adapted(current, { code: 0.1 })
    expect(current.code).toBeCloseTo(2)
    expect(current.task).toBeCloseTo(0.75)
    fc.assert(
      fc.property(weights, averages, (before, measured) => {
        const after = adapted(before, measured)
        expect(sum(after)).toBeCloseTo(5, 9)
        for (const category of categories) expect(after[category] >= 0.5 && after[category] <= 2).toBe(true)
      }),
      { numRuns: 500 },
    )
  })
})
