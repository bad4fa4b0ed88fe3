import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Fact, Json } from '../../src/domain/entry.ts'
import { type Field, type Found, fields } from '../../src/upkeep/extract.ts'
import { factsAsOf, mergeFacts } from '../../src/upkeep/merge.ts'
import { recordOf } from '../../src/upkeep/record.ts'
import { verifies } from '../requirements/verifies.ts'

const found = (
  field: Field,
  key: string,
  value: Json,
  at = 1,
  span: readonly [number, number] = [0, 9],
  importance = 8,
): Found => ({
  field,
  key,
  value,
  importance,
  at,
  source: { message: `m${at}`, span },
})
const prefers = (key: string, value: Json, at = 1, span: readonly [number, number] = [0, 9]): Found =>
  found('user_preferences', key, value, at, span)

/** The facts after merging batches one after another. */
function merged(
  batches: readonly (readonly Found[])[],
  most?: number,
  existing: readonly Fact[] = [],
): readonly Fact[] {
  return batches.reduce<readonly Fact[]>((facts, batch, turn) => {
    const { put, drop } = mergeFacts(facts, batch, {
      at: 0,
      id: (place) => `f${turn}.${place}`,
      ...(most === undefined ? {} : { most }),
    })
    const gone = new Set([...drop, ...put.map(({ id }) => id)])
    return [...facts.filter(({ id }) => !gone.has(id)), ...put]
  }, existing)
}

