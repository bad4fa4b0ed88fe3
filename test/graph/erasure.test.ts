import { createHash } from 'node:crypto'
import { copyFileSync, readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect } from 'vitest'
import { graphKey, parseKey } from '../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../src/domain/ports.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { runSync } from '../../src/domain/work.ts'
import { openGraph } from '../../src/graph/graph.ts'
import { type Memory, openMemory } from '../../src/index.ts'
import { deleteNodesInSteps, inHome } from '../../src/stores/sqlite/graph.ts'
import { mergeIndexes, mergeIndexesInSteps } from '../../src/stores/sqlite/wipe/mergeIndexes.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { databaseFiles, findTraces } from '../stores/traces.ts'
import { createEmptyStores } from '../support/postgres.ts'
import { type GraphWithNodes, person, requireGraph } from './fixtures.ts'
import { isIndexed } from './trigramIndex.ts'

const fresh = createTempPaths()
const canary = 'Qx7-walrus-Zk93-canary'

/** New store, and a function that finds the canary in it. */
type OpenedStore = { readonly store: Store & SearchIndex; readonly traces: () => Promise<readonly string[]> }
type Fixture = OpenedStore & {
  readonly memory: Memory
  readonly graph: GraphWithNodes
  readonly close: () => Promise<void>
}

const openFile = async (file = fresh()): Promise<OpenedStore> => ({
  store: sqliteStore(file),
  traces: async () => findTraces(canary, databaseFiles(file)),
})

const openEmpty = createEmptyStores()
async function openPostgres(): Promise<OpenedStore> {
  const store = await openEmpty()
  const { database } = store
  const tables = ['message', 'derived', 'graph_row', 'graph_origin']
  const selectTraces = tables.map(
    (table) => `SELECT '${table}' FROM ${database.schema}.${table} t WHERE strpos(lower(t::text), lower($1)) > 0`,
  )
  const traces = async (): Promise<readonly string[]> => {
    const rows = await database.transaction('*', ({ query }) => query(selectTraces.join(' UNION ALL '), [canary]))
    return rows.map(String)
  }
  return { store, traces }
}

/** Creates a conversation about the canary and a graph derived from it; `others` more nodes enlarge the index. */
async function createFixture({ store, traces }: OpenedStore, others = 0): Promise<Fixture> {
  const memory = await openMemory({ store, clock: () => 1_000 })
  const graph = await requireGraph(store, () => 1_000)
  await memory.append('acme:s1', [
    { role: 'user', content: 'My cat is called Miso.' },
    { role: 'user', content: `The code of the safe is ${canary}.` },
  ])
  await memory.append('acme:s2', [{ role: 'user', content: 'Hello.' }])
  const contextItem = (id: string, sources: readonly string[], says: string) => ({
    type: 'context_item',
    id,
    properties: { says },
    session: 's1',
    sources,
  })
  await graph.write('acme', {
    entities: [
      contextItem('cat', ['m1'], 'Miso'),
      contextItem('safe', ['m2'], canary),
      contextItem('both', ['m1', 'm2'], `Miso and ${canary}`),
      { ...person('s2'), session: 's2' },
      person('alone'),
    ],
    relationships: [
      { from: 'safe', to: 'alone', type: 'IN', properties: { why: canary } },
      { from: 's2', to: 'alone', type: 'IN', session: 's1' },
      { from: 'cat', to: 's2', type: 'IN' },
    ],
  })
  await graph.nodes.createEntities(
    'acme',
    Array.from({ length: others }, (_, at) => ({
      name: `n${at}`,
      entityType: 'thing',
      observations: [`it is number ${at}`],
    })),
  )
  const close = async (): Promise<void> => void (await Promise.all([memory.close(), graph.close()]))
  return { store, memory, graph, traces, close }
}

const idsOf = async (graph: GraphWithNodes): Promise<readonly string[]> =>
  (await graph.queryEntities('acme')).entities.map(({ id }) => id)
const endsOf = async (graph: GraphWithNodes): Promise<readonly string[]> =>
  (await graph.queryRelationships('acme')).relationships.map(({ from, to }) => `${from}>${to}`)

