import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json } from '../../src/domain/entry.ts'
import { openGraph } from '../../src/graph/graph.ts'
import type { EntityQuery, Filter, Graph } from '../../src/graph/types.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { graphBackends, person, writeKeyFile } from './fixtures.ts'

const values: Readonly<Record<string, Json>> = {
  none: null,
  yes: true,
  no: false,
  zero: 0,
  one: 1,
  half: 0.5,
  large: 12_345_678_901_234_567_000,
  empty: '',
  word: 'Åse',
  digits: '1',
  list: ['a', 1, null, ['b']],
  object: { a: 1, b: [2] },
}

/** Ids of the values that match a filter; `gone` has no property at all. */
const cases: readonly (readonly [Omit<Filter, 'property'>, readonly string[]])[] = [
  [{ op: 'eq', value: 1 }, ['one']],
  [{ op: 'eq', value: '1' }, ['digits']],
  [{ op: 'eq', value: true }, ['yes']],
  [{ op: 'eq', value: null }, ['none']],
  [{ op: 'eq', value: 12_345_678_901_234_567_000 }, ['large']],
  [{ op: 'eq', value: ['a', 1, null, ['b']] }, ['list']],
  [{ op: 'eq', value: { a: 1, b: [2] } }, ['object']],
  [{ op: 'eq', value: [] }, []],
  [
    { op: 'ne', value: 1 },
    ['none', 'yes', 'no', 'zero', 'half', 'large', 'empty', 'word', 'digits', 'list', 'object', 'gone'],
  ],
  [{ op: 'lt', value: 1 }, ['zero', 'half']],
  [{ op: 'gte', value: 1 }, ['one', 'large']],
  [{ op: 'lte', value: '1' }, ['empty', 'digits']],
  [{ op: 'gt', value: '' }, ['word', 'digits']],
  [{ op: 'contains', value: 's' }, ['word']],
  [{ op: 'contains', value: '' }, ['empty', 'word', 'digits']],
  [{ op: 'contains', value: 1 }, ['list']],
  [{ op: 'contains', value: ['b'] }, ['list']],
  [{ op: 'in', value: [1, 'Åse', null] }, ['none', 'one', 'word']],
  [{ op: 'in', value: [] }, []],
  [{ op: 'exists' }, Object.keys(values)],
  [{ op: 'exists', value: false }, ['gone']],
]

describe.each(graphBackends())('query of a graph in $name', ({ open }) => {
  verifies('H-06', 'compares a property only with values of the same type', async () => {
    const graph = await open()
    await graph.write('acme', {
      entities: [...Object.entries(values).map(([id, value]) => person(id, { it: value })), person('gone')],
    })
    for (const [filter, ids] of cases) {
      const { entities, total } = await graph.queryEntities('acme', { filters: [{ property: 'it', ...filter }] })
      expect([JSON.stringify(filter), entities.map(({ id }) => id), total]).toEqual([
        JSON.stringify(filter),
        ids,
        ids.length,
      ])
    }
    await graph.close()
  })

  it('with the limit Infinity › returns all rows', async () => {
    const graph = await open()
    const ids = Array.from({ length: 1_100 }, (_, at) => `e${String(at).padStart(4, '0')}`)
    const relationships = ids.map((to) => ({ from: 'e0000', type: 'KNOWS', to }))
    await graph.write('acme', { entities: ids.toReversed().map((id) => person(id)), relationships })
    const limit = Number.POSITIVE_INFINITY
    const idsOf = (found: { entities: readonly { id: string }[] }) => found.entities.map(({ id }) => id)
    expect(idsOf(await graph.queryEntities('acme', { limit, sort: [{ by: 'id' }] }))).toEqual(ids)
    expect(idsOf(await graph.queryEntities('acme', { limit, offset: 2 }))).toEqual(ids.toReversed().slice(2))
    expect((await graph.queryRelationships('acme', { limit })).relationships).toHaveLength(ids.length)
    await graph.close()
  })

  it('reads the values of a list once, and not for each row', async () => {
    const graph = await open()
    const countReads = async (): Promise<number> => {
      let reads = 0
      const item = {
        get a() {
          reads++
          return 1
        },
      }
      const { total } = await graph.queryEntities('acme', { filters: [{ property: 'it', op: 'in', value: [item] }] })
      expect(total).toBe(1)
      return reads
    }
    await graph.write('acme', { entities: [person('e', { it: { a: 1 } })] })
    const reads = await countReads()
    await graph.write('acme', { entities: Array.from({ length: 9 }, (_, at) => person(`e${at}`, { it: { b: at } })) })
    expect(await countReads()).toBe(reads)
    await graph.close()
  })

  it('rejects filters with lists of more than 10,000 values in all', async () => {
    const graph = await open()
    const value = Array.from({ length: 5_000 }, (_, at) => at)
    const filter = { property: 'it', op: 'in', value } as const
    expect(await graph.queryEntities('acme', { filters: [filter, filter] })).toEqual({ entities: [], total: 0 })
    const filters = [filter, filter, { ...filter, value: ['a'] }]
    const refused = { code: 'bad-option', message: expect.stringContaining('10001 values; a query may have 10000') }
    await expect(graph.queryEntities('acme', { filters })).rejects.toMatchObject(refused)
    await graph.close()
  })

  it('accepts any text as a property name, without SQL injection', async () => {
    const graph = await open()
    const names = [
      'a.b',
      'a"b',
      "a'b",
      'a\\b',
      '',
      '12',
      '[0]',
      '$',
      '#-1',
      'ö😀',
      "'); DROP TABLE graph_entity; --",
      'constructor',
      'id',
    ]
    await graph.write('acme', { entities: names.map((name, at) => person(`p${at}`, { [name]: at })) })
    for (const [at, property] of names.entries()) {
      const found = await graph.queryEntities('acme', {
        filters: [{ property, op: 'exists' }],
        sort: [{ by: property }],
      })
      expect([property, found.entities.map(({ id }) => id)]).toEqual([property, [`p${at}`]])
    }
    await graph.close()
  })
})

