import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runSync } from '../../src/domain/work.ts'
import type { GraphRow } from '../../src/graph/types.ts'
import { openMemory } from '../../src/index.ts'
import { mergeGraphs } from '../../src/portable/graphMerge.ts'
import { person, writeKeyFile } from '../graph/fixtures.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import {
  emptyResult,
  exportFrom,
  fillGraph,
  importInto,
  knows,
  readNodes,
  robot,
  type StoreLocation,
  tea,
  withGraph,
} from './graphFixtures.ts'

const newFile = createTempPaths()
const plain = (): StoreLocation => ({ url: `sqlite:${newFile()}` })
const mine = { name: 'Bob', entityType: 'person', observations: ['is mine'] }

/** Creates a store with a graph in the same scope that partly overlaps with `fillGraph`. */
async function createOverlapping(): Promise<StoreLocation> {
  const place = plain()
  await withGraph(place, async (graph) => {
    await graph.write('acme', {
      entities: [person('ann'), person('eve')],
      relationships: [{ from: 'zoe', to: 'eve', type: 'KNOWS' }],
    })
    await graph.nodes.createEntities('acme', [mine, { ...tea, observations: ['is tall', 'likes tea'] }])
    await graph.nodes.createRelations('acme', [knows, { ...knows, to: 'Bob' }])
  })
  return place
}

describe('importBundle into a store with a graph', () => {
  verifies('X-12', 'with overlapping graphs › merges them without losses and duplicates', async () => {
    const [from, to] = [plain(), await createOverlapping()]
    await fillGraph(from)
    const bundle = await exportFrom(from)
    expect(await importInto(to, bundle)).toEqual({ ...emptyResult, sessions: 3, messages: 1, entries: 11 })
    expect(await readNodes(to)).toEqual({
      entities: [mine, { ...tea, observations: ['is tall', 'likes tea', 'likes tea'] }, robot],
      relations: [knows, { ...knows, to: 'Bob' }, knows],
    })
    expect((await withGraph(to, (graph) => graph.queryEntities('acme'))).entities.map(({ id }) => id)).toEqual([
      'ann',
      'eve',
      'zoe',
      'bob',
    ])
    expect((await withGraph(to, (graph) => graph.queryRelationships('acme'))).total).toBe(3)
    // An entity of both graphs also gets the origins of the imported one.
    expect(
      (await withGraph(to, (graph) => graph.queryEntities('acme', { session: 's1' }))).entities.map(({ id }) => id),
    ).toEqual(['ann', 'zoe'])
    const merged = await exportFrom(to)
    expect(await importInto(to, bundle)).toEqual({ ...emptyResult, unchanged: 3 })
    expect((await exportFrom(to)).equals(merged)).toBe(true)
  })

  it('with different contents › throws, skips or replaces as onExisting says', async () => {
    const [from, to] = [plain(), plain()]
    await fillGraph(from)
    await withGraph(to, async (graph) => {
      await graph.write('acme', {
        entities: [person('bob', { city: 'Rome' })],
        relationships: [{ from: 'zoe', to: 'bob', type: 'KNOWS' }],
      })
      await graph.nodes.createEntities('acme', [{ ...tea, entityType: 'cat' }])
    })
    const [bundle, before] = [await exportFrom(from), await exportFrom(to)]
    const conflicts = ['the entity bob of acme', 'the relationship zoe KNOWS bob of acme', 'the type of Ann of acme']
    await expect(importInto(to, bundle)).rejects.toThrow(
      `The store has other contents for ${conflicts.join(', ')}. Nothing was imported.`,
    )
    expect((await exportFrom(to)).equals(before)).toBe(true)
    expect(await importInto(to, bundle, { onExisting: 'skip' })).toEqual({
      ...emptyResult,
      sessions: 3,
      messages: 1,
      entries: 11,
      skipped: conflicts,
    })
    expect((await withGraph(to, (graph) => graph.getEntity('acme', 'bob')))?.properties).toEqual({ city: 'Rome' })
    expect((await readNodes(to)).entities).toEqual([{ ...tea, entityType: 'cat' }, robot])
    expect(await importInto(to, bundle, { onExisting: 'replace' })).toEqual({
      ...emptyResult,
      sessions: 1,
      entries: 10,
      unchanged: 2,
      replaced: conflicts,
    })
    expect(await withGraph(to, (graph) => graph.getEntity('acme', 'bob'))).toEqual({
      ...person('bob', { city: 'Bergen' }),
      createdAt: 1_000,
      updatedAt: 2_000,
    })
    expect((await readNodes(to)).entities).toEqual([tea, robot])
    expect((await withGraph(to, ({ nodes }) => nodes.searchNodes('acme', 'person'))).entities).toEqual([tea])
    expect((await withGraph(to, ({ nodes }) => nodes.searchNodes('acme', 'cat'))).entities).toEqual([])
    expect(await importInto(to, bundle)).toEqual({ ...emptyResult, unchanged: 3 })
  })

  it('with a replaced session › keeps the rows derived from the imported session', async () => {
    const [from, to] = [plain(), plain()]
    await fillGraph(from)
    await using memory = await openMemory({ store: to.url, clock: () => 500 })
    await memory.append('acme:s1', [{ role: 'user', content: 'Something else.' }])
    await withGraph(to, (graph) =>
      graph.write('acme', { entities: [{ ...person('else'), session: 's1', sources: ['m1'] }] }),
    )
    const bundle = await exportFrom(from)
    expect(await importInto(to, bundle, { onExisting: 'replace' })).toMatchObject({ replaced: ['acme:s1'] })
    expect((await withGraph(to, (graph) => graph.queryEntities('acme'))).entities.map(({ id }) => id)).toEqual([
      'zoe',
      'ann',
      'bob',
    ])
  })

  it('with lone surrogates › does not import rows twice', async () => {
    const from = plain()
    const half = { name: 'half \ud83d', entityType: 'thing', observations: ['\ud83d'] }
    await withGraph(from, async (graph) => {
      await graph.write('acme', { entities: [person('half \ud83d', { of: '\ud83d' })] })
      await graph.nodes.createEntities('acme', [half])
    })
    const bundle = await exportFrom(from)
    expect(await importInto(from, bundle)).toEqual({ ...emptyResult, unchanged: 1 })
    expect((await readNodes(from)).entities).toEqual([half])
    const to = { url: `sqlite:${newFile()}`, storeKey: writeKeyFile(newFile('.key')) }
    await withGraph(to, (graph) => graph.write('acme', { entities: [person('half \ud83d', { of: 'another' })] }))
    await importInto(to, bundle, { onExisting: 'replace' })
    expect((await withGraph(to, (graph) => graph.getEntity('acme', 'half \ud83d')))?.properties).toEqual({
      of: '\ufffd',
    })
  })
})

