import { createHash } from 'node:crypto'
import { copyFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, vi } from 'vitest'
import { graphKey } from '../../src/domain/key.ts'
import { runSync } from '../../src/domain/work.ts'
import { openGraph } from '../../src/graph/graph.ts'
import { GraphDatabase } from '../../src/graph/sqlite/database.ts'
import { SqliteGraph } from '../../src/graph/sqlite/graph.ts'
import { GraphWorkspaces } from '../../src/graph/sqlite/workspaces.ts'
import type { StoreGraph } from '../../src/graph/types.ts'
import { openMemory } from '../../src/index.ts'
import { deleteNodesInSteps, inHome } from '../../src/stores/sqlite/graph.ts'
import { indexedTables, mergeIndexPart } from '../../src/stores/sqlite/wipe/mergeIndexes.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { useSlowClock } from '../support/slowClock.ts'
import { type GraphWithNodes, requireGraph } from './fixtures.ts'
import { isIndexed, readIndexBlocks } from './trigramIndex.ts'

const fresh = createTempPaths()
/** Trigrams that occur nowhere else in a file. */
const letters = '\u{10348}\u{10349}\u{1034a}'
const otherLetters = '\u{10350}\u{10351}\u{10352}'

const createNode = (graph: GraphWithNodes, workspace: string, observations: readonly string[]) =>
  graph.nodes.createEntities(workspace, [{ name: 'safe', entityType: 'thing', observations }])

/** Creates observations whose trigrams hardly repeat, so that merging their index takes long. */
const createHashes = (graph: GraphWithNodes, count: number) =>
  createNode(
    graph,
    'hashes',
    Array.from({ length: count }, (_, at) => createHash('sha512').update(`${at}`).digest('base64').repeat(4)),
  )

const copyFiles = (file: string, copy: string): void => {
  for (const suffix of ['', '-wal']) copyFileSync(file + suffix, copy + suffix)
}

describe('merging the trigram index of a graph', () => {
  verifies('R-03', 'of a large graph › takes its time in another thread', async () => {
    const file = fresh()
    const graph = await openGraph(`sqlite:${file}`)
    await createHashes(graph, 2_000)
    const database = new GraphDatabase(file)
    const [thread, all] = [process.threadCpuUsage(), process.cpuUsage()]
    await database.mergeIndexes()
    const used = [process.threadCpuUsage(thread), process.cpuUsage(all)].map(({ user, system }) => user + system)
    expect((used[0] ?? 0) / (used[1] ?? 0)).toBeLessThan(0.5)
    await Promise.all([database.close(), graph.close()])
  })

  verifies('X-05', 'after a kill between an erasure and its merge › is done when either is repeated', async () => {
    for (const erase of [
      (graph: StoreGraph) => graph.erase('acme'),
      (graph: StoreGraph) => graph.forget('acme', [letters]),
    ]) {
      const [file, closed, repeated] = [fresh(), fresh(), fresh()]
      const graph = await openGraph(`sqlite:${file}`)
      await createNode(graph, 'acme', [letters])
      const merge = vi.spyOn(GraphDatabase.prototype, 'mergeIndexes').mockImplementationOnce(async () => {
        for (const copy of [closed, repeated]) copyFiles(file, copy)
      })
      await erase(graph)
      merge.mockRestore()
      await graph.close()
      expect([closed, repeated].map((copy) => isIndexed(copy, letters))).toEqual([true, true])
      await (await openGraph(`sqlite:${closed}`)).close()
      expect(isIndexed(closed, letters)).toBe(false)
      const reopened = await openGraph(`sqlite:${repeated}`)
      await erase(reopened)
      expect(isIndexed(repeated, letters)).toBe(false)
      await reopened.close()
    }
  })

  verifies('X-05', 'of two erasures at once › removes the trigrams of both', async () => {
    const file = fresh()
    const store = sqliteStore(file)
    const stored = await requireGraph(store, () => 1_000)
    const database = new GraphDatabase()
    const inMemory = new SqliteGraph(database, new GraphWorkspaces(database), () => 1_000)
    const ownFile = fresh()
    for (const [graph, readBlocks] of [
      [stored, () => readFile(file)],
      [await openGraph(`sqlite:${ownFile}`), () => readFile(ownFile)],
      [inMemory, () => readIndexBlocks(database.database)],
    ] as const) {
      await createHashes(graph, 500)
      await createNode(graph, 'acme', [letters])
      await createNode(graph, 'globex', [otherLetters])
      expect(await Promise.all([graph.erase('acme'), graph.erase('globex')])).toEqual([1, 1])
      const blocks = Buffer.concat(readBlocks())
      expect([blocks.includes(letters), blocks.includes(otherLetters)]).toEqual([false, false])
      expect((await graph.nodes.readGraph('hashes')).entities).toHaveLength(1)
      await graph.close()
    }
    await store.close()
  })

  verifies('X-05', 'when the graph or its store is closed meanwhile › is finished first', async () => {
    for (const isStored of [true, false]) {
      const file = fresh()
      const store = isStored ? sqliteStore(file) : undefined
      const graph = store === undefined ? await openGraph(`sqlite:${file}`) : await requireGraph(store, () => 1_000)
      await createHashes(graph, 500)
      await createNode(graph, 'acme', [letters])
      const erasing = graph.erase('acme')
      const closing = [store?.close(), graph.close()]
      expect(await erasing).toBe(1)
      await Promise.all(closing)
      expect(isIndexed(file, letters)).toBe(false)
    }
  })

  verifies(
    ['R-03', 'X-05'],
    'in a thread that gets little processor time › lets turns of the store be stored between its parts, and ends',
    async () => {
      const file = fresh()
      const store = sqliteStore(file)
      const graph = await requireGraph(store, () => 1_000)
      await using memory = await openMemory({ store, clock: () => 1_000, upkeep: false })
      await createHashes(graph, 200)
      await createNode(graph, 'acme', [letters])
      const database = new DatabaseSync(file)
      const { scope, id } = graphKey('acme')
      runSync(deleteNodesInSteps(database, inHome, scope, id))
      let parts = 0
      for (const table of indexedTables)
        for (let isFirst = true; ; isFirst = false) {
          {
            using _ = useSlowClock(1_000)
            if (mergeIndexPart(database, table, isFirst)) break
          }
          expect(++parts).toBeLessThan(1_000)
          if (parts <= 2) await memory.append('acme:s', [{ role: 'user', content: `Turn ${parts}.` }])
        }
      expect(parts).toBeGreaterThanOrEqual(2)
      expect(await memory.transcript('acme:s')).toHaveLength(2)
      expect(isIndexed(file, letters)).toBe(false)
      database.close()
      await graph.close()
    },
  )
})

function readFile(file: string): readonly Uint8Array[] {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return readIndexBlocks(database)
  } finally {
    database.close()
  }
}