describe('merging', () => {
  verifies('C-06', 'the document’s example: objects merge by key, lists are de-duplicated', () => {
    const before = [prefers('theme', 'dark'), found('source_urls', '', 'url1')]
    const after = [
      prefers('font', 'arial', 2),
      found('source_urls', '', 'url2', 2),
      found('source_urls', '', 'url1', 3),
    ]
    const { user_preferences, source_urls } = recordOf(merged([before, after])).important_data
    expect(user_preferences).toEqual({ theme: 'dark', font: 'arial' })
    expect(source_urls).toEqual(['url1', 'url2'])
  })
  verifies(['C-06', 'X-10'], 'a newer value supersedes the older one, which stays in history', () => {
    const { put, drop } = mergeFacts(merged([[prefers('theme', 'dark', 1)]]), [prefers('theme', 'light', 5)], {
      at: 9,
      id: (place) => `new${place}`,
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
  verifies('X-10', 'what held at a time can still be asked for', () => {
    const facts = merged([
      [prefers('theme', 'dark', 10)],
      [prefers('theme', 'light', 20), prefers('font', 'Arial', 30)],
    ])
    const held = (at: number): unknown => recordOf(facts, at).important_data.user_preferences
    expect([held(9), held(10), held(19), held(20), held(30)]).toEqual([
      {},
      { theme: 'dark' },
      { theme: 'dark' },
      { theme: 'light' },
      { theme: 'light', font: 'Arial' },
    ])
    expect(factsAsOf(facts, 15).map(({ value }) => value)).toEqual(['dark'])
  })
  verifies('X-10', 'what is heard of late takes its place in history, not the newer value’s', () => {
    const facts = merged([[prefers('theme', 'dark', 1), prefers('theme', 'light', 9)], [prefers('theme', 'sepia', 5)]])
    expect(recordOf(facts).important_data.user_preferences).toEqual({ theme: 'light' })
    expect([1, 5, 9].map((at) => factsAsOf(facts, at).map(({ value }) => value))).toEqual([
      ['dark'],
      ['sepia'],
      ['light'],
    ])
    expect(facts.find(({ value }) => value === 'light')?.supersedes).toBe(
      facts.find(({ value }) => value === 'sepia')?.id,
    )
  })
  it('takes the last of several values in one message', () => {
    const facts = merged([
      [
        prefers('theme', 'dark', 1, [0, 9]),
        prefers('theme', 'light', 1, [10, 19]),
        prefers('theme', 'dark', 1, [20, 29]),
      ],
    ])
    expect(factsAsOf(facts, 1).map(({ value }) => value)).toEqual(['dark'])
    expect(facts).toHaveLength(3)
  })
  it('takes values that differ in case, white space or a full stop for one, and cites each message once', () => {
    const [fact, ...others] = merged([
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
  it('cites at most eight messages for one fact', () => {
    const [fact] = merged([Array.from({ length: 20 }, (_, place) => found('entities', '', 'Ana', place + 1))])
    expect(fact?.sources.map(({ message }) => message)).toEqual(['m1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7', 'm8'])
  })
  it('puts a newer list in the place of an older one', () => {
    const structure = (sections: string[], at: number) => found('document_structure', 'sections', sections, at)
    const facts = merged([[structure(['A', 'B'], 1)], [structure(['A', 'B', 'C'], 2)]])
    expect(recordOf(facts).important_data.document_structure).toEqual({ sections: ['A', 'B', 'C'] })
    expect(recordOf(facts, 1).important_data.document_structure).toEqual({ sections: ['A', 'B'] })
  })
  it('keeps a list in the order in which its values were said, whichever came in first', () => {
    const facts = merged([
      [found('key_decisions', '', 'second', 20)],
      [found('key_decisions', '', 'third', 30), found('key_decisions', '', 'first', 10)],
    ])
    expect(recordOf(facts).important_data.key_decisions).toEqual(['first', 'second', 'third'])
    expect(merged([[found('entities', '', 'Ana', 9)], [found('entities', '', 'Ana', 3)]])[0]).toMatchObject({
      at: 3,
      sources: [{ message: 'm3' }, { message: 'm9' }],
    })
  })
  it('lets a value hold again that is said again after the newer one was forgotten', () => {
    const [dark] = merged([[prefers('theme', 'dark', 1), prefers('theme', 'light', 5)]])
    const facts = merged([[prefers('theme', 'dark', 9)]], undefined, [{ ...(dark as Fact), id: 'old' }])
    expect([1, 4, 6, 9].map((at) => factsAsOf(facts, at).map(({ value }) => value))).toEqual([
      ['dark'],
      ['dark'],
      [],
      ['dark'],
    ])
  })
  it('dates what has no time of its own by the time of merging', () =>
    expect(mergeFacts([], [{ ...prefers('theme', 'dark'), at: Number.NaN }], { at: 77, id: String }).put[0]?.at).toBe(
      77,
    ))
})

describe('room for facts', () => {
  it('is made first by what was superseded longest ago, then by what matters least and is oldest', () => {
    const first = [prefers('theme', 'dark', 1), prefers('theme', 'light', 3), prefers('theme', 'sepia', 5)]
    const batch = [
      ...first,
      found('entities', '', 'Ana', 6, [0, 3], 3),
      found('entities', '', 'Bo', 7, [0, 3], 3),
      found('important_facts', '', 'X', 2, [0, 3], 6),
    ]
    const left = (most: number): unknown[] =>
      merged([batch], most)
        .map(({ value }) => value)
        .sort()
    expect(left(5)).toEqual(['Ana', 'Bo', 'X', 'light', 'sepia'])
    expect(left(4)).toEqual(['Ana', 'Bo', 'X', 'sepia'])
    expect(left(3)).toEqual(['Bo', 'X', 'sepia'])
    expect(left(1)).toEqual(['sepia'])
  })
  it('names what goes, and does not take it up again', () => {
    const said = [prefers('theme', 'dark', 1), prefers('theme', 'light', 2)]
    const facts = merged([said])
    expect(mergeFacts(facts, [], { at: 9, id: String, most: 1 })).toEqual({ put: [], drop: ['f0.0'] })
    expect(mergeFacts(facts.slice(1), said, { at: 9, id: String })).toEqual({ put: [], drop: [] })
  })
  it('is for 400 facts if nothing else is said', () =>
    expect(
      merged([Array.from({ length: 450 }, (_, place) => found('entities', '', `name ${place}`, place))]),
    ).toHaveLength(400))
})

const anyFound: fc.Arbitrary<Found> = fc
  .record({
    field: fc.constantFrom(...fields),
    key: fc.constantFrom('theme', 'font', '__proto__', 'constructor', 'toString'),
    value: fc.oneof(fc.constantFrom<Json>('a', 'B', 'b.', 'c ', '__proto__'), fc.constantFrom<Json>(['x'], ['x', 'y'])),
    at: fc.integer({ min: 1, max: 6 }),
    start: fc.integer({ min: 0, max: 3 }),
    importance: fc.integer({ min: 0, max: 10 }),
  })
  .map(({ field, key, value, at, start, importance }) => {
    const isList = ['key_decisions', 'important_facts', 'source_urls', 'entities'].includes(field)
    return found(field, isList ? '' : key, value, at, [10 * start, 10 * start + 9], importance)
  })
const batch = fc.array(anyFound, { maxLength: 25 })

describe('whatever is merged', () => {
  verifies('C-06', 'to merge the same twice changes nothing', () =>
    fc.assert(
      fc.property(batch, fc.constantFrom(1, 3, 400), (all, most) => {
        const facts = merged([all], most)
        expect(mergeFacts(facts, all, { at: 0, id: (place) => `again${place}`, most })).toEqual({ put: [], drop: [] })
      }),
    ),
  )
  verifies(
    ['C-06', 'X-10'],
    'each key has one value at any time, each list each value once, in the order of being said',
    () =>
      fc.assert(
        fc.property(fc.array(batch, { maxLength: 4 }), fc.integer({ min: 0, max: 7 }), (batches, at) => {
          const facts = merged(batches)
          const held = factsAsOf(facts, at).filter(({ key }) => key !== '')
          expect(new Set(held.map(({ field, key }) => `${field} ${key}`)).size).toBe(held.length)
          for (const field of ['key_decisions', 'entities'] as const) {
            const said = recordOf(facts).important_data[field].map(
              (value) => facts.find((fact) => fact.field === field && fact.value === value)?.at ?? 0,
            )
            expect(said).toEqual([...said].sort((a, b) => a - b))
          }
        }),
      ),
  )
  verifies('C-06', '`__proto__` and friends are keys like any other', () =>
    fc.assert(
      fc.property(batch, (all) => {
        const { important_data } = recordOf(merged([all]))
        expect(Object.keys(important_data)).toEqual([...fields])
        for (const value of Object.values(important_data))
          expect(Object.getPrototypeOf(value)).toBe(Array.isArray(value) ? Array.prototype : null)
        expect(({} as Record<string, unknown>).theme).toBeUndefined()
        expect(Object.keys(Object.prototype)).toEqual([])
      }),
    ),
  )
})