/** Counts the data blocks of the trigram indexes; ids up to 10 are reserved by FTS5. */
function countIndexBlocks(file: string): number {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const counts = ['graph_node', 'graph_observation'].map(
      (table) => database.prepare(`SELECT count(*) AS many FROM ${table}_words_data WHERE id > 10`).get()?.many,
    )
    return counts.reduce<number>((sum, many) => sum + Number(many), 0)
  } finally {
    database.close()
  }
}

describe.each([
  ['a file', openFile],
  ['PostgreSQL', openPostgres],
])('erasure of derived graph rows in %s', (_, open) => {
  verifies(['X-05', 'H-01'], 'follows a forgotten message and leaves no trace', async () => {
    const { memory, graph, traces, close } = await createFixture(await open())
    expect((await traces()).length).toBeGreaterThan(0)
    await memory.forget({ key: 'acme:s1', messageId: 'm2' })
    expect(await idsOf(graph)).toEqual(['cat', 's2', 'alone'])
    expect(await endsOf(graph)).toEqual(['s2>alone', 'cat>s2'])
    expect(await traces()).toEqual([])
    await close()
  })

  verifies('X-05', 'follows a forgotten text', async () => {
    const { memory, graph, traces, close } = await createFixture(await open())
    await memory.forget({ scope: 'acme', text: canary })
    expect(await idsOf(graph)).toEqual(['cat', 's2', 'alone'])
    expect(await traces()).toEqual([])
    await close()
  })

  verifies(['X-05', 'H-01'], 'follows a forgotten session', async () => {
    const { memory, graph, traces, close } = await createFixture(await open())
    await memory.forget({ key: 'acme:s1' })
    expect(await idsOf(graph)).toEqual(['s2', 'alone'])
    expect(await endsOf(graph)).toEqual([])
    expect(await traces()).toEqual([])
    await close()
  })

  verifies('X-05', 'follows an expired session', async () => {
    const { store, graph, close } = await createFixture(await open())
    await store.erase(parseKey('acme:s1'), { expiredBy: 1_000 })
    expect(await idsOf(graph)).toEqual(['cat', 'safe', 'both', 's2', 'alone'])
    await store.erase(parseKey('acme:s1'), { expiredBy: noExpiry })
    expect(await idsOf(graph)).toEqual(['s2', 'alone'])
    await close()
  })

  verifies(['X-05', 'H-09'], 'follows a forgotten scope, with many or few nodes, and leaves other scopes', async () => {
    for (const others of [0, 150]) {
      const { memory, graph, traces, close } = await createFixture(await open(), others)
      const node = { name: canary, entityType: canary, observations: [`The code is ${canary}.`] }
      await graph.nodes.createEntities('acme', [node])
      await graph.nodes.createRelations('acme', [{ from: canary, to: 'n1', relationType: canary }])
      await graph.nodes.createEntities('other', [{ name: 'kept', entityType: 'thing', observations: ['it is kept'] }])
      await memory.forget({ scope: 'acme' })
      expect(await idsOf(graph)).toEqual([])
      expect(await graph.nodes.readGraph('acme')).toEqual({ entities: [], relations: [] })
      expect((await graph.nodes.searchNodes('other', 'kept')).entities).toHaveLength(1)
      expect(await traces()).toEqual([])
      // The workspace can be created again.
      await graph.nodes.createEntities('acme', [node])
      expect((await graph.nodes.searchNodes('acme', canary)).entities).toEqual([node])
      await close()
    }
  })

  verifies('X-05', 'of nodes by their own tools or by erasing the workspace includes the search text', async () => {
    for (const others of [0, 150]) {
      const { memory, graph, traces, close } = await createFixture(await open(), others)
      await memory.forget({ key: 'acme:s1' })
      const node = { name: 'safe', entityType: 'thing', observations: ['it is grey', `The code is ${canary}.`] }
      await graph.nodes.createEntities('acme', [node, { ...node, name: canary }])
      await graph.nodes.deleteObservations('acme', [{ entityName: 'safe', observations: [`The code is ${canary}.`] }])
      await graph.nodes.deleteEntities('acme', [canary])
      // The write-ahead log holds the deleted content until `erase` truncates it.
      expect(await graph.erase('acme', 'nobody')).toBe(0)
      expect(await traces()).toEqual([])
      expect((await graph.nodes.searchNodes('acme', 'grey')).entities).toEqual([
        { ...node, observations: ['it is grey'] },
      ])
      await graph.nodes.createEntities('acme', [{ ...node, name: canary }])
      expect(await graph.erase('acme')).toBe(2 + 2 + others)
      expect(await traces()).toEqual([])
      expect((await graph.nodes.searchNodes('acme', 'grey')).entities).toEqual([])
      await close()
    }
  })
})

