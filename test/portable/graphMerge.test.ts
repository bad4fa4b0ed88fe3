import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GraphRow } from '../../src/graph/archive.ts'
import { openMemory } from '../../src/index.ts'
import { merge } from '../../src/portable/graph/merge.ts'
import { keyFile, person } from '../graph/stage.ts'
import { verifies } from '../requirements/verifies.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { exported, filled, imported, knows, nodesIn, nothing, type Place, robot, tea, within } from './graphs.ts'

const fresh = freshFiles()
const plain = (): Place => ({ url: `sqlite:${fresh()}` })
const mine = { name: 'Bob', entityType: 'person', observations: ['is mine'] }

/** A place that has a graph of its own in the same scope: some of it as in `filled`, some of it not. */
async function another(): Promise<Place> {
  const place = plain()
  await within(place, async (graph) => {
    await graph.write('acme', {
      entities: [person('ann'), person('eve')],
      relationships: [{ from: 'zoe', to: 'eve', type: 'KNOWS' }],
    })
    await graph.nodes.createEntities('acme', [mine, { ...tea, observations: ['is tall', 'likes tea'] }])
    await graph.nodes.createRelations('acme', [knows, { ...knows, to: 'Bob' }])
  })
  return place
}

describe('a graph that comes to one that is there', () => {
  verifies('X-12', 'is joined with it: nothing is lost, and nothing is there twice', async () => {
    const [from, to] = [plain(), await another()]
    await filled(from)
    const bundle = await exported(from)
    expect(await imported(to, bundle)).toEqual({ ...nothing, sessions: 3, messages: 1, entries: 11 })
    expect(await nodesIn(to)).toEqual({
      entities: [mine, { ...tea, observations: ['is tall', 'likes tea', 'likes tea'] }, robot],
      relations: [knows, { ...knows, to: 'Bob' }, knows],
    })
    expect((await within(to, (graph) => graph.entities('acme'))).entities.map(({ id }) => id)).toEqual([
      'ann',
      'eve',
      'zoe',
      'bob',
    ])
    expect((await within(to, (graph) => graph.relationships('acme'))).total).toBe(3)
    // What both have said goes only with the session that has said it here too.
    expect(
      (await within(to, (graph) => graph.entities('acme', { session: 's1' }))).entities.map(({ id }) => id),
    ).toEqual(['ann', 'zoe'])
    const joined = await exported(to)
    expect(await imported(to, bundle)).toEqual({ ...nothing, unchanged: 3 })
    expect((await exported(to)).equals(joined)).toBe(true)
  })

  it('is refused, left or put in its place where the two say different things', async () => {
    const [from, to] = [plain(), plain()]
    await filled(from)
    await within(to, async (graph) => {
      await graph.write('acme', {
        entities: [person('bob', { city: 'Rome' })],
        relationships: [{ from: 'zoe', to: 'bob', type: 'KNOWS' }],
      })
      await graph.nodes.createEntities('acme', [{ ...tea, entityType: 'cat' }])
    })
    const [bundle, before] = [await exported(from), await exported(to)]
    const others = ['the entity bob of acme', 'the relationship zoe KNOWS bob of acme', 'the type of Ann of acme']
    await expect(imported(to, bundle)).rejects.toThrow(
      `The store has other contents for ${others.join(', ')}. Nothing was imported.`,
    )
    expect((await exported(to)).equals(before)).toBe(true)
    expect(await imported(to, bundle, { onExisting: 'skip' })).toEqual({
      ...nothing,
      sessions: 3,
      messages: 1,
      entries: 11,
      skipped: others,
    })
    expect((await within(to, (graph) => graph.entity('acme', 'bob')))?.properties).toEqual({ city: 'Rome' })
    expect((await nodesIn(to)).entities).toEqual([{ ...tea, entityType: 'cat' }, robot])
    expect(await imported(to, bundle, { onExisting: 'replace' })).toEqual({
      ...nothing,
      sessions: 1,
      entries: 10,
      unchanged: 2,
      replaced: others,
    })
    expect(await within(to, (graph) => graph.entity('acme', 'bob'))).toEqual({
      ...person('bob', { city: 'Bergen' }),
      createdAt: 1_000,
      updatedAt: 2_000,
    })
    expect((await nodesIn(to)).entities).toEqual([tea, robot])
    expect((await within(to, ({ nodes }) => nodes.searchNodes('acme', 'person'))).entities).toEqual([tea])
    expect((await within(to, ({ nodes }) => nodes.searchNodes('acme', 'cat'))).entities).toEqual([])
    expect(await imported(to, bundle)).toEqual({ ...nothing, unchanged: 3 })
  })

  it('keeps what was drawn from a session that takes the place of another', async () => {
    const [from, to] = [plain(), plain()]
    await filled(from)
    await using memory = await openMemory({ store: to.url, clock: () => 500 })
    await memory.append('acme:s1', [{ role: 'user', content: 'Something else.' }])
    await within(to, (graph) =>
      graph.write('acme', { entities: [{ ...person('else'), session: 's1', sources: ['m1'] }] }),
    )
    const bundle = await exported(from)
    expect(await imported(to, bundle, { onExisting: 'replace' })).toMatchObject({ replaced: ['acme:s1'] })
    expect((await within(to, (graph) => graph.entities('acme'))).entities.map(({ id }) => id)).toEqual([
      'zoe',
      'ann',
      'bob',
    ])
  })

  it('is not taken twice where its text was no text', async () => {
    const from = plain()
    const half = { name: 'half \ud83d', entityType: 'thing', observations: ['\ud83d'] }
    await within(from, async (graph) => {
      await graph.write('acme', { entities: [person('half \ud83d', { of: '\ud83d' })] })
      await graph.nodes.createEntities('acme', [half])
    })
    const bundle = await exported(from)
    expect(await imported(from, bundle)).toEqual({ ...nothing, unchanged: 1 })
    expect((await nodesIn(from)).entities).toEqual([half])
    const to = { url: `sqlite:${fresh()}`, storeKey: keyFile(fresh('.key')) }
    await within(to, (graph) => graph.write('acme', { entities: [person('half \ud83d', { of: 'another' })] }))
    await imported(to, bundle, { onExisting: 'replace' })
    expect((await within(to, (graph) => graph.entity('acme', 'half \ud83d')))?.properties).toEqual({ of: '\ufffd' })
  })
})

