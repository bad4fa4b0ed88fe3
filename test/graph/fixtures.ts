import { writeFileSync } from 'node:fs'
import { openGraph } from '../../src/graph/graph.ts'
import type { EntityDraft, Graph, Nodes } from '../../src/graph/types.ts'
import { freshFiles } from '../stores/tempPaths.ts'

export type Opened = Graph & { readonly nodes: Nodes }
/** Kind of database; `open` creates a new graph each time. */
export type GraphBackend = { readonly name: string; readonly open: (clock?: () => number) => Promise<Opened> }

/** All kinds of databases a graph can be stored in. */
export function graphBackends(): readonly GraphBackend[] {
  const fresh = freshFiles()
  return [
    { name: 'a file', open: (clock = () => 1_000) => openGraph(`sqlite:${fresh()}`, { clock }) },
    {
      name: 'an encrypted file',
      open: (clock = () => 1_000) => openGraph(`sqlite:${fresh()}`, { clock, storeKey: keyFile(fresh('.key')) }),
    },
    { name: 'RAM', open: (clock = () => 1_000) => openGraph('ram:', { clock }) },
  ]
}

/** Writes the key of a store to a file and returns its URL; `text` may hold several keys. */
export function keyFile(file: string, text: string = 'a1'.repeat(32)): string {
  writeFileSync(file, text, { mode: 0o600 })
  return `file:${file}`
}

export const person = (id: string, properties: EntityDraft['properties'] = {}): EntityDraft => ({
  type: 'person',
  id,
  properties,
})
