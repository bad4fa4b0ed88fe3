import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CategoryWeights, evenWeights, itemCategories } from '../../src/handoff/item.ts'
import {
  adaptWeights,
  averagePreservation,
  measurePreservation,
  measurePreservationByCategory,
} from '../../src/handoff/restore/preservation.ts'
import { verifies } from '../requirements/verifies.ts'
import { hostileText } from '../text/hostileTexts.ts'
import { item } from './renderFixtures.ts'

const sum = (weights: CategoryWeights): number => Object.values(weights).reduce((total, weight) => total + weight, 0)

describe('measurePreservation', () => {
  const original = 'Deploy src/app.ts to port 8080.\nNever deploy on Fridays.\nAnn likes tea.'

  verifies('H-14', 'returns 1 for the same text, 0 for an unrelated one, and a value in between for a part', () => {
    expect(measurePreservation(original, original)).toEqual({ similarity: expect.closeTo(1), facts: 1 })
    expect(measurePreservation(original, 'Nothing of this kind.')).toEqual({ similarity: 0, facts: 0 })
    const { similarity } = measurePreservation(original, 'Deploy src/app.ts to port 8080.')
    expect(similarity).toBeGreaterThan(0.5)
    expect(similarity).toBeLessThan(0.9)
  })
  verifies('H-14', 'returns exactly 1 for a text that is shown completely among other texts', () => {
    const restored = `# Title\nRecord of another chat.\n\n## Notes\n- tea for Ann\n\n[user]\n${original}\n\nSave it to port 9.`
    expect(measurePreservation(original, restored)).toEqual({ similarity: 1, facts: 1 })
  })
  verifies('R-03', 'reads the start of a run without a space, wherever it is in its line', () => {
    const run = Array.from({ length: 40_000 }, (_, at) => String.fromCharCode(0x4e00 + ((at * 7_919) % 20_011))).join(
      '',
    )
    const text = `一 ${run} end`
    expect(
      measurePreservation(text, `${'other words '.repeat(900)}\n${'before '.repeat(1_100)}${text}`).similarity,
    ).toBe(1)
    expect(measurePreservation(text, `一 ${run.slice(0, 16_384)} end`).similarity).toBe(1)
    expect(measurePreservation(text, `一 ${run.slice(0, 8_000)} end`).similarity).toBeLessThan(0.9)
  })
  verifies('H-14', 'counts names, numbers, paths and constraints that occur verbatim', () => {
    expect(measurePreservation('See src/app.ts on port 8080.', 'It was port 8080.').facts).toBe(0.5)
    expect(measurePreservation('See src/app.ts on port 8080.', 'It was src/app.tsx on port 18080.').facts).toBe(0)
    expect(measurePreservation('Never deploy at night.', 'At night, deploy never.').facts).toBe(1)
    expect(measurePreservation('Never deploy at night.', 'Deploy at night.').facts).toBe(0)
  })
  verifies('H-14', 'ignores inflection and weighs rare words higher', () => {
    expect(measurePreservation('deploying the servers', 'deploy the server').similarity).toBeCloseTo(1)
    const text = 'the server is up\nthe server is slow\nthe server restarts\nquorum quorum quorum'
    expect(measurePreservation(text, 'quorum').similarity).toBeGreaterThan(
      measurePreservation(text, 'server').similarity,
    )
  })
  verifies('H-14', 'measures each category separately', () => {
    const items = [
      item({ category: 'file', content: 'src/app.ts' }),
      item({ category: 'file', content: 'src/user.ts' }),
      item({ category: 'task', content: 'Call Ann' }),
    ]
    const byCategory = measurePreservationByCategory(
      items,
      'Call Ann about src/app.ts, and much more that nobody has asked for.',
    )
    expect(byCategory.task).toEqual({ similarity: expect.closeTo(1), facts: 1 })
    expect(byCategory.file?.facts).toBe(0.5)
    expect(Object.keys(byCategory)).toEqual(['file', 'task'])
    expect(averagePreservation({ similarity: 0.6, facts: 1 })).toBe(0.8)
  })
  it('of an empty original returns 1', () =>
    expect(measurePreservation('', 'anything')).toEqual({ similarity: 1, facts: 1 }))
  it('with arbitrary texts returns values from 0 to 1, and 1 for the same text', () =>
    fc.assert(
      fc.property(hostileText, hostileText, (before, after) => {
        for (const value of Object.values(measurePreservation(before, after)))
          expect(value >= 0 && value <= 1).toBe(true)
        expect(measurePreservation(before, before).similarity).toBeCloseTo(1)
      }),
      { numRuns: 200 },
    ))
})

describe('adaptWeights', () => {
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

  verifies('H-14', 'with an average under 0.8 raises the category by a tenth relative to the others', () => {
    const after = adaptWeights(evenWeights, { code: 0.79, file: 0.8, data: 1 })
    expect(after.code / after.file).toBeCloseTo(1.1)
    expect([after.data, after.concept, after.task]).toEqual([after.file, after.file, after.file])
    expect(sum(after)).toBeCloseTo(5)
  })
  verifies('H-14', 'with all categories well or all badly preserved changes nothing', () => {
    expect(adaptWeights(evenWeights, {})).toEqual(evenWeights)
    const allRaised = adaptWeights(evenWeights, { code: 0.1, file: 0.1, data: 0.1, concept: 0.1, task: 0.1 })
    for (const category of itemCategories) expect(allRaised[category]).toBeCloseTo(1)
  })
  verifies('H-14', 'applied repeatedly keeps weights within 0.5 to 2 and their sum at five', () => {
    let current = evenWeights
    for (let time = 0; time < 100; time++) current = adaptWeights(current, { code: 0.1 })
    expect(current.code).toBeCloseTo(2)
    expect(current.task).toBeCloseTo(0.75)
    fc.assert(
      fc.property(weights, averages, (before, measured) => {
        const after = adaptWeights(before, measured)
        expect(sum(after)).toBeCloseTo(5, 9)
        for (const category of itemCategories) expect(after[category] >= 0.5 && after[category] <= 2).toBe(true)
      }),
      { numRuns: 500 },
    )
  })
})
