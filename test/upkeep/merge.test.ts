import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Fact, Json } from '../../src/domain/entry.ts'
import { type FactCandidate, type FactField, factFields } from '../../src/upkeep/extract/fields.ts'
import { factsAsOf, mergeFacts, mergeFactsInSteps } from '../../src/upkeep/extract/merge.ts'
import { buildRecord } from '../../src/upkeep/record.ts'
import { verifies } from '../requirements/verifies.ts'
import { measureCpu } from '../text/hostileTexts.ts'

const candidate = (
  field: FactField,
  key: string,
  value: Json,
  at = 1,
  span: readonly [number, number] = [0, 9],
  importance = 8,
): FactCandidate => ({
  field,
  key,
  value,
  importance,
  at,
  source: { message: `m${at}`, span },
})
const prefers = (key: string, value: Json, at = 1, span: readonly [number, number] = [0, 9]): FactCandidate =>
  candidate('user_preferences', key, value, at, span)

/** Merges batches one after another and returns all facts. */
function mergeBatches(
  batches: readonly (readonly FactCandidate[])[],
  maxFacts?: number,
  existing: readonly Fact[] = [],
): readonly Fact[] {
  return batches.reduce<readonly Fact[]>((facts, batch, turn) => {
    const { put, drop } = mergeFacts(facts, batch, {
      at: 0,
      createId: (index) => `f${turn}.${index}`,
      ...(maxFacts === undefined ? {} : { maxFacts: maxFacts }),
    })
    const replaced = new Set([...drop, ...put.map(({ id }) => id)])
    return [...facts.filter(({ id }) => !replaced.has(id)), ...put]
  }, existing)
}

describe('mergeFacts', () => {
  verifies(
    'C-06',
    'with the example of the source document merges objects by key and removes duplicates from lists',
    () => {
      const before = [prefers('theme', 'dark'), candidate('source_urls', '', 'url1')]
      const after = [
        prefers('font', 'arial', 2),
        candidate('source_urls', '', 'url2', 2),
        candidate('source_urls', '', 'url1', 3),
      ]
      const { user_preferences, source_urls } = buildRecord(mergeBatches([before, after])).important_data
      expect(user_preferences).toEqual({ theme: 'dark', font: 'arial' })
      expect(source_urls).toEqual(['url1', 'url2'])
    },
  )
  verifies(['C-06', 'X-10'], 'with a newer value supersedes the older one and keeps it in history', () => {
    const { put, drop } = mergeFacts(mergeBatches([[prefers('theme', 'dark', 1)]]), [prefers('theme', 'light', 5)], {
      at: 9,
      createId: (index) => `new${index}`,
    })
    expect(put).toEqual([
      {
        kind: 'fact',
        id: 'f0.0',
        at: 1,
        field: 'user_preferences',
        key: 'theme',
        value: 'dark',
        importance: 8,
        sources: [{ message: 'm1', span: [0, 9] }],
        until: 5,
      },
      {
        kind: 'fact',
        id: 'new0',
        at: 5,
        field: 'user_preferences',
        key: 'theme',
        value: 'light',
        importance: 8,
        sources: [{ message: 'm5', span: [0, 9] }],
        supersedes: 'f0.0',
      },
    ])
    expect(drop).toEqual([])
  })
  verifies('X-10', 'keeps the values that held at an earlier time', () => {
    const facts = mergeBatches([
      [prefers('theme', 'dark', 10)],
      [prefers('theme', 'light', 20), prefers('font', 'Arial', 30)],
    ])
    const preferencesAt = (at: number): unknown => buildRecord(facts, at).important_data.user_preferences
    expect([preferencesAt(9), preferencesAt(10), preferencesAt(19), preferencesAt(20), preferencesAt(30)]).toEqual([
      {},
      { theme: 'dark' },
      { theme: 'dark' },
      { theme: 'light' },
      { theme: 'light', font: 'Arial' },
    ])
    expect(factsAsOf(facts, 15).map(({ value }) => value)).toEqual(['dark'])
  })
  verifies('X-10', 'with a value mentioned earlier inserts it into history without replacing the newer one', () => {
    const facts = mergeBatches([
      [prefers('theme', 'dark', 1), prefers('theme', 'light', 9)],
      [prefers('theme', 'sepia', 5)],
    ])
    expect(buildRecord(facts).important_data.user_preferences).toEqual({ theme: 'light' })
    expect([1, 5, 9].map((at) => factsAsOf(facts, at).map(({ value }) => value))).toEqual([
      ['dark'],
      ['sepia'],
      ['light'],
    ])
    expect(facts.find(({ value }) => value === 'light')?.supersedes).toBe(
      facts.find(({ value }) => value === 'sepia')?.id,
    )
  })
  it('with several values in one message uses the last', () => {
    const facts = mergeBatches([
      [
        prefers('theme', 'dark', 1, [0, 9]),
        prefers('theme', 'light', 1, [10, 19]),
        prefers('theme', 'dark', 1, [20, 29]),
      ],
    ])
    expect(factsAsOf(facts, 1).map(({ value }) => value)).toEqual(['dark'])
    expect(facts).toHaveLength(3)
  })
  it('treats values that differ in case, white space or a full stop as equal, and cites each message once', () => {
    const [fact, ...others] = mergeBatches([
      [prefers('theme', 'dark', 1)],
      [prefers('theme', ' Dark.', 2), prefers('theme', 'DARK', 2, [50, 60])],
    ])
    expect(others).toEqual([])
    expect(fact?.value).toBe('dark')
    expect(fact?.sources).toEqual([
      { message: 'm1', span: [0, 9] },
      { message: 'm2', span: [0, 9] },
    ])
  })
  it('cites at most eight messages per fact', () => {
    const [fact] = mergeBatches([Array.from({ length: 20 }, (_, index) => candidate('entities', '', 'Ana', index + 1))])
    expect(fact?.sources.map(({ message }) => message)).toEqual(['m1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7', 'm8'])
  })
  it('replaces a list value of a key', () => {
    const structure = (sections: string[], at: number) => candidate('document_structure', 'sections', sections, at)
    const facts = mergeBatches([[structure(['A', 'B'], 1)], [structure(['A', 'B', 'C'], 2)]])
    expect(buildRecord(facts).important_data.document_structure).toEqual({ sections: ['A', 'B', 'C'] })
    expect(buildRecord(facts, 1).important_data.document_structure).toEqual({ sections: ['A', 'B'] })
  })
  it('orders list values by mention, regardless of the order of merging', () => {
    const facts = mergeBatches([
      [candidate('key_decisions', '', 'second', 20)],
      [candidate('key_decisions', '', 'third', 30), candidate('key_decisions', '', 'first', 10)],
    ])
    expect(buildRecord(facts).important_data.key_decisions).toEqual(['first', 'second', 'third'])
    expect(
      mergeBatches([[candidate('entities', '', 'Ana', 9)], [candidate('entities', '', 'Ana', 3)]])[0],
    ).toMatchObject({
      at: 3,
      sources: [{ message: 'm3' }, { message: 'm9' }],
    })
  })
  it('restores a repeated value after the newer one was forgotten', () => {
    const [dark] = mergeBatches([[prefers('theme', 'dark', 1), prefers('theme', 'light', 5)]])
    const facts = mergeBatches([[prefers('theme', 'dark', 9)]], undefined, [{ ...(dark as Fact), id: 'old' }])
    expect([1, 4, 6, 9].map((at) => factsAsOf(facts, at).map(({ value }) => value))).toEqual([
      ['dark'],
      ['dark'],
      [],
      ['dark'],
    ])
  })
  it('without a time uses the time of merging', () =>
    expect(
      mergeFacts([], [{ ...prefers('theme', 'dark'), at: Number.NaN }], { at: 77, createId: String }).put[0]?.at,
    ).toBe(77))
})