const letter = fc.constantFrom('a', 'b', 'c')
const row: fc.Arbitrary<GraphRow> = fc.oneof(
  fc.record({
    node: fc.record({ name: letter, entityType: fc.constant('t'), observations: fc.array(letter, { maxLength: 4 }) }),
  }),
  fc.record({ link: fc.record({ from: letter, to: letter, relationType: letter }) }),
)
const rows = fc.array(row, { maxLength: 12 })
const toStoredRows = (graph: readonly GraphRow[]) => graph.map((row, place) => ({ rowId: place, row }))

/** Applies the writes of a merge as the archive does. */
function applyMerge(one: readonly GraphRow[], other: readonly GraphRow[]): readonly GraphRow[] {
  const all = [...one]
  for (const { row, rowId } of runSync(mergeGraphs(toStoredRows(one), other)).writes) {
    const before = rowId === undefined ? undefined : all[rowId]
    if (rowId !== undefined && before !== undefined && 'node' in before && 'node' in row)
      all[rowId] = { node: { ...before.node, observations: [...before.node.observations, ...row.node.observations] } }
    else all.push(row)
  }
  return all
}

/** Counts links, nodes and observations. */
function countItems(all: readonly GraphRow[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  const nodeCounts = new Map<string, number>()
  const count = (thing: string): void => void counts.set(thing, (counts.get(thing) ?? 0) + 1)
  for (const one of all) {
    if ('link' in one) count(JSON.stringify(one))
    if (!('node' in one)) continue
    const number = (nodeCounts.get(one.node.name) ?? 0) + 1
    nodeCounts.set(one.node.name, number)
    count(`${one.node.name} ${number}`)
    for (const text of one.node.observations) count(`${one.node.name} ${number}: ${text}`)
  }
  return counts
}

describe('mergeGraphs', () => {
  verifies('R-03', 'with many rows in both graphs › counts each row as work', () => {
    const rows = Array.from(
      { length: 1_000 },
      (_, at): GraphRow => ({ link: { from: `${at}`, to: 'b', relationType: 'c' } }),
    )
    let work = 0
    for (const cost of mergeGraphs(toStoredRows(rows), rows)) work += cost
    expect(work).toBe(200_000)
  })

  it('with any two graphs › keeps the higher count of each item and is idempotent', () => {
    fc.assert(
      fc.property(rows, rows, (one, other) => {
        const all = applyMerge(one, other)
        const [left, right, both] = [countItems(one), countItems(other), countItems(all)]
        for (const thing of new Set([...left.keys(), ...right.keys(), ...both.keys()]))
          expect([thing, both.get(thing)]).toEqual([thing, Math.max(left.get(thing) ?? 0, right.get(thing) ?? 0)])
        expect(runSync(mergeGraphs(toStoredRows(all), other))).toEqual({ writes: [], conflicts: [] })
        expect(runSync(mergeGraphs(toStoredRows(all), one))).toEqual({ writes: [], conflicts: [] })
      }),
      { numRuns: 500 },
    )
  })
})
