import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { forgetInGraphs, openGraph } from '../../src/graph/graph.ts'
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
})