describe('mergeFacts: thousands of facts', () => {
  const count = 5_000
  const facts = Array.from({ length: count }, (_, at) =>
    candidate('important_facts', `deadline.d${at}`, `${at} May`, at),
  )
  const options = { at: 0, createId: String }

  verifies('R-03', 'that change others › are merged in seconds', () => {
    const changes = facts.map((fact) => ({ ...fact, revises: true as const }))
    expect(measureCpu(() => mergeFacts([], changes, options))).toBeLessThan(2_000)
  })

  it.each([
    ['that is not known', (at: number) => `We use box ${at}`, (at: number) => `crate ${at}`],
    ['of the fact before', (at: number) => `We use box ${at}`, (at: number) => `box ${at - 1}`],
    ['whose words all have in another order', () => 'We use a crate, a box and a bag', () => 'box crate'],
  ])('that replace a value %s › are merged in seconds', (_, textOf, replacedBy) => {
    const changes = Array.from({ length: 8_000 }, (_, at) => ({
      ...candidate('key_decisions', '', `${textOf(at)} in room ${at}`, at),
      replaces: replacedBy(at),
    }))
    expect(measureCpu(() => mergeFacts([], changes, options))).toBeLessThan(4_000)
  })

  verifies('R-03', 'that repeat two values of a slot › are compared with few of the other facts', () => {
    let reads = 0
    const sourceOf = (at: number, start: number): FactCandidate['source'] => ({
      get message() {
        reads++
        return `m${at}`
      },
      span: [start, start + 9],
    })
    const homes = facts.map((fact, index) => ({
      ...fact,
      key: 'home',
      value: index % 2 === 0 ? 'Rome' : 'Bonn',
      at: Math.floor(index / 40),
      source: sourceOf(Math.floor(index / 40), 10 * (index % 40)),
    }))
    mergeFacts([], homes, options)
    expect(reads).toBeLessThan(200 * count)
  })

  verifies('R-03', 'in steps › returns to the caller after each one', () => {
    expect([...mergeFactsInSteps([], facts, options)].length).toBe(count)
  })
})

