import { existsSync, rmSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import type { Store } from '../../src/domain/ports.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { forgetInGraphs, openGraph, openStoreGraph } from '../../src/graph/graph.ts'
import { openMemory } from '../../src/index.ts'
import { internalsOf } from '../../src/memory.ts'
import { openEncryptedStore } from '../../src/stores/encrypted.ts'
import { withEraseListeners } from '../../src/stores/eraseListeners.ts'
import { openStore } from '../../src/stores/open.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { sharedStore } from '../../src/stores/sharedStore.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { databaseFiles, findTraces } from '../stores/traces.ts'
import { createEmptyStores } from '../support/postgres.ts'
import { type GraphWithNodes, person, writeKeyFile } from './fixtures.ts'

const fresh = createTempPaths()
const canary = 'Qx7-walrus-Zk93-canary'
const safe = { name: 'safe', entityType: 'thing', observations: ['it is grey', `Its code is ${canary.toUpperCase()}.`] }

/** Writes rows that contain the canary, each in another field, and rows that do not. */
async function fillGraph(graph: GraphWithNodes): Promise<void> {
  await graph.write('acme', {
    entities: [
      person(`id ${canary}`),
      person('name', { [canary]: 1 }),
      person('deep', { list: [{ of: [`my ${canary}.`] }] }),
      { ...person('drawn', { says: canary }), session: 's9' },
      person('left', { city: 'Oslo' }),
      person('right'),
    ],
    relationships: [
      { from: 'left', to: 'right', type: 'KNOWS', properties: { why: canary } },
      { from: 'deep', to: 'right', type: 'KNOWS' },
      { from: 'right', to: 'left', type: 'KNOWS' },
    ],
  })
  await graph.nodes.createEntities('acme', [
    safe,
    { name: `the ${canary}`, entityType: 'thing', observations: ['a'] },
    { name: 'typed', entityType: canary, observations: ['b'] },
  ])
  await graph.nodes.createRelations('acme', [
    { from: 'safe', to: 'typed', relationType: 'near' },
    { from: 'safe', to: 'wall', relationType: canary },
    { from: 'safe', to: 'wall', relationType: 'in' },
  ])
  await graph.nodes.createEntities('other', [{ ...safe, name: canary }])
}

/** Expects exactly the rows of `fillGraph` that do not contain the canary. */
async function expectOtherRows(graph: GraphWithNodes): Promise<void> {
  expect((await graph.queryEntities('acme')).entities.map(({ id }) => id)).toEqual(['left', 'right'])
  expect((await graph.queryRelationships('acme')).relationships.map(({ from, to }) => `${from}>${to}`)).toEqual([
    'right>left',
  ])
  const node = { ...safe, observations: ['it is grey'] }
  expect(await graph.nodes.readGraph('acme')).toEqual({
    entities: [node],
    relations: [{ from: 'safe', to: 'wall', relationType: 'in' }],
  })
  expect((await graph.nodes.searchNodes('acme', canary)).entities).toEqual([])
  expect((await graph.nodes.searchNodes('acme', 'grey')).entities).toEqual([node])
  expect((await graph.nodes.readGraph('other')).entities).toEqual([{ ...safe, name: canary }])
}

const openPostgres = createEmptyStores()
const emptyResult = { at: 1, sessions: [] }
const forgetIn = async (store: Store, text?: string): Promise<readonly string[]> =>
  (
    await forgetInGraphs([store], { scope: 'acme', ...(text === undefined ? {} : { text }) }, emptyResult)
  ).sessions.flatMap(({ entries }) => entries)
/** Entities, a relationship, nodes, a link and an observation; the other link is deleted with its node. */
const canaryRows = 4 + 1 + 2 + 1 + 1

describe('forgetting a text', () => {
  verifies('X-05', 'deletes every row that contains it in any case, no other row, and leaves no trace', async () => {
    const file = fresh()
    const [store, graph] = [sqliteStore(file), await openGraph(`sqlite:${file}`)]
    await fillGraph(graph)
    await graph.erase('other')
    expect(findTraces(canary, databaseFiles(file)).length).toBeGreaterThan(0)
    expect(await forgetIn(store, canary.toLowerCase())).toHaveLength(canaryRows)
    await store.capabilities.file?.wipe()
    expect(findTraces(canary, databaseFiles(file))).toEqual([])
    expect(findTraces(canary.toUpperCase(), databaseFiles(file))).toEqual([])
    await graph.nodes.createEntities('other', [{ ...safe, name: canary }])
    await expectOtherRows(graph)
    expect(await forgetIn(store, canary)).toEqual([])
    await Promise.all([store.close(), graph.close()])
  })

  it('in a store without a graph does nothing and creates none', async () => {
    const store = sqliteStore(fresh())
    expect(await forgetIn(store, canary)).toEqual([])
    expect(await forgetIn(ramStore(), canary)).toEqual([])
    await store.close()
  })

  it('in a store that was closed and deleted › fails with closed and creates no file', async () => {
    const file = fresh()
    const store = sqliteStore(file)
    await store.close()
    rmSync(file)
    await expect(forgetIn(store, canary)).rejects.toMatchObject({ code: 'closed' })
    expect(databaseFiles(file).filter((path) => existsSync(path))).toEqual([])
  })

  verifies('X-01', 'with rows of another tenant before, and of none › reports the same', async () => {
    for (const open of [() => openStore(`sqlite:${fresh()}`), () => openPostgres(), () => openStore('ram:')]) {
      const reports: unknown[] = []
      for (const others of [0, 3]) {
        const store = await open()
        const memory = await openMemory({ store })
        const graph = (await openStoreGraph(store)) ?? (await openGraph('ram:', { memoryStore: store }))
        for (let name = 0; name < others; name++)
          await graph.write('beta', { entities: [person(`beta ${name}`), person(`more ${name}`)] })
        await fillGraph(graph)
        reports.push((await memory.forget({ scope: 'acme', text: canary })).sessions)
        await Promise.all([memory.close(), graph.close()])
      }
      expect(reports[1]).toEqual(reports[0])
    }
  })

  verifies('X-05', 'through a memory includes the graph in its database, plain or encrypted, and in RAM', async () => {
    const storeKey = writeKeyFile(fresh('.key'))
    for (const open of [
      () => openStore(`sqlite:${fresh()}`),
      () => openStore(`sqlite:${fresh()}`, storeKey),
      () => openPostgres(),
      async () => openEncryptedStore(await openPostgres(), storeKey),
      () => openStore('ram:'),
    ]) {
      const store = await open()
      const memory = await openMemory({ store })
      const graph = (await openStoreGraph(store)) ?? (await openGraph('ram:', { memoryStore: store }))
      await fillGraph(graph)
      const { sessions } = await memory.forget({ scope: 'acme', text: canary })
      expect(sessions).toEqual([{ key: 'acme::graph', entries: expect.any(Array) }])
      expect(sessions[0]?.entries).toHaveLength(canaryRows)
      expect(JSON.stringify(sessions)).not.toContain(canary)
      await expectOtherRows(graph)
      await Promise.all([memory.close(), graph.close()])
    }
  })
})

describe('graph in RAM', () => {
  const idsOf = async (graph: GraphWithNodes): Promise<readonly string[]> =>
    (await graph.queryEntities('acme')).entities.map(({ id }) => id)
  const derivedEntities = [
    { ...person('one'), session: 's1', sources: ['m1'] },
    { ...person('two'), session: 's1', sources: ['m2'] },
    { ...person('three'), session: 's2' },
    person('alone'),
  ]

  verifies('X-05', 'follows erasures of its store: messages, sessions and expired sessions', async () => {
    const store = withEraseListeners(ramStore())
    const graph = await openGraph('ram:', { memoryStore: store })
    await graph.write('acme', { entities: derivedEntities })
    const [s1, s2] = [parseKey('acme:s1'), parseKey('acme:s2')]
    for (const key of [s1, s2])
      await store.commit({
        key,
        at: 1,
        epoch: 0,
        append: [],
        put: [],
        drop: [],
        expiresAt: key === s1 ? noExpiry : 100,
      })
    await store.erase(s1, { entries: ['m2'] })
    expect(await idsOf(graph)).toEqual(['one', 'three', 'alone'])
    await store.erase(s2, { expiredBy: 99 })
    expect(await idsOf(graph)).toEqual(['one', 'three', 'alone'])
    await store.erase(s2, { expiredBy: 100 })
    expect(await idsOf(graph)).toEqual(['one', 'alone'])
    await store.erase(parseKey('acme'), { remains: true })
    await store.erase(s1)
    expect(await idsOf(graph)).toEqual(['alone'])
    await graph.close()
    // A closed graph has unsubscribed from the store.
    await store.erase(s1)
    expect(store.capabilities.memoryLimit.memoryUsage).toMatchObject({ usedBytes: 0 })
  })

  verifies(
    'X-05',
    'follows erasures of its memory: a session, expired sessions, and a scope with its nodes',
    async () => {
      let now = 1_000
      const memory = await openMemory({ store: 'ram:', clock: () => now })
      const graph = await openGraph('ram:', { memoryStore: internalsOf(memory).store, clock: () => now })
      await graph.write('acme', { entities: derivedEntities })
      await graph.nodes.createEntities('acme', [safe])
      await graph.nodes.createEntities('other', [safe])
      for (const key of ['acme:s1', 'acme:s2']) await memory.append(key, [{ role: 'user', content: 'Hello.' }])
      await memory.forget({ key: 'acme:s1' })
      expect(await idsOf(graph)).toEqual(['three', 'alone'])
      await memory.setMetadata('acme:s2', { idle: 1_000 })
      now = 1_000_000
      await memory.sweep()
      expect(await idsOf(graph)).toEqual(['alone'])
      await memory.forget({ scope: 'acme' })
      expect(await idsOf(graph)).toEqual([])
      expect((await graph.nodes.readGraph('acme')).entities).toEqual([])
      expect((await graph.nodes.readGraph('other')).entities).toEqual([safe])
      await Promise.all([memory.close(), graph.close()])
    },
  )

  it('is found through a shared store', async () => {
    const store = await openStore('ram:')
    const graph = await openGraph('ram:', { memoryStore: sharedStore(store) })
    await fillGraph(graph)
    expect(await forgetIn(sharedStore(store), canary)).toHaveLength(canaryRows)
    expect(await forgetIn(sharedStore(store))).toEqual(['graph'])
    await Promise.all([store.close(), graph.close()])
  })
})
