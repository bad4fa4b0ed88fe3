import { writeFileSync } from 'node:fs'
import type { Store } from '../../src/domain/ports.ts'
import { openGraph, openStoreGraph } from '../../src/graph/graph.ts'
import type { EntityDraft, Graph, NodeStore, StoreGraph } from '../../src/graph/types.ts'
import { openEncryptedStore } from '../../src/stores/encrypted.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { createEmptyStores } from '../support/postgres.ts'

export type GraphWithNodes = Graph & { readonly nodes: NodeStore }
/** Kind of database; `open` creates a new graph each time. */
export type GraphBackend = { readonly name: string; readonly open: (clock?: () => number) => Promise<GraphWithNodes> }

/** All kinds of databases a graph can be stored in, except PGlite, which takes seconds to start. */
export function graphBackends(): readonly GraphBackend[] {
  const fresh = createTempPaths()
  const openPostgres = createEmptyStores()
  return [
    { name: 'a file', open: (clock = () => 1_000) => openGraph(`sqlite:${fresh()}`, { clock }) },
    {
      name: 'an encrypted file',
      open: (clock = () => 1_000) => openGraph(`sqlite:${fresh()}`, { clock, storeKey: writeKeyFile(fresh('.key')) }),
    },
    { name: 'RAM', open: (clock = () => 1_000) => openGraph('ram:', { clock }) },
    { name: 'PostgreSQL', open: async (clock = () => 1_000) => requireGraph(await openPostgres(), clock) },
    {
      name: 'encrypted PostgreSQL',
      open: async (clock = () => 1_000) => {
        const keyFile = writeKeyFile(fresh('.key'))
        return requireGraph(await openEncryptedStore(await openPostgres(), keyFile), clock)
      },
    },
  ]
}

export function pgliteBackend(): GraphBackend {
  const openPglite = createEmptyStores(2_000, async () => 'pglite:memory://')
  return { name: 'PGlite', open: async (clock = () => 1_000) => requireGraph(await openPglite(), clock) }
}

/** Opens the graph of a store that has one. */
export async function requireGraph(store: Store, clock?: () => number): Promise<StoreGraph> {
  const graph = await openStoreGraph(store, clock === undefined ? {} : { clock })
  if (graph === undefined) throw new Error('The store has no graph.')
  return graph
}

/** Writes the key of a store to a file and returns its URL; `text` may hold several keys. */
export function writeKeyFile(file: string, text: string = 'a1'.repeat(32)): string {
  writeFileSync(file, text, { mode: 0o600 })
  return `file:${file}`
}

export const person = (id: string, properties: EntityDraft['properties'] = {}): EntityDraft => ({
  type: 'person',
  id,
  properties,
})
