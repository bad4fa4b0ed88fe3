import { DatabaseSync } from 'node:sqlite'
import { describe, expect } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { openGraph } from '../../src/graph/graph.ts'
import { type Memory, openMemory } from '../../src/index.ts'
import { type SqliteStore, sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { databaseFiles, findTraces } from '../stores/traces.ts'
import { type GraphWithNodes, person } from './fixtures.ts'

const fresh = createTempPaths()
const canary = 'Qx7-walrus-Zk93-canary'

type Fixture = {
  readonly file: string
  readonly store: SqliteStore
  readonly memory: Memory
  readonly graph: GraphWithNodes
  readonly traces: () => readonly string[]
  readonly close: () => Promise<void>
}

/** Creates a conversation about the canary and a graph derived from it; `others` more nodes enlarge the index. */
async function createFixture(others = 0): Promise<Fixture> {
  const file = fresh()
  const store = sqliteStore(file)
  const memory = await openMemory({ store, clock: () => 1_000 })
  const graph = await openGraph(`sqlite:${file}`, { clock: () => 1_000 })
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
  return { file, store, memory, graph, traces: () => findTraces(canary, databaseFiles(file)), close }
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

/** True if the index of observations holds a trigram, also of a deleted row. */
function isIndexed(file: string, letters: string): boolean {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const blocks = database.prepare('SELECT block FROM graph_observation_words_data').all() as { block: Uint8Array }[]
    return blocks.some(({ block }) => Buffer.from(block).includes(letters))
  } finally {
    database.close()
  }
}

describe('erasure of derived graph rows', () => {
  verifies(['X-05', 'H-01'], 'follows a forgotten message and leaves no trace in the file', async () => {
    const { memory, graph, traces, close } = await createFixture()
    expect(traces().length).toBeGreaterThan(0)
    await memory.forget({ key: 'acme:s1', messageId: 'm2' })
    expect(await idsOf(graph)).toEqual(['cat', 's2', 'alone'])
    expect(await endsOf(graph)).toEqual(['s2>alone', 'cat>s2'])
    expect(traces()).toEqual([])
    await close()
  })

  verifies('X-05', 'follows a forgotten text', async () => {
    const { memory, graph, traces, close } = await createFixture()
    await memory.forget({ scope: 'acme', text: canary })
    expect(await idsOf(graph)).toEqual(['cat', 's2', 'alone'])
    expect(traces()).toEqual([])
    await close()
  })

  verifies(['X-05', 'H-01'], 'follows a forgotten session', async () => {
    const { memory, graph, traces, close } = await createFixture()
    await memory.forget({ key: 'acme:s1' })
    expect(await idsOf(graph)).toEqual(['s2', 'alone'])
    expect(await endsOf(graph)).toEqual([])
    expect(traces()).toEqual([])
    await close()
  })

  verifies('X-05', 'follows an expired session', async () => {
    const { store, graph, close } = await createFixture()
    await store.erase(parseKey('acme:s1'), { expiredBy: 1_000 })
    expect(await idsOf(graph)).toEqual(['cat', 'safe', 'both', 's2', 'alone'])
    await store.erase(parseKey('acme:s1'), { expiredBy: noExpiry })
    expect(await idsOf(graph)).toEqual(['s2', 'alone'])
    await close()
  })

  verifies(['X-05', 'H-09'], 'follows a forgotten scope, with many or few nodes, and leaves other scopes', async () => {
    for (const others of [0, 150]) {
      const { memory, graph, traces, close } = await createFixture(others)
      const node = { name: canary, entityType: canary, observations: [`The code is ${canary}.`] }
      await graph.nodes.createEntities('acme', [node])
      await graph.nodes.createRelations('acme', [{ from: canary, to: 'n1', relationType: canary }])
      await graph.nodes.createEntities('other', [{ name: 'kept', entityType: 'thing', observations: ['it is kept'] }])
      await memory.forget({ scope: 'acme' })
      expect(await idsOf(graph)).toEqual([])
      expect(await graph.nodes.readGraph('acme')).toEqual({ entities: [], relations: [] })
      expect((await graph.nodes.searchNodes('other', 'kept')).entities).toHaveLength(1)
      expect(traces()).toEqual([])
      // The workspace can be created again.
      await graph.nodes.createEntities('acme', [node])
      expect((await graph.nodes.searchNodes('acme', canary)).entities).toEqual([node])
      await close()
    }
  })

  verifies('X-05', 'of nodes by their own tools or by erasing the workspace includes the index', async () => {
    for (const others of [0, 150]) {
      const { file, memory, graph, traces, close } = await createFixture(others)
      await memory.forget({ key: 'acme:s1' })
      const node = { name: 'safe', entityType: 'thing', observations: ['it is grey', `The code is ${canary}.`] }
      await graph.nodes.createEntities('acme', [node, { ...node, name: canary }])
      await graph.nodes.deleteObservations('acme', [{ entityName: 'safe', observations: [`The code is ${canary}.`] }])
      await graph.nodes.deleteEntities('acme', [canary])
      // The write-ahead log holds the deleted content until `erase` truncates it.
      expect(await graph.erase('acme', 'nobody')).toBe(0)
      expect(traces()).toEqual([])
      expect((await graph.nodes.searchNodes('acme', 'grey')).entities).toEqual([
        { ...node, observations: ['it is grey'] },
      ])
      await graph.nodes.createEntities('acme', [{ ...node, name: canary }])
      expect(await graph.erase('acme')).toBe(2 + 2 + others)
      expect(traces()).toEqual([])
      expect((await graph.nodes.searchNodes('acme', 'grey')).entities).toEqual([])
      expect(countIndexBlocks(file)).toBe(0)
      await close()
    }
  })

  verifies('X-05', 'removes deleted trigrams from the index with the next forget, or on close', async () => {
    // A trigram that occurs nowhere else in the file.
    const letters = '\u{10348}\u{10349}\u{1034a}'
    const node = { name: 'safe', entityType: 'thing', observations: [`it says ${letters}`] }
    for (const wiped of ['by forgetting', 'by closing'] as const) {
      const { file, memory, graph, close } = await createFixture(50)
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
})
