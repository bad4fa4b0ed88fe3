import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { forgetInGraphs, openGraph } from '../../src/graph/graph.ts'
import type { StoreGraph } from '../../src/graph/types.ts'
import { withEraseListeners } from '../../src/stores/eraseListeners.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { countTurns, useSlowClock } from '../support/slowClock.ts'
import { person } from './fixtures.ts'

const fresh = createTempPaths()
const hub = { name: 'hub', entityType: 'thing', observations: [] }
const limit = { maxCharacters: 1_000 }
const tooLong = (error: unknown) => error

/** Opens a graph with an entity `hub` and a node `hub`, to which SQL adds rows `n` with the numbers from 1 to a count. */
const openFilled = (count: number, ...inserts: readonly string[]) => openFilledFile(fresh(), count, ...inserts)

async function openFilledFile(file: string, count: number, ...inserts: readonly string[]) {
  const graph = await openGraph(`sqlite:${file}`)
  await graph.write('acme', { entities: [person('hub')] })
  await graph.nodes.createEntities('acme', [hub])
  const database = new DatabaseSync(file)
  const numbers = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})`
  for (const insert of inserts) database.exec(insert.replace('SELECT', `${numbers} SELECT`))
  database.close()
  return graph
}

const homeAnd = (columns: string, table: string) =>
  `SELECT home, ${columns} FROM numbers, (SELECT home, ref AS hub FROM ${table} ORDER BY place LIMIT 1)`
const entities = `INSERT INTO graph_entity (home, ref, kind, body, created, updated)
  ${homeAnd(`'r' || n, 'k', json_object('type', 'person', 'id', 'e' || n, 'properties', json('{}')), 1, 1`, 'graph_entity')}`
const origins = "INSERT INTO graph_origin (entity, session, message) SELECT n + 1, 's1', 'm' || (n % 3) FROM numbers"
const relationships = `INSERT INTO graph_relationship (home, ref, source, target, kind, session, body, created, updated)
  ${homeAnd(`'r' || n, 's', hub, 'k', 's1', json_object('id', 'r', 'type', 'KNOWS', 'from', 'a', 'to', 'hub', 'properties', json('{}')), 1, 1`, 'graph_entity')}`
const nodes = `INSERT INTO graph_node (home, ref, body, lower)
  ${homeAnd(`'r' || n, json_object('name', 'n' || n, 'entityType', 'thing'), 'n' || n || char(10) || 'thing'`, 'graph_node')}`
const links = `INSERT INTO graph_link (home, ref, source, target, body)
  ${homeAnd(`'r' || n, 's', hub, json_object('from', 'n', 'to', 'hub', 'relationType', 'knows')`, 'graph_node')}`
const namesakes = nodes.replace("'r' || n,", 'hub,')
const index = "INSERT INTO graph_node_words (graph_node_words) SELECT 'rebuild' FROM numbers LIMIT 1"

const tables = ['graph_entity', 'graph_relationship', 'graph_node', 'graph_observation', 'graph_link']

/** Waits for a deletion; returns the largest number of rows that disappeared from a file in one transaction. */
async function watchDeletion(file: string, deletion: Promise<unknown>): Promise<number> {
  const database = new DatabaseSync(file, { readOnly: true })
  const count = database.prepare(`SELECT ${tables.map((table) => `(SELECT count(*) FROM ${table})`).join('+')} AS rows`)
  const version = database.prepare('PRAGMA data_version')
  const counts = [Number(count.get()?.rows)]
  let counted = version.get()?.data_version
  let isDone = false
  const done = deletion.finally(() => (isDone = true))
  while (!isDone) {
    await new Promise((resolve) => setImmediate(resolve))
    if (version.get()?.data_version === counted) continue
    counts.push(Number(count.get()?.rows))
    counted = version.get()?.data_version
  }
  database.close()
  await done
  return Math.max(...counts.map((rows, at) => (counts[at - 1] ?? rows) - rows))
}

describe('a graph of more rows than one statement may take', () => {
  verifies('R-03', 'while a page of its entities and relationships is selected › lets other work run', async () => {
    using _ = useSlowClock()
    const count = 80_000
    const graph = await openFilled(count, entities, origins, relationships)
    for (const [query, total, id] of [
      [{ offset: count }, count + 1, `e${count}`],
      [{ session: 's1', offset: count - 1 }, count, `e${count}`],
    ] as const) {
      const { value, turns } = await countTurns(graph.queryEntities('acme', query))
      expect([value.total, value.entities.map((entity) => entity.id), turns > 3]).toEqual([total, [id], true])
    }
    const { value, turns } = await countTurns(graph.queryRelationships('acme', { to: 'hub', session: 's1', limit: 1 }))
    expect([value.total, turns > 3]).toEqual([count, true])
    await graph.close()
  })

  verifies('R-03', 'while its nodes, links and candidates are selected › lets other work run', async () => {
    using _ = useSlowClock()
    const graph = await openFilled(80_000, nodes, links, index)
    for (const [read, turnsAtOnce] of [
      [() => graph.nodes.readGraph('acme', limit), 1],
      [() => graph.nodes.searchNodes('acme', 'thing', limit), 40],
      [() => graph.nodes.openNodes('acme', ['hub'], limit), 6],
    ] as const) {
      const { value, turns } = await countTurns(read().catch(tooLong))
      expect([value, turns > turnsAtOnce]).toEqual([expect.objectContaining({ code: 'bad-option' }), true])
    }
    const found = await graph.nodes.searchNodes('acme', 'n80000')
    expect(found.entities.map(({ name }) => name)).toEqual(['n80000'])
    await graph.close()
  })

  it('with many nodes of one name › opens all of them', async () => {
    const count = 130_000
    const graph = await openFilled(count, namesakes)
    expect((await graph.nodes.openNodes('acme', ['hub', 'hub'])).entities).toHaveLength(count + 1)
    await graph.close()
  })

  verifies('R-03', 'while all its rows are joined into one list › lets other work run', async () => {
    using _ = useSlowClock()
    const graph = await openFilled(6_000, links)
    const { value, turns } = await countTurns(graph.archive.readAll('acme'))
    // Selecting and decoding them takes 19.
    expect([value.length, turns > 500]).toEqual([6_002, true])
    await graph.close()
  })

  it('forgotten with a store › lists them in the receipt', async () => {
    const [file, count] = [fresh(), 130_000]
    const graph = await openFilledFile(file, count, links)
    const store = sqliteStore(file)
    const { sessions } = await forgetInGraphs([store], { scope: 'acme', text: 'knows' }, { at: 1, sessions: [] })
    expect(sessions.map(({ entries }) => entries.length)).toEqual([count])
    const listener = { onErase: async () => undefined, forget: async () => new Array<string>(count).fill('node 1') }
    const listened = withEraseListeners(ramStore())
    listened.capabilities.eraseListeners?.add(listener)
    const forgotten = await forgetInGraphs([listened], { scope: 'acme' }, { at: 1, sessions: [] })
    expect(forgotten.sessions.map(({ entries }) => entries.length)).toEqual([count])
    await Promise.all([graph.close(), store.close(), listened.close()])
  })

  verifies('R-03', 'while an entity with many relationships or a session is erased › lets other work run', async () => {
    using _ = useSlowClock()
    const graph = await openFilled(3_000, entities, origins, relationships)
    const { value, turns } = await countTurns(graph.write('acme', { deleteEntities: ['hub'] }))
    expect([value.dropped, turns > 5]).toEqual([1, true])
    expect((await graph.queryRelationships('acme')).total).toBe(0)
    await graph.write('acme', { entities: [{ ...person('both'), session: 's1', sources: ['m0', 'm1'] }] })
    await graph.write('acme', { entities: [{ ...person('both'), session: 's2' }] })
    const erasure = await countTurns(graph.erase('acme', 's1', { deferWipe: true }))
    expect([erasure.value, erasure.turns > 10]).toEqual([3_000, true])
    expect((await graph.queryEntities('acme')).entities.map(({ id }) => id)).toEqual(['both'])
    await graph.close()
  })

  verifies('R-03', 'while equal or long observations are deleted › lets other work run', async () => {
    using _ = useSlowClock()
    const graph = await openGraph('ram:')
    const equal = Array.from({ length: 3_000 }, () => 'equal')
    const long = Array.from({ length: 100 }, (_, at) => `${at} ${'long '.repeat(1_500)}`)
    await graph.nodes.createEntities('acme', [{ ...hub, observations: [...equal, ...long] }])
    for (const [observations, left] of [
      [['equal'], 100],
      [long, 0],
    ] as const) {
      const { turns } = await countTurns(graph.nodes.deleteObservations('acme', [{ entityName: 'hub', observations }]))
      expect(turns).toBeGreaterThan(3)
      expect((await graph.nodes.openNodes('acme', ['hub'])).entities[0]?.observations).toHaveLength(left)
    }
    expect(await graph.nodes.searchNodes('acme', 'equal')).toEqual({ entities: [], relations: [] })
    await graph.close()
  })

  const maxDeletedRows = 8_000

  verifies('R-03', 'while many of them are deleted › deletes them in transactions of limited size', async () => {
    const ofOther = relationships.replace("'s1'", "'s2'")
    const observations = "INSERT INTO graph_observation (node, ref, body) SELECT 1, 'r' || n, '\"o\"' FROM numbers"
    const ofHub = "INSERT INTO graph_origin (entity, session, message) SELECT 1, 's1', 'm' FROM numbers LIMIT 1"
    const isDeferred = { deferWipe: true }
    for (const [inserts, remove, left] of [
      [[entities, relationships], (graph) => graph.write('acme', { deleteEntities: ['e1', 'hub'] }), 10_001],
      [[links, observations], (graph) => graph.nodes.deleteEntities('acme', ['none', 'hub']), 1],
      [[entities, origins, relationships], (graph) => graph.erase('acme', 's1', isDeferred), 2],
      [[ofHub, ofOther], (graph) => graph.erase('acme', 's1', isDeferred), 1],
      [[ofHub, relationships], (graph) => graph.forget('acme', ['person'], isDeferred), 1],
      [[entities, nodes, index, links, relationships], (graph) => graph.erase('acme', undefined, isDeferred), 0],
    ] satisfies [readonly string[], (graph: StoreGraph) => Promise<unknown>, number][]) {
      const file = fresh()
      const graph = await openFilledFile(file, 10_000, ...inserts)
      expect(await watchDeletion(file, remove(graph))).toBeLessThanOrEqual(maxDeletedRows)
      expect(await graph.archive.readAll('acme')).toHaveLength(left)
      await graph.close()
    }
  })

  it('written to while many of them are deleted › is written to afterwards', async () => {
    const graph = await openFilled(10_000, links, relationships)
    const link = { from: 'a', to: 'hub', relationType: 'knows' }
    const relationship = { from: 'a', to: 'hub', type: 'KNOWS' }
    const written = Promise.all([
      graph.nodes.deleteEntities('acme', ['hub']),
      graph.nodes.createEntities('acme', [hub]),
      graph.nodes.createRelations('acme', [link]),
      graph.write('acme', { deleteEntities: ['hub'] }),
      graph.write('acme', { entities: [person('hub')], relationships: [relationship] }),
    ])
    // Reads run between two transactions.
    expect((await graph.nodes.readGraph('acme')).relations.length).toBeLessThanOrEqual(10_000)
    await written
    expect(await graph.nodes.readGraph('acme')).toEqual({ entities: [hub], relations: [link] })
    expect((await graph.queryRelationships('acme')).relationships).toMatchObject([relationship])
    expect((await graph.queryEntities('acme')).entities).toMatchObject([person('hub')])
    await graph.close()
  })

  it('with a change that is refused › has lost no relationship', async () => {
    const graph = await openFilled(10_000, relationships)
    for (const [change, code] of [
      [{ expected: [{ id: 'hub', updatedAt: 1 }] }, 'conflict'],
      [{ entities: [person('')] }, 'bad-option'],
      [{ relationships: [{ from: 'a', to: 'b', type: '' }] }, 'bad-option'],
    ] as const) {
      const written = graph.write('acme', { deleteEntities: ['hub'], ...change })
      await expect(written).rejects.toMatchObject({ code })
      expect((await graph.queryRelationships('acme')).total).toBe(10_000)
    }
    await graph.close()
  })

  it('given relationships to delete with their entity › counts them', async () => {
    const graph = await openFilled(10_000, relationships)
    const relationship = { from: 'a', to: 'hub', type: 'KNOWS' }
    await graph.write('acme', { relationships: [relationship] })
    const [written] = (await graph.queryRelationships('acme', { offset: 10_000 })).relationships
    const change = { deleteEntities: ['hub'], deleteRelationships: [written?.id ?? ''] }
    expect(await graph.write('acme', change)).toMatchObject({ dropped: 2 })
    await graph.close()
  })
})
