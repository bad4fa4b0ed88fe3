import { type NodeGraph, openGraph } from '../../src/graph/graph.ts'
import { openMemory } from '../../src/index.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { importBundle } from '../../src/portable/import.ts'
import { openStore } from '../../src/stores/open.ts'
import { type Opened, person } from '../graph/stage.ts'
import { file, gathered } from './bytes.ts'

/** A store with a graph, by its URL and, if it is encrypted, its key. */
export type Place = { readonly url: string; readonly storeKey?: string }

const keyOf = ({ storeKey }: Place) => (storeKey === undefined ? {} : { storeKey })

/** Works on the graph of a place. */
export async function within<T>(place: Place, work: (graph: Opened) => Promise<T>, at = 1_000): Promise<T> {
  const graph = await openGraph(place.url, { clock: () => at, ...keyOf(place) })
  return work(graph).finally(() => graph.close())
}

export async function exported(place: Place, options: Parameters<typeof exportBundle>[1] = {}): Promise<Buffer> {
  const store = await openStore(place.url, place.storeKey)
  return gathered(exportBundle(store, options)).finally(() => store.close())
}

export async function imported(
  place: Place,
  bundle: Uint8Array,
  options: Parameters<typeof importBundle>[2] = {},
): ReturnType<typeof importBundle> {
  const store = await openStore(place.url, place.storeKey)
  return importBundle(store, file(bundle), options).finally(() => store.close())
}

export const nothing = { sessions: 0, messages: 0, entries: 0, unchanged: 0, skipped: [], replaced: [] }
export const tea = { name: 'Ann', entityType: 'person', observations: ['likes tea', 'likes tea'] }
export const robot = { name: 'Ann', entityType: 'robot', observations: [] }
export const knows = { from: 'Ann', to: 'nobody', relationType: 'knows' }

/** A conversation, entities drawn from it, nodes with what the reference has twice, and another scope: eleven rows, three sessions. */
export async function filled(place: Place): Promise<void> {
  await using memory = await openMemory({ store: place.url, ...keyOf(place), clock: () => 500 })
  await memory.append('acme:s1', [{ role: 'user', content: 'My cat is called Miso.' }])
  await within(place, async (graph) => {
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
    await graph.nodes.adopt('acme', { entities: [tea, robot], relations: [knows, knows] })
    await graph.nodes.createEntities('other', [{ name: 'kept', entityType: 'thing', observations: [] }])
  })
  await within(place, (graph) => graph.write('acme', { entities: [person('bob', { city: 'Bergen' })] }), 2_000)
}

export const nodesIn = (place: Place, workspace = 'acme'): Promise<NodeGraph> =>
  within(place, ({ nodes }) => nodes.readGraph(workspace))

/** The lines of a bundle, without the hashes that bind them. */
export const linesOf = (bundle: Buffer): readonly Record<string, unknown>[] =>
  bundle
    .toString()
    .trim()
    .split('\n')
    .map((line) => {
      const { hash: _, ...body } = JSON.parse(line) as Record<string, unknown>
      return body
    })
