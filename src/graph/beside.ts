import type { Store } from '../domain/ports.ts'
import { type Keyring, wipe } from '../stores/sealed/keyring.ts'
import { GraphFile } from './file.ts'
import { Homes } from './home.ts'
import { SqliteGraph } from './sqlite.ts'

/** A store that says in which file it lies; one that is encrypted gives a copy of its keys too. */
type InFile = Store & { readonly path: string; readonly keys?: () => Keyring }

/**
 * Opens the graph in the file of a store; undefined if the store lies in none.
 *
 * @example
 * const graph = await graphBeside(sqliteStore('memory.db'))
 */
export async function graphBeside(store: Store): Promise<SqliteGraph | undefined> {
  if (!isInFile(store)) return undefined
  const ring = store.keys?.()
  try {
    const file = new GraphFile(store.path)
    return new SqliteGraph(file, new Homes(file, ring), Date.now)
  } finally {
    if (ring !== undefined) wipe(ring)
  }
}

const isInFile = (store: Store): store is InFile => 'path' in store && typeof store.path === 'string'
