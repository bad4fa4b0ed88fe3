import { formatKey, type Scope } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { Forgotten, Target } from '../memory/forget.ts'
import { type InFile, isHeard, isInFile } from '../stores/capabilities.ts'
import { wipe } from '../stores/encrypted/keyring.ts'
import { connectReader } from '../stores/sqlite/connect.ts'
import { foundIn, graphKey } from '../stores/sqlite/graph.ts'
import { GraphFile } from './file.ts'
import { Homes } from './home.ts'
import { SqliteGraph } from './sqlite.ts'

/**
 * Opens the graph in the file of a store; undefined if the store lies in none.
 *
 * @example
 * const graph = await graphBeside(sqliteStore('memory.db'))
 */
export async function graphBeside(store: Store): Promise<SqliteGraph | undefined> {
  return isInFile(store) ? opened(store) : undefined
}

/**
 * Forgets in the graphs beside stores what a memory was told to forget in a scope: rows that say a text or, where a graph
 * does not lie in the file of its store and so does not go with it, all of them. Adds to the receipt what went, by names
 * that tell nothing.
 *
 * @example
 * await forgetBeside([store], { scope: 'acme', text: 'walrus' }, forgotten) // … { key: 'acme', entries: ['entity 12', 'observation 7'] }
 */
export async function forgetBeside(stores: readonly Store[], target: Target, forgotten: Forgotten): Promise<Forgotten> {
  if (!('scope' in target)) return forgotten
  const { scope } = target
  const gone: string[] = []
  for (const store of stores) gone.push(...(await goneFrom(store, scope, 'text' in target ? [target.text] : undefined)))
  return gone.length === 0
    ? forgotten
    : { ...forgotten, sessions: [...forgotten.sessions, { key: formatKey(graphKey(scope)), entries: gone }] }
}

async function goneFrom(store: Store, scope: Scope, texts: readonly string[] | undefined): Promise<readonly string[]> {
  const gone: string[] = []
  for (const listener of isHeard(store) ? store.listeners : []) gone.push(...(await listener.forget(scope, texts)))
  if (texts === undefined || !isInFile(store) || !hasGraph(store.path)) return gone
  const graph = opened(store)
  try {
    return [...gone, ...(await graph.forget(scope, texts))]
  } finally {
    await graph.close()
  }
}

function opened({ path, keys }: InFile): SqliteGraph {
  const ring = keys?.()
  try {
    const file = new GraphFile(path)
    return new SqliteGraph(file, new Homes(file, ring), Date.now)
  } finally {
    if (ring !== undefined) wipe(ring)
  }
}

/** Whether anybody has ever opened a graph on a file: to look into it makes none. */
function hasGraph(path: string): boolean {
  const database = connectReader(path)
  try {
    return foundIn(database) !== undefined
  } finally {
    database.close()
  }
}
