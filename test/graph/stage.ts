import { writeFileSync } from 'node:fs'
import { type EntityDraft, type Graph, type Nodes, openGraph } from '../../src/graph/graph.ts'
import { freshFiles } from '../stores/tempPaths.ts'

export type Opened = Graph & { readonly nodes: Nodes }
/** A place a graph can be opened in, each time a new one. */
export type Place = { readonly name: string; readonly open: (clock?: () => number) => Promise<Opened> }

/** Everywhere a graph can lie; all of them keep the same promises. */
export function places(): readonly Place[] {
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

/** A key of a store in a file of its own; `text` may hold several. */
export function keyFile(file: string, text: string = 'a1'.repeat(32)): string {
  writeFileSync(file, text, { mode: 0o600 })
  return `file:${file}`
}

/** A person, to be written. */
export const person = (id: string, properties: EntityDraft['properties'] = {}): EntityDraft => ({
  type: 'person',
  id,
  properties,
})
