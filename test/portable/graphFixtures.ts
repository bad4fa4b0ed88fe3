import { openGraph } from '../../src/graph/graph.ts'
import type { NodeGraph } from '../../src/graph/types.ts'
import { openMemory } from '../../src/index.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { importBundle } from '../../src/portable/import.ts'
import { openStore } from '../../src/stores/open.ts'
import { type GraphWithNodes, person } from '../graph/fixtures.ts'
import { openChunks, readAll } from './byteStreams.ts'

/** The URL of a store and, if it is encrypted, its key. */
export type StoreLocation = { readonly url: string; readonly storeKey?: string }

const keyOptions = ({ storeKey }: StoreLocation) => (storeKey === undefined ? {} : { storeKey })

/** Opens the graph of a store, runs `work` and closes it. */
export async function withGraph<T>(
  location: StoreLocation,
  work: (graph: GraphWithNodes) => Promise<T>,
  at = 1_000,
): Promise<T> {
  const graph = await openGraph(location.url, { clock: () => at, ...keyOptions(location) })
  return work(graph).finally(() => graph.close())
}

export async function exportFrom(
  location: StoreLocation,
  options: Parameters<typeof exportBundle>[1] = {},
): Promise<Buffer> {
  const store = await openStore(location.url, location.storeKey)
  return readAll(exportBundle(store, options)).finally(() => store.close())
}

export async function importInto(
  location: StoreLocation,
  bundle: Uint8Array,
  options: Parameters<typeof importBundle>[2] = {},
): ReturnType<typeof importBundle> {
  const store = await openStore(location.url, location.storeKey)
  return importBundle(store, openChunks(bundle), options).finally(() => store.close())
}

export const emptyResult = { sessions: 0, messages: 0, entries: 0, unchanged: 0, skipped: [], replaced: [] }
export const tea = { name: 'Ann', entityType: 'person', observations: ['likes tea', 'likes tea'] }
export const robot = { name: 'Ann', entityType: 'robot', observations: [] }
export const knows = { from: 'Ann', to: 'nobody', relationType: 'knows' }

/** Fills a store with a conversation, entities derived from it, duplicate nodes and another scope: 11 rows, 3 sessions. */
export async function fillGraph(location: StoreLocation): Promise<void> {
  await using memory = await openMemory({ store: location.url, ...keyOptions(location), clock: () => 500 })
  await memory.append('acme:s1', [{ role: 'user', content: 'My cat is called Miso.' }])
  await withGraph(location, async (graph) => {
    await graph.write('acme', {
      entities: [
        { ...person('zoe', { city: 'Oslo', age: 7 }), session: 's1', sources: ['m1'] },
        { ...person('ann'), session: 's1' },
        person('bob'),
      ],
      relationships: [
        { from: 'zoe', to: 'bob', type: 'KNOWS', properties: { since: [1, null, 'ü'] } },
        { from: 'ann', to: 'zoe', type: 'KNOWS', session: 's1' },
      ],
    })
    await graph.nodes.importOnce('acme', { entities: [tea, robot], relations: [knows, knows] })
    await graph.nodes.createEntities('other', [{ name: 'kept', entityType: 'thing', observations: [] }])
  })
  await withGraph(location, (graph) => graph.write('acme', { entities: [person('bob', { city: 'Bergen' })] }), 2_000)
}

export const readNodes = (location: StoreLocation, workspace = 'acme'): Promise<NodeGraph> =>
  withGraph(location, ({ nodes }) => nodes.readGraph(workspace))

/** Parses the lines of a bundle without their hashes. */
export const parseBundleLines = (bundle: Buffer): readonly Record<string, unknown>[] =>
  bundle
    .toString()
    .trim()
    .split('\n')
    .map((line) => {
      const { hash: _, ...body } = JSON.parse(line) as Record<string, unknown>
      return body
    })
