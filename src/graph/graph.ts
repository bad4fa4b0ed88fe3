import { createUnknownStoreError, MemoryError } from '../domain/error.ts'
import { formatKey, type Scope } from '../domain/key.ts'
import type { Clock, Keyring, Store, StoreFile } from '../domain/ports.ts'
import type { ForgetResult, ForgetTarget } from '../memory/forget.ts'
import { SecretMasker } from '../memory/secretMasker.ts'
import { wipeKeyring } from '../stores/encrypted/keyring.ts'
import { loadKeyring } from '../stores/encrypted/loadKeyring.ts'
import { parseSqliteUrl } from '../stores/open.ts'
import { connectReader } from '../stores/sqlite/connect.ts'
import { graphKey, readGraphFormat } from '../stores/sqlite/graph.ts'
import { chars4 } from '../text/estimators.ts'
import { GraphDatabase } from './database.ts'
import { type GraphMasker, GraphMasking } from './maskedGraph.ts'
import { SqliteGraph } from './sqlite.ts'
import { GraphWorkspaces } from './workspaces.ts'

type GraphOptions = {
  /** Source of the key of an encrypted store: `file:PATH`, `env:NAME` or `command:PROGRAM`. */
  readonly storeKey?: string
  readonly clock?: Clock
  /** With `ram:`, the in-memory store whose erasures the graph follows. */
  readonly memoryStore?: Store
  /** Masks what is written; default: a masker of its own, which masks all secrets. */
  readonly masker?: GraphMasker
}

/**
 * Opens the graph of a store: in the file of `sqlite:PATH`, or a new one in memory with `ram:`. Erasing scopes,
 * sessions and messages of the store erases what was derived from them.
 *
 * @throws MemoryError `bad-option` if the URL is not supported, or a key is given with `ram:`.
 * @example
 * const graph = await openGraph('sqlite:memory.db')
 * await graph.write('acme', { entities: [{ type: 'person', id: 'ann', properties: { city: 'Oslo' } }] })
 */
export async function openGraph(
  url: string,
  { storeKey, clock = Date.now, memoryStore, masker }: GraphOptions = {},
): Promise<SqliteGraph> {
  const path = parseSqliteUrl(url)
  if (path === undefined && url !== 'ram:') throw createUnknownStoreError(url, 'ram: or sqlite:PATH')
  if (path === undefined && storeKey !== undefined)
    throw new MemoryError(
      'bad-option',
      'ram: stores nothing on disk and takes no key. Leave out the key, or use sqlite:PATH.',
      { param: 'storeKey' },
    )
  const graph = createGraph(path, storeKey === undefined ? undefined : await loadKeyring(storeKey), clock, masker)
  const eraseListeners = memoryStore?.capabilities.eraseListeners
  if (path === undefined && eraseListeners !== undefined) graph.followErasures(eraseListeners)
  return graph
}

/**
 * Opens the graph in the file of an open store. Returns undefined if the store is not in a file.
 *
 * @example
 * const graph = await openStoreGraph(sqliteStore('memory.db'))
 */
export async function openStoreGraph(store: Store): Promise<SqliteGraph | undefined> {
  const { file } = store.capabilities
  return file === undefined ? undefined : openStoreFile(file)
}

/**
 * Erases from the graphs of stores what a memory forgets in a scope: the rows that contain a text, or, for a graph
 * outside its store's file, everything. `placeholders` stand for secrets that contain the text. Adds the deleted rows
 * to the result as kind and row id.
 *
 * @example
 * await forgetInGraphs([store], { scope: 'acme', text: 'walrus' }, forgotten) // … { key: 'acme', entries: ['entity 12', 'observation 7'] }
 */
export async function forgetInGraphs(
  stores: readonly Store[],
  target: ForgetTarget,
  forgotten: ForgetResult,
  placeholders: readonly string[] = [],
): Promise<ForgetResult> {
  if (!('scope' in target)) return forgotten
  const { scope } = target
  const texts = 'text' in target ? [target.text, ...placeholders] : undefined
  const entries: string[] = []
  for (const store of stores) entries.push(...(await forgetInStore(store, scope, texts)))
  return entries.length === 0
    ? forgotten
    : { ...forgotten, sessions: [...forgotten.sessions, { key: formatKey(graphKey(scope)), entries }] }
}

async function forgetInStore(
  store: Store,
  scope: Scope,
  texts: readonly string[] | undefined,
): Promise<readonly string[]> {
  const deleted: string[] = []
  const { eraseListeners = [], file } = store.capabilities
  for (const listener of eraseListeners) deleted.push(...(await listener.forget(scope, texts)))
  if (texts === undefined || file === undefined || !hasGraph(file.path)) return deleted
  const graph = openStoreFile(file)
  try {
    return [...deleted, ...(await graph.forget(scope, texts))]
  } finally {
    await graph.close()
  }
}

const openStoreFile = ({ path, copyKeyring }: StoreFile): SqliteGraph => createGraph(path, copyKeyring?.(), Date.now)

/** Takes ownership of the keyring and wipes it; `GraphWorkspaces` keeps a copy. */
function createGraph(
  path: string | undefined,
  keyring: Keyring | undefined,
  clock: Clock,
  masker: GraphMasker = new SecretMasker('mask', chars4),
): SqliteGraph {
  try {
    const database = new GraphDatabase(path, keyring)
    return new SqliteGraph(database, new GraphWorkspaces(database, keyring), clock, new GraphMasking(masker))
  } finally {
    if (keyring !== undefined) wipeKeyring(keyring)
  }
}

/** Checks for graph tables without creating them. */
function hasGraph(path: string): boolean {
  const database = connectReader(path, 'checked')
  try {
    return readGraphFormat(database) !== undefined
  } finally {
    database.close()
  }
}
