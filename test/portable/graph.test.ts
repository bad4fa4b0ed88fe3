import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type NodeGraph, openGraph } from '../../src/graph/graph.ts'
import { openMemory } from '../../src/index.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { importBundle } from '../../src/portable/import.ts'
import { openStore } from '../../src/stores/open.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { keyFile, person } from '../graph/stage.ts'
import { campaign } from '../recall/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { freshFiles } from '../stores/places.ts'
import { file, gathered } from './bytes.ts'

const fresh = freshFiles()
const secret = keyFile(fresh('.key'))

type Place = { readonly url: string; readonly storeKey?: string }
const plainPlace = (): Place => ({ url: `sqlite:${fresh()}` })
const sealedPlace = (): Place => ({ url: `sqlite:${fresh()}`, storeKey: secret })

const graphIn = ({ url, storeKey }: Place, at = 1_000) => openGraph(url, { clock: () => at, ...(storeKey === undefined ? {} : { storeKey }) })

/** Works on the graph of a place. */
async function within<T>(place: Place, work: (graph: Awaited<ReturnType<typeof openGraph>>) => Promise<T>, at?: number): Promise<T> {
  const graph = await graphIn(place, at)
  try {
    return await work(graph)
  } finally {
    await graph.close()
  }
}

async function exported({ url, storeKey }: Place, options: Parameters<typeof exportBundle>[1] = {}): Promise<Buffer> {
  const store = await openStore(url, storeKey)
  try {
    return await gathered(exportBundle(store, options))
  } finally {
    await store.close()
  }
}

async function imported({ url, storeKey }: Place, bundle: Uint8Array, options: Parameters<typeof importBundle>[2] = {}) {
  const store = await openStore(url, storeKey)
  try {
    return await importBundle(store, file(bundle), options)
  } finally {
    await store.close()
  }
}

const tea = { name: 'Ann', entityType: 'person', observations: ['likes tea', 'likes tea'] }
const robot = { name: 'Ann', entityType: 'robot', observations: [] }
const knows = { from: 'Ann', to: 'nobody', relationType: 'knows' }

/** Conversations, entities drawn from them, nodes with what the reference has twice, and another scope. */
async function filled(place: Place): Promise<void> {
  const { url, storeKey } = place
  await using memory = await openMemory({ store: url, ...(storeKey === undefined ? {} : { storeKey }), clock: () => 500 })
  await memory.append('acme:s1', [{ role: 'user', content: 'My cat is called Miso.' }])
  await within(place, async (graph) => {
    await graph.write('acme', {
      entities: [{ ...person('zoe', { city: 'Oslo', age: 7 }), session: 's1', sources: ['m1'] }, { ...person('ann'), session: 's1' }, person('bob')],
      relationships: [
        { from: 'zoe', to: 'bob', type: 'KNOWS', properties: { since: [1, null, 'ü'] } },
        { from: 'ann', to: 'zoe', type: 'KNOWS', session: 's1' },
      ],
    })
    await graph.nodes.adopt('acme', { entities: [tea, robot], relations: [knows, knows] })
    await graph.nodes.createEntities('other', [{ name: 'kept', entityType: 'thing', observations: [] }])
  })
  await within(place, (graph) => graph.write('acme', { entities: [person('bob', { city: 'Bergen' })] }), 2_000)
}

const lines = (bundle: Buffer): readonly Record<string, unknown>[] =>
  bundle
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
const nothing = { sessions: 0, messages: 0, entries: 0, unchanged: 0, skipped: [], replaced: [] }
const nodesIn = (place: Place, workspace = 'acme'): Promise<NodeGraph> => within(place, ({ nodes }) => nodes.readGraph(workspace))

describe.each([
  { from: 'a file', to: 'a file', one: plainPlace, other: plainPlace },
  { from: 'an encrypted file', to: 'a file', one: sealedPlace, other: plainPlace },
  { from: 'a file', to: 'an encrypted file', one: plainPlace, other: sealedPlace },
])('a bundle with graphs, from $from into $to', ({ one, other }) => {
  verifies('X-12', 'holds everything, is the same bytes again, and changes nothing the second time', async () => {
    const [from, to] = [one(), other()]
    await filled(from)
    const bundle = await exported(from)
    expect(lines(bundle).filter((line) => 'graph' in line)).toHaveLength(11)
    expect(await imported(to, bundle)).toEqual({ ...nothing, sessions: 3, messages: 1, entries: 11 })
    expect((await exported(to)).equals(bundle)).toBe(true)
    expect(await imported(to, bundle)).toEqual({ ...nothing, unchanged: 3 })
    expect((await exported(to)).equals(bundle)).toBe(true)
    await within(to, async ({ nodes, ...graph }) => {
      expect(await nodes.readGraph('acme')).toEqual({ entities: [tea, robot], relations: [knows, knows] })
      expect((await nodes.searchNodes('acme', 'LIKES TEA')).entities).toEqual([tea])
      // What was taken in once is not wanted a second time.
      expect(await nodes.adopt('acme', { entities: [], relations: [] })).toBe(false)
    })
    expect(await within(to, (graph) => graph.entity('acme', 'bob'))).toEqual({ ...person('bob', { city: 'Bergen' }), createdAt: 1_000, updatedAt: 2_000 })
  })
})