describe('trigram index of a file', () => {
  verifies('X-05', 'of an erased workspace is empty', async () => {
    const file = fresh()
    const { memory, graph, close } = await createFixture(await openFile(file), 150)
    await memory.forget({ key: 'acme:s1' })
    expect(countIndexBlocks(file)).toBeGreaterThan(0)
    await graph.erase('acme')
    expect(countIndexBlocks(file)).toBe(0)
    await close()
  })

  verifies('X-05', 'loses deleted trigrams with the next forget, or on close', async () => {
    // A trigram that occurs nowhere else in the file.
    const letters = '\u{10348}\u{10349}\u{1034a}'
    const node = { name: 'safe', entityType: 'thing', observations: [`it says ${letters}`] }
    for (const wiped of ['by forgetting', 'by closing'] as const) {
      const file = fresh()
      const { memory, graph, close } = await createFixture(await openFile(file), 50)
      await graph.nodes.createEntities('acme', [node])
      await graph.nodes.deleteEntities('acme', ['safe'])
      expect((await graph.nodes.searchNodes('acme', letters)).entities).toEqual([])
      expect(isIndexed(file, letters)).toBe(true)
      if (wiped === 'by forgetting') await memory.forget({ scope: 'acme', text: 'nobody said this' })
      else await graph.close()
      expect([wiped, isIndexed(file, letters)]).toEqual([wiped, false])
      expect(findTraces(letters, databaseFiles(file).slice(0, 1))).toEqual([])
      await close()
    }
  })

  verifies('X-05', 'loses trigrams whose deletion was followed by a crash when the graph is next closed', async () => {
    const letters = '\u{10348}\u{10349}\u{1034a}'
    const [file, crashed] = [fresh(), fresh()]
    const graph = await openGraph(`sqlite:${file}`)
    const node = { name: 'safe', entityType: 'thing', observations: [`it says ${letters}`] }
    await graph.nodes.createEntities('acme', [node, { ...node, name: 'other', observations: [] }])
    await graph.nodes.deleteEntities('acme', ['safe'])
    for (const suffix of ['', '-wal']) copyFileSync(file + suffix, crashed + suffix)
    await graph.close()
    expect(isIndexed(crashed, letters)).toBe(true)
    const reopened = await openGraph(`sqlite:${crashed}`)
    await reopened.close()
    expect(isIndexed(crashed, letters)).toBe(false)
    // Nothing is left to do: the file is not written to again.
    const before = readFileSync(crashed)
    await (await openGraph(`sqlite:${crashed}`)).close()
    expect(readFileSync(crashed).equals(before)).toBe(true)
  })

  verifies(
    'X-05',
    'with writes of others between the steps of a merge › loses all trigrams of erased rows',
    async () => {
      const letters = '\u{10348}\u{10349}\u{1034a}'
      const file = fresh()
      const graph = await openGraph(`sqlite:${file}`)
      const node = (name: string, observations: readonly string[]) => ({ name, entityType: 'thing', observations })
      const hashes = Array.from({ length: 4_000 }, (_, at) => createHash('sha512').update(`${at}`).digest('hex'))
      await graph.nodes.createEntities('other', [node('many', hashes)])
      await graph.nodes.createEntities('acme', [node('safe', [`it says ${letters}`])])
      const database = new DatabaseSync(file)
      // A merge of the one segment that this leaves and that of the deletion has two inputs.
      mergeIndexes(database)
      const { scope, id } = graphKey('acme')
      runSync(deleteNodesInSteps(database, inHome, scope, id))
      expect(isIndexed(file, letters)).toBe(true)
      const merge = mergeIndexesInSteps(database)
      for (let step = merge.next(), at = 0; step.done !== true; step = merge.next(), at++)
        for (let added = 0; at === 6 && added < 3; added++)
          await graph.nodes.createEntities('other', [node(`new ${added}`, ['grey'])])
      expect(isIndexed(file, letters)).toBe(false)
      database.close()
      await graph.close()
    },
  )
})
