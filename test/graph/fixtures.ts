import { writeFileSync } from 'node:fs'
import { openGraph } from '../../src/graph/graph.ts'
import type { EntityDraft, Graph, NodeStore } from '../../src/graph/types.ts'
import { createTempPaths } from '../stores/tempPaths.ts'

export type GraphWithNodes = Graph & { readonly nodes: NodeStore }
/** Kind of database; `open` creates a new graph each time. */
export type GraphBackend = { readonly name: string; readonly open: (clock?: () => number) => Promise<GraphWithNodes> }

/** All kinds of databases a graph can be stored in. */
export function graphBackends(): readonly GraphBackend[] {
  const fresh = createTempPaths()
  return [
    { name: 'a file', open: (clock = () => 1_000) => openGraph(`sqlite:${fresh()}`, { clock }) },
    {
      name: 'an encrypted file',
      open: (clock = () => 1_000) => openGraph(`sqlite:${fresh()}`, { clock, storeKey: writeKeyFile(fresh('.key')) }),
    },
    { name: 'RAM', open: (clock = () => 1_000) => openGraph('ram:', { clock }) },
  ]
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