describe('mergeFacts: limit', () => {
  it('drops facts superseded longest ago first, then the least important and oldest', () => {
    const first = [prefers('theme', 'dark', 1), prefers('theme', 'light', 3), prefers('theme', 'sepia', 5)]
    const batch = [
      ...first,
      candidate('entities', '', 'Ana', 6, [0, 3], 3),
      candidate('entities', '', 'Bo', 7, [0, 3], 3),
      candidate('important_facts', '', 'X', 2, [0, 3], 6),
    ]
    const remaining = (maxFacts: number): unknown[] =>
      mergeBatches([batch], maxFacts)
        .map(({ value }) => value)
        .sort()
    expect(remaining(5)).toEqual(['Ana', 'Bo', 'X', 'light', 'sepia'])
    expect(remaining(4)).toEqual(['Ana', 'Bo', 'X', 'sepia'])
    expect(remaining(3)).toEqual(['Bo', 'X', 'sepia'])
    expect(remaining(1)).toEqual(['sepia'])
  })
  it('returns the dropped ids and does not add them again', () => {
    const candidates = [prefers('theme', 'dark', 1), prefers('theme', 'light', 2)]
    const facts = mergeBatches([candidates])
    expect(mergeFacts(facts, [], { at: 9, createId: String, maxFacts: 1 })).toEqual({ put: [], drop: ['f0.0'] })
    expect(mergeFacts(facts.slice(1), candidates, { at: 9, createId: String })).toEqual({ put: [], drop: [] })
  })
  it('is 400 facts by default', () =>
    expect(
      mergeBatches([Array.from({ length: 450 }, (_, index) => candidate('entities', '', `name ${index}`, index))]),
    ).toHaveLength(400))
})

const anyCandidate: fc.Arbitrary<FactCandidate> = fc
  .record({
    field: fc.constantFrom(...factFields),
    key: fc.constantFrom('theme', 'font', '__proto__', 'constructor', 'toString'),
    value: fc.oneof(fc.constantFrom<Json>('a', 'B', 'b.', 'c ', '__proto__'), fc.constantFrom<Json>(['x'], ['x', 'y'])),
    at: fc.integer({ min: 1, max: 6 }),
    start: fc.integer({ min: 0, max: 3 }),
    importance: fc.integer({ min: 0, max: 10 }),
  })
  .map(({ field, key, value, at, start, importance }) => {
    const isList = ['key_decisions', 'important_facts', 'source_urls', 'entities'].includes(field)
    return candidate(field, isList ? '' : key, value, at, [10 * start, 10 * start + 9], importance)
  })
const batch = fc.array(anyCandidate, { maxLength: 25 })

describe('mergeFacts: with arbitrary facts', () => {
  verifies('C-06', 'is idempotent', () =>
    fc.assert(
      fc.property(batch, fc.constantFrom(1, 3, 400), (all, maxFacts) => {
        const facts = mergeBatches([all], maxFacts)
        expect(mergeFacts(facts, all, { at: 0, createId: (index) => `again${index}`, maxFacts: maxFacts })).toEqual({
          put: [],
          drop: [],
        })
      }),
    ),
  )
  verifies(
    ['C-06', 'X-10'],
    'keeps one value per key at any time and each list value once, in the order of mention',
    () =>
      fc.assert(
        fc.property(fc.array(batch, { maxLength: 4 }), fc.integer({ min: 0, max: 7 }), (batches, at) => {
          const facts = mergeBatches(batches)
          const current = factsAsOf(facts, at).filter(({ key }) => key !== '')
          expect(new Set(current.map(({ field, key }) => `${field} ${key}`)).size).toBe(current.length)
          for (const field of ['key_decisions', 'entities'] as const) {
            const candidates = buildRecord(facts).important_data[field].map(
              (value) => facts.find((fact) => fact.field === field && fact.value === value)?.at ?? 0,
            )
            expect(candidates).toEqual([...candidates].sort((a, b) => a - b))
          }
        }),
      ),
  )
  verifies('C-06', 'treats `__proto__` and similar names as ordinary keys', () =>
    fc.assert(
      fc.property(batch, (all) => {
        const { important_data } = buildRecord(mergeBatches([all]))
        expect(Object.keys(important_data)).toEqual([...factFields])
        for (const value of Object.values(important_data))
          expect(Object.getPrototypeOf(value)).toBe(Array.isArray(value) ? Array.prototype : null)
        expect(({} as Record<string, unknown>).theme).toBeUndefined()
        expect(Object.keys(Object.prototype)).toEqual([])
      }),
    ),
  )
})
