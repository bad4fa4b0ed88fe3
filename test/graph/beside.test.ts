import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import type { Store } from '../../src/domain/ports.ts'
import { never } from '../../src/domain/session.ts'
import { forgetBeside } from '../../src/graph/beside.ts'
import { openGraph } from '../../src/graph/graph.ts'
import { openMemory } from '../../src/index.ts'
import { internalsOf } from '../../src/memory.ts'
import { heard } from '../../src/stores/capabilities.ts'
import { borrowed } from '../../src/stores/sharedStore.ts'
import { openStore } from '../../src/stores/open.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { databaseFiles, tracesOf } from '../stores/traces.ts'
import { keyFile, type Opened, person } from './stage.ts'

const fresh = freshFiles()
const canary = 'Qx7-walrus-Zk93-canary'
const safe = { name: 'safe', entityType: 'thing', observations: ['it is grey', `Its code is ${canary.toUpperCase()}.`] }

/** What says the canary somewhere, each in another way, and what does not. */
async function filled(graph: Opened): Promise<void> {
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

/** Everything of `filled` that does not say the canary. */
async function left(graph: Opened): Promise<void> {
  expect((await graph.entities('acme')).entities.map(({ id }) => id)).toEqual(['left', 'right'])
  expect((await graph.relationships('acme')).relationships.map(({ from, to }) => `${from}>${to}`)).toEqual([
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

/** Entities, a relationship, nodes, a link and an observation; the other link goes with its node. */
const nobody = { at: 1, sessions: [] }
const goneFrom = async (store: Store, text?: string): Promise<readonly string[]> =>
  (await forgetBeside([store], { scope: 'acme', ...(text === undefined ? {} : { text }) }, nobody)).sessions.flatMap(
    ({ entries }) => entries,
  )
const everything = 4 + 1 + 2 + 1 + 1

describe('forgetting a text', () => {
  verifies('X-05', 'takes every row that says it, in whichever case, and no other, without a trace', async () => {
    const file = fresh()
    const [store, graph] = [sqliteStore(file), await openGraph(`sqlite:${file}`)]
    await filled(graph)
    await graph.erase('other')
    expect(tracesOf(canary, databaseFiles(file)).length).toBeGreaterThan(0)
    expect(await goneFrom(store, canary.toLowerCase())).toHaveLength(everything)
    expect(tracesOf(canary, databaseFiles(file))).toEqual([])
    expect(tracesOf(canary.toUpperCase(), databaseFiles(file))).toEqual([])
    await graph.nodes.createEntities('other', [{ ...safe, name: canary }])
    await left(graph)
    expect(await goneFrom(store, canary)).toEqual([])
    await Promise.all([store.close(), graph.close()])
  })

  it('makes no graph where there is none, and finds none in a store without one', async () => {
    const store = sqliteStore(fresh())
    expect(await goneFrom(store, canary)).toEqual([])
    expect(await goneFrom(ramStore(), canary)).toEqual([])
    await store.close()
  })

  verifies('X-05', 'through a memory reaches the graph in its file, plain or encrypted, and in RAM', async () => {
    const storeKey = keyFile(fresh('.key'))
    for (const [url, options] of [
      [`sqlite:${fresh()}`, {}],
      [`sqlite:${fresh()}`, { storeKey }],
      ['ram:', {}],
    ] as const) {
      const memory = await openMemory({ store: url, ...options })
      const graph = await openGraph(url, { ...options, beside: internalsOf(memory).store })
      await filled(graph)
      const { sessions } = await memory.forget({ scope: 'acme', text: canary })
      expect(sessions).toEqual([{ key: 'acme::graph', entries: expect.any(Array) }])
      expect(sessions[0]?.entries).toHaveLength(everything)
      expect(JSON.stringify(sessions)).not.toContain(canary)
      await left(graph)
      await Promise.all([memory.close(), graph.close()])
    }
  })
})

describe('a graph in RAM', () => {
  const idsOf = async (graph: Opened): Promise<readonly string[]> =>
    (await graph.entities('acme')).entities.map(({ id }) => id)
  const drawn = [
    { ...person('one'), session: 's1', sources: ['m1'] },
    { ...person('two'), session: 's1', sources: ['m2'] },
    { ...person('three'), session: 's2' },
    person('alone'),
  ]

  verifies('X-05', 'forgets with the store beside it: messages, sessions, and sessions that are over', async () => {
    const store = heard(ramStore())
    const graph = await openGraph('ram:', { beside: store })
    await graph.write('acme', { entities: drawn })
    const [s1, s2] = [parseKey('acme:s1'), parseKey('acme:s2')]
    for (const key of [s1, s2])
      await store.commit({ key, at: 1, epoch: 0, append: [], put: [], drop: [], expiresAt: key === s1 ? never : 100 })
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
    // Whoever has closed it hears nothing more.
    await store.erase(s1)
    expect(store.bytes).toEqual({ used: 0 })
  })

  verifies(
    'X-05',
    'forgets with the memory beside it: a session, what is over, and a scope with its nodes',
    async () => {
      let now = 1_000
      const memory = await openMemory({ store: 'ram:', clock: () => now })
      const graph = await openGraph('ram:', { beside: internalsOf(memory).store, clock: () => now })
      await graph.write('acme', { entities: drawn })
      await graph.nodes.createEntities('acme', [safe])
      await graph.nodes.createEntities('other', [safe])
      for (const key of ['acme:s1', 'acme:s2']) await memory.append(key, [{ role: 'user', content: 'Hello.' }])
      await memory.forget({ key: 'acme:s1' })
      expect(await idsOf(graph)).toEqual(['three', 'alone'])
      await memory.describe('acme:s2', { idle: 1_000 })
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

  it('is found through a store that is lent', async () => {
    const store = await openStore('ram:')
    const graph = await openGraph('ram:', { beside: borrowed(store) })
    await filled(graph)
    expect(await goneFrom(borrowed(store), canary)).toHaveLength(everything)
    expect(await goneFrom(borrowed(store))).toEqual(['graph'])
    await Promise.all([store.close(), graph.close()])
  })
})