const property = fc.constantFrom('a', 'b', 'c')
const scalar = fc.oneof(
  fc.constantFrom<Json>(null, true, false, 0, 1, -1, 1.5, '', '0', '1', 'a', 'A', 'ab', 'é', '\uffff', '😀'),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
)
const value: fc.Arbitrary<Json> = fc.oneof(
  { weight: 4, arbitrary: scalar },
  fc.array(scalar, { maxLength: 3 }),
  fc.dictionary(property, scalar, { maxKeys: 2 }),
)
const filter: fc.Arbitrary<Filter> = fc.oneof(
  fc.record({ property, op: fc.constantFrom('eq', 'ne', 'contains'), value }),
  fc.record({
    property,
    op: fc.constantFrom('lt', 'lte', 'gt', 'gte'),
    value: fc.oneof(fc.constantFrom<Json>('', 'a', 'é', '😀', '\uffff', 0, 1), fc.integer()),
  }),
  fc.record({ property, op: fc.constant('in' as const), value: fc.array(value, { maxLength: 3 }) }),
  fc.record({ property, op: fc.constant('exists' as const), value: fc.boolean() }),
)
const query: fc.Arbitrary<EntityQuery> = fc.record(
  {
    types: fc.array(fc.constantFrom('x', 'y'), { maxLength: 2 }),
    filters: fc.array(filter, { maxLength: 2 }),
    sort: fc.array(
      fc.record({ by: fc.constantFrom('a', 'b', 'id', 'type', 'createdAt'), order: fc.constantFrom('asc', 'desc') }),
      { maxLength: 3 },
    ),
    limit: fc.integer({ min: 1, max: 5 }),
    offset: fc.integer({ min: 0, max: 3 }),
  },
  { requiredKeys: [] },
)
const drafts = fc.uniqueArray(
  fc.record({
    type: fc.constantFrom('x', 'y'),
    id: fc.string({ minLength: 1, maxLength: 3 }),
    properties: fc.dictionary(property, value),
  }),
  {
    selector: ({ id }) => id,
    minLength: 1,
    maxLength: 8,
  },
)

describe('query of an encrypted graph', () => {
  const fresh = createTempPaths()

  verifies(['H-06', 'H-09'], 'gives the same result as of an unencrypted one', async () => {
    const plain = await openGraph(`sqlite:${fresh()}`, { clock: () => 1_000 })
    const encrypted = await openGraph(`sqlite:${fresh()}`, {
      clock: () => 1_000,
      storeKey: writeKeyFile(fresh('.key')),
    })
    let workspaces = 0
    await fc.assert(
      fc.asyncProperty(drafts, fc.array(query, { minLength: 1, maxLength: 4 }), async (entities, queries) => {
        const workspace = `w${workspaces++}`
        const both: readonly Graph[] = [plain, encrypted]
        for (const graph of both) await graph.write(workspace, { entities })
        for (const entityQuery of queries) {
          const [one, other] = await Promise.all(both.map((graph) => graph.queryEntities(workspace, entityQuery)))
          expect(other).toEqual(one)
        }
      }),
      { numRuns: 60 },
    )
    await Promise.all([plain.close(), encrypted.close()])
  })
})
