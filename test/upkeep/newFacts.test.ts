import { describe, expect, it } from 'vitest'
import { createNewFactTest } from '../../src/upkeep/draft.ts'
import type { FactCandidate } from '../../src/upkeep/extract/fields.ts'
import { verifies } from '../requirements/verifies.ts'
import { measureCpu } from '../text/hostileTexts.ts'

const factOf = (fields: Partial<FactCandidate>): FactCandidate => ({
  ...{ field: 'important_facts', key: '', value: 'x', importance: 5, at: 0 },
  source: { message: 'm1', span: [10, 20] },
  ...fields,
})

describe('createNewFactTest', () => {
  it.each<[string, Partial<FactCandidate>, boolean]>([
    ['the same passage', {}, false],
    ['an overlapping passage', { source: { message: 'm1', span: [19, 30] } }, false],
    ['the passage after it', { source: { message: 'm1', span: [20, 30] } }, true],
    ['the same passage of another message', { source: { message: 'm2', span: [10, 20] } }, true],
    ['the same passage for another field', { field: 'key_decisions' }, true],
    ['the key of another passage', { key: 'home', source: { message: 'm9', span: [0, 5] } }, false],
    ['another key of another passage', { key: 'age', source: { message: 'm9', span: [0, 5] } }, true],
    ['a URL of the same passage', { field: 'source_urls' }, true],
  ])('for %s › returns if the fact is new', (_, fields, isNew) => {
    const known = [factOf({}), factOf({ field: 'source_urls' }), factOf({ key: 'home', source: { message: 'm5' } })]
    expect(createNewFactTest(known)(factOf(fields))).toBe(isNew)
  })

  verifies('R-03', 'for 25,000 facts and 4,000 known ones › takes linear time', () => {
    const facts = Array.from({ length: 25_000 }, (_, at) => factOf({ source: { message: `m${at}`, span: [0, 9] } }))
    const known = facts.slice(-4_000)
    expect(measureCpu(() => facts.filter(createNewFactTest(known)))).toBeLessThan(500)
  })
})