const few = fc.constantFrom('a', 'b', 'c')
const row: fc.Arbitrary<GraphRow> = fc.oneof(
  fc.record({
    node: fc.record({ name: few, entityType: fc.constant('t'), observations: fc.array(few, { maxLength: 4 }) }),
  }),
  fc.record({ link: fc.record({ from: few, to: few, relationType: few }) }),
)
const rows = fc.array(row, { maxLength: 12 })
const held = (all: readonly GraphRow[]) => all.map((one, place) => ({ place, row: one }))

/** What a store has after a merge, which the archive would have written. */
function joined(one: readonly GraphRow[], other: readonly GraphRow[]): readonly GraphRow[] {
  const all = [...one]
  for (const { row, place } of merge(held(one), other).writes) {
    const before = place === undefined ? undefined : all[place]
    if (place !== undefined && before !== undefined && 'node' in before && 'node' in row)
      all[place] = { node: { ...before.node, observations: [...before.node.observations, ...row.node.observations] } }
    else all.push(row)
  }
  return all
}

/** How often each thing is said, whoever says it. */
function counted(all: readonly GraphRow[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  const nth = new Map<string, number>()
  const count = (thing: string): void => void counts.set(thing, (counts.get(thing) ?? 0) + 1)
  for (const one of all) {
    if ('link' in one) count(JSON.stringify(one))
    if (!('node' in one)) continue
    const place = (nth.get(one.node.name) ?? 0) + 1
    nth.set(one.node.name, place)
    count(`${one.node.name} ${place}`)
    for (const text of one.node.observations) count(`${one.node.name} ${place}: ${text}`)
  }
  return counts
}

describe('joining two graphs', () => {
  it('has everything as often as whichever has it more often, and is done once', () => {
    fc.assert(
      fc.property(rows, rows, (one, other) => {
        const all = joined(one, other)
        const [left, right, both] = [counted(one), counted(other), counted(all)]
        for (const thing of new Set([...left.keys(), ...right.keys(), ...both.keys()]))
          expect([thing, both.get(thing)]).toEqual([thing, Math.max(left.get(thing) ?? 0, right.get(thing) ?? 0)])
        expect(merge(held(all), other)).toEqual({ writes: [], others: [] })
        expect(merge(held(all), one)).toEqual({ writes: [], others: [] })
      }),
      { numRuns: 500 },
    )
  })
})
