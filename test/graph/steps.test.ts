import { createHash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { rowsContainingInSteps } from '../../src/graph/rowsContaining.ts'
import type { StoredGraphRow } from '../../src/graph/types.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { databaseFiles, findTraces } from '../stores/traces.ts'
import { countTurns, useSlowClock } from '../support/slowClock.ts'
import { person, requireGraph, writeKeyFile } from './fixtures.ts'

const fresh = createTempPaths()
const node = (name: string, observations: readonly string[] = [`about ${name}`]) => ({
  name,
  entityType: 'thing',
  observations,
})
const createNodes = (count: number) => Array.from({ length: count }, (_, at) => node(`n${at}`))

describe('rowsContainingInSteps', () => {
  it('with rows that all match, and with a long value › counts them as work', () => {
    const count = (rows: readonly StoredGraphRow[], text: string): readonly [found: number, work: number] => {
      const search = rowsContainingInSteps(rows, [text])
      let [work, step] = [0, search.next()]
      for (; step.done !== true; step = search.next()) work += step.value
      return [step.value.node.length, work]
    }
    const rows = createNodes(1_000).map((row, rowId): StoredGraphRow => ({ rowId, row: { node: row } }))
    const [found, work] = count(rows, 'thing')
    expect([found, work >= 10_000]).toEqual([1_000, true])
    const long: StoredGraphRow = { rowId: 1, row: { node: node('a', ['x'.repeat(1_000_000)]) } }
    expect(count([long], 'y')[1]).toBeGreaterThan(10_000)
  })
})

describe('a large graph', () => {
  verifies('R-03', 'while it is read, searched or opened › lets other work run', async () => {
    using _ = useSlowClock()
    for (const [options, count] of [
      [{}, 6_000],
      [{ storeKey: writeKeyFile(fresh('.key')) }, 1_500],
    ] as const) {
      const graph = await openGraph(`sqlite:${fresh()}`, options)
      const stored = createNodes(count)
      await graph.nodes.createEntities('acme', stored)
      const relations = stored.slice(1).map(({ name }) => ({ from: 'n0', to: name, relationType: 'knows' }))
      await graph.nodes.createRelations('acme', relations)
      const names = stored.map(({ name }) => name)
      for (const read of [
        () => graph.nodes.readGraph('acme'),
        () => graph.nodes.searchNodes('acme', 'about'),
        () => graph.nodes.searchNodes('acme', 'n'),
        () => graph.nodes.openNodes('acme', names),
      ]) {
        const { value, turns } = await countTurns(read())
        expect([isDeepStrictEqual(value, { entities: stored, relations }), turns > 3]).toEqual([true, true])
      }
      const { value, turns } = await countTurns(graph.archive.readAll('acme'))
      expect([value.length, turns > 3]).toEqual([stored.length + relations.length, true])
      await graph.close()
    }
  })

  verifies('R-03', 'while its entities are filtered and sorted › lets other work run', async () => {
    using _ = useSlowClock()
    for (const options of [{}, { storeKey: writeKeyFile(fresh('.key')) }]) {
      const graph = await openGraph(`sqlite:${fresh()}`, options)
      const count = 2_000
      const entities = Array.from({ length: count }, (_, at) => person(`e${at}`, { rank: (at * 7) % count }))
      await graph.write('acme', { entities })
      for (const [query, ids] of [
        [{ filters: [{ property: 'rank', op: 'lt', value: 14 }], limit: 2 }, ['e0', 'e1']],
        [{ sort: [{ by: 'rank', order: 'desc' }], offset: 1_998 }, ['e1143', 'e0']],
      ] as const) {
        const { value, turns } = await countTurns(graph.queryEntities('acme', query))
        expect([value.entities.map(({ id }) => id), turns > 3]).toEqual([ids, true])
      }
      const { value, turns } = await countTurns(graph.queryEntities('acme', { offset: 1_999 }))
      expect([value, turns < 9]).toEqual([{ entities: [expect.objectContaining({ id: 'e1999' })], total: count }, true])
      await graph.close()
    }
  })

  verifies('R-03', 'in a file that is written to while it is read › is read as it was before', async () => {
    using _ = useSlowClock()
    const file = fresh()
    const graph = await openGraph(`sqlite:${file}`)
    await graph.nodes.createEntities('acme', createNodes(12_000))
    const other = new DatabaseSync(file, { timeout: 5_000 })
    for (const [write, count] of [
      [() => graph.nodes.deleteEntities('acme', ['n7']), 12_000],
      [() => other.exec('DELETE FROM graph_node WHERE place = (SELECT max(place) FROM graph_node)'), 11_999],
    ] as const) {
      const reading = graph.nodes.searchNodes('acme', 'about')
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
      await write()
      const { entities } = await reading
      expect(entities).toHaveLength(count)
      expect(entities.every(({ observations }) => observations.length === 1)).toBe(true)
    }
    expect((await graph.nodes.searchNodes('acme', 'about')).entities).toHaveLength(11_998)
    other.close()
    await graph.close()
  })

  verifies('R-03', 'in memory, written to while it is read › is read again, and never in parts', async () => {
    using _ = useSlowClock()
    const graph = await openGraph('ram:')
    await graph.nodes.createEntities('acme', createNodes(6_000))
    const reading = graph.nodes.searchNodes('acme', 'about')
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
    await graph.nodes.deleteEntities('acme', ['n7'])
    const { entities } = await reading
    expect(entities).toHaveLength(5_999)
    expect(entities.every(({ observations }) => observations.length === 1)).toBe(true)
    await graph.close()
  })

  verifies('R-03', 'in a file that is written to all the time › is read without delaying the writes', async () => {
    const file = fresh()
    const graph = await openGraph(`sqlite:${file}`)
    const stored = createNodes(3_000)
    await graph.nodes.createEntities('acme', stored)
    // The read cannot end a transaction of its own meanwhile.
    const other = new DatabaseSync(file, { timeout: 5_000 })
    using _ = useSlowClock()
    for (const countRead of [
      async () => (await graph.nodes.searchNodes('acme', 'about')).entities.length,
      async () => (await graph.archive.readAll('acme')).length,
    ]) {
      let isRead = false
      const reading = countTurns(countRead().finally(() => (isRead = true)))
      while (!isRead) {
        await new Promise((resolve) => setImmediate(resolve))
        other.exec("UPDATE meta SET value = value + 1 WHERE name = 'stamp'")
      }
      const { value, turns } = await reading
      expect([value, turns > 3]).toEqual([3_000, true])
    }
    other.close()
    await graph.close()
  })

  verifies('X-05', 'read while it is erased › is read as it was, and leaves no trace', async () => {
    const file = fresh()
    const store = sqliteStore(file)
    const graph = await requireGraph(store, () => 1_000)
    await graph.nodes.createEntities('acme', createNodes(3_000))
    using _ = useSlowClock()
    const reading = graph.nodes.searchNodes('acme', 'about')
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
    const [{ entities }, erased] = await Promise.all([reading, graph.erase('acme')])
    expect([entities.length, erased]).toEqual([3_000, 3_000])
    expect(findTraces('about n', databaseFiles(file))).toEqual([])
    await Promise.all([graph.close(), store.close()])
  })

  verifies('R-03', 'written to all the time › is read nevertheless, with pauses', async () => {
    using _ = useSlowClock()
    const graph = await openGraph('ram:')
    await graph.nodes.createEntities('acme', createNodes(12_000))
    let isRead = false
    const reading = countTurns(graph.nodes.readGraph('acme').finally(() => (isRead = true)))
    let writes = 0
    for (; !isRead; writes++) await graph.nodes.createEntities('acme', [node(`new ${writes}`)])
    const { value, turns } = await reading
    expect([value.entities.length > 12_000, turns > 10, writes > 3]).toEqual([true, true, true])
    await graph.close()
  })

  verifies('R-03', 'while it is erased › lets other work run, and leaves other graphs as they are', async () => {
    using _ = useSlowClock()
    const file = fresh()
    const graph = await openGraph(`sqlite:${file}`)
    await graph.nodes.createEntities('acme', [
      ...createNodes(3_000),
      node(
        'one',
        Array.from({ length: 3_000 }, (_, at) => `fact ${at}`),
      ),
    ])
    const entities = Array.from({ length: 2_000 }, (_, at) => ({ ...person(`p${at}`), session: 's1' }))
    await graph.write('acme', { entities: [...entities, person('p')] })
    const hash = (text: string) => createHash('sha512').update(text).digest('hex')
    const others = createNodes(300).map((each) => ({
      ...each,
      observations: [1, 2, 3, 4].map((n) => hash(each.name + n)),
    }))
    await graph.nodes.createEntities('other', others)
    const session = await countTurns(graph.erase('acme', 's1'))
    expect([session.value, session.turns > 3]).toEqual([2_000, true])
    const all = await countTurns(graph.erase('acme'))
    expect([all.value, all.turns > 10]).toEqual([3_002, true])
    expect(await graph.nodes.readGraph('acme')).toEqual({ entities: [], relations: [] })
    const sought = others[299]
    expect((await graph.nodes.searchNodes('other', sought?.observations[2] ?? '')).entities).toEqual([sought])
    await graph.close()
    const database = new DatabaseSync(file, { readOnly: true })
    for (const table of ['graph_node', 'graph_observation'])
      expect(database.prepare(`SELECT count(DISTINCT segid) AS segments FROM ${table}_words_idx`).get()).toEqual({
        segments: 1,
      })
    database.close()
  })

  verifies('R-03', 'while it is erased › lets others write to the file in between', async () => {
    const file = fresh()
    const graph = await openGraph(`sqlite:${file}`)
    const other = new DatabaseSync(file, { timeout: 0 })
    const tables = ['entity', 'relationship', 'node', 'observation', 'link']
    const counts = tables.map((table) => `(SELECT count(*) FROM graph_${table})`)
    const countRows = () => Number(other.prepare(`SELECT ${counts.join(' + ')} AS rows`).get()?.rows)
    /** Returns the number of rows, or undefined while the graph has the lock. */
    const countWithLock = (): number | undefined => {
      try {
        other.exec('BEGIN IMMEDIATE')
      } catch {
        return undefined
      }
      const rows = countRows()
      other.exec('ROLLBACK')
      return rows
    }
    const stored = createNodes(600)
    const entities = stored.map(({ name }) => ({ ...person(name), session: 's1' }))
    const names = stored.map(({ name }) => name)
    const relations = names.map((name) => ({ from: 'n0', to: name, relationType: 'knows' }))
    for (const [erase, left] of [
      [() => graph.erase('acme', 's1'), 1_800],
      [() => graph.erase('acme'), 0],
      [() => graph.forget('acme', ['about', 'PERSON']), 1_200],
      [() => graph.nodes.deleteEntities('acme', names), 600],
      [() => graph.forget('acme', ['n']), 0],
    ] as const) {
      await graph.write('acme', { entities })
      await graph.nodes.createEntities('acme', stored)
      await graph.nodes.createRelations('acme', relations)
      const before = countRows()
      using _ = useSlowClock(400)
      let isErased = false
      const erasing = erase().finally(() => (isErased = true))
      const seen = new Set<number>()
      while (!isErased) {
        await new Promise((resolve) => setImmediate(resolve))
        const rows = countWithLock()
        if (rows !== undefined && rows < before && rows > left) seen.add(rows)
      }
      await erasing
      expect([countRows(), seen.size > 0]).toEqual([left, true])
    }
    other.close()
    await graph.close()
  })

  verifies(
    'R-03',
    'of a node with many observations that are erased by text › lets others write in between',
    async () => {
      const file = fresh()
      const graph = await openGraph(`sqlite:${file}`)
      const facts = Array.from({ length: 2_000 }, (_, at) => `fact ${at}`)
      await graph.nodes.createEntities('acme', [node('one', ['grey', ...facts]), node('two', ['grey', ...facts])])
      using _ = useSlowClock(400)
      const erasing = graph.forget('acme', ['fact'], { deferWipe: true })
      let isErased = false
      const done = erasing.finally(() => (isErased = true))
      const other = new DatabaseSync(file, { readOnly: true })
      const counts = new Set<unknown>()
      while (!isErased) {
        await new Promise((resolve) => setImmediate(resolve))
        counts.add(other.prepare('SELECT count(*) AS rows FROM graph_observation').get()?.rows)
      }
      await done
      other.close()
      expect([(await erasing).length, counts.size > 3]).toEqual([4_000, true])
      const { entities } = await graph.nodes.readGraph('acme')
      expect(entities.map(({ name, observations }) => [name, ...observations])).toEqual([
        ['one', 'grey'],
        ['two', 'grey'],
      ])
      await graph.close()
    },
  )

  verifies('R-03', 'while rows with a text are erased › lets other work run', async () => {
    using _ = useSlowClock()
    const graph = await openGraph('ram:')
    const stored = createNodes(2_000)
    await graph.nodes.createEntities('acme', stored)
    const relations = stored.map(({ name }, at) => ({ from: name, to: `n${(7 * at) % 2_000}`, relationType: 'knows' }))
    await graph.nodes.createRelations('acme', relations)
    const entities = Array.from({ length: 3_000 }, (_, at) => ({ ...person(`p${at}`), session: 's1' }))
    await graph.write('acme', { entities })
    const observations = await countTurns(graph.forget('acme', ['about n1']))
    expect([observations.value.length, observations.turns > 50]).toEqual([1_111, true])
    const nodes = await countTurns(graph.forget('acme', ['thing']))
    expect([nodes.value.length, nodes.turns > 50]).toEqual([2_000, true])
    expect(await graph.nodes.readGraph('acme')).toEqual({ entities: [], relations: [] })
    expect((await graph.queryEntities('acme')).total).toBe(3_000)
    await graph.close()
  })

  verifies('R-03', 'while many names are masked › lets other work run', async () => {
    using _ = useSlowClock()
    const graph = await openGraph('ram:')
    const { value, turns } = await countTurns(
      graph.nodes.openNodes(
        'acme',
        createNodes(5_000).map(({ name }) => name),
      ),
    )
    expect([value, turns > 10]).toEqual([{ entities: [], relations: [] }, true])
    await graph.close()
  })

  it('closed while it is read › is read to its end', async () => {
    using _ = useSlowClock()
    // A database in memory is lost with its connection.
    const graph = await openGraph('ram:')
    await graph.nodes.createEntities('acme', createNodes(12_000))
    const reading = graph.nodes.readGraph('acme')
    await new Promise((resolve) => setImmediate(resolve))
    await graph.close()
    expect((await reading).entities).toHaveLength(12_000)
    await expect(graph.nodes.readGraph('acme')).rejects.toMatchObject({ code: 'closed' })
  })
})
