import { createUnknownStoreError, MemoryError } from '../domain/error.ts'
import type { FileMaintenance } from '../domain/fileMaintenance.ts'
import { formatKey, graphKey, type Scope } from '../domain/key.ts'
import type { Clock, GraphStorage, Keyring, Store, StoreDatabase } from '../domain/ports.ts'
import type { ForgetResult } from '../memory/forget.ts'
import type { ForgetTarget } from '../memory/forgetTarget.ts'
import { SecretMasker } from '../memory/secretMasker.ts'
import { wipeKeyring } from '../stores/encrypted/keyring.ts'
import { loadKeyring } from '../stores/encrypted/loadKeyring.ts'
import { openStore, parseSqliteUrl } from '../stores/open.ts'
import { connectReader } from '../stores/sqlite/connect.ts'
import { readGraphFormat } from '../stores/sqlite/graph.ts'
import { yieldWhenLong } from '../stores/yieldToEventLoop.ts'
import { chars4 } from '../text/estimators.ts'
import { type GraphMasker, GraphMasking, MaskedGraph } from './maskedGraph.ts'
import { PostgresGraph } from './postgres/graph.ts'
import { PostgresWorkspaces } from './postgres/workspaces.ts'
import { GraphDatabase } from './sqlite/database.ts'
import { SqliteGraph } from './sqlite/graph.ts'
import { GraphWorkspaces } from './sqlite/workspaces.ts'
import type { StoreGraph } from './types.ts'
import { WorkspaceCiphers } from './workspace.ts'

type GraphOptions = {
  readonly clock?: Clock
  /** Masks what is written; default: a masker of its own, which masks all secrets. */
  readonly masker?: GraphMasker
}
type OpenGraphOptions = GraphOptions & {
  /** Source of the key of an encrypted store: `file:PATH`, `env:NAME` or `command:PROGRAM`. */
  readonly storeKey?: string
  /** With `ram:`, the in-memory store whose erasures the graph follows. */
  readonly memoryStore?: Store
}

/**
 * Opens the graph of a store: in the file of `sqlite:PATH`, in the database of `postgres://…` or `pglite:PATH`, or a
 * new one in memory with `ram:`. Erasing scopes, sessions and messages of the store erases what was derived from them.
 *
 * @throws MemoryError `bad-option` if the URL is not supported, or a key is given with `ram:`.
 * @example
 * const graph = await openGraph('sqlite:memory.db')
 * await graph.write('acme', { entities: [{ type: 'person', id: 'ann', properties: { city: 'Oslo' } }] })
 */
export async function openGraph(
  url: string,
  { storeKey, memoryStore, ...options }: OpenGraphOptions = {},
): Promise<StoreGraph> {
  const path = parseSqliteUrl(url)
  if (path === undefined && url !== 'ram:') {
    const store = await openStore(url, storeKey)
    const storage = store.capabilities.graph
    if (storage !== undefined) return maskGraph(openStorage(storage, options), options, store)
    await store.close()
    throw createUnknownStoreError(url, 'ram:, sqlite:PATH, postgres://… or pglite:PATH')
  }
  if (path === undefined && storeKey !== undefined)
    throw new MemoryError(
      'bad-option',
      'ram: stores nothing on disk and takes no key. Leave out the key, or use sqlite:PATH.',
      { param: 'storeKey' },
    )
  const keyring = storeKey === undefined ? undefined : await loadKeyring(storeKey)
  const graph = createSqliteGraph(path, keyring, options)
  const eraseListeners = memoryStore?.capabilities.eraseListeners
  if (path === undefined && eraseListeners !== undefined) graph.followErasures(eraseListeners)
  return maskGraph(graph, options)
}

/**
 * Opens the graph of an open store. Returns undefined if the store keeps none.
 *
 * @example
 * const graph = await openStoreGraph(sqliteStore('memory.db'))
 */
export async function openStoreGraph(store: Store, options: GraphOptions = {}): Promise<StoreGraph | undefined> {
  const storage = store.capabilities.graph
  return storage && maskGraph(openStorage(storage, options), options)
}

/**
 * Erases from the graphs of stores what a memory forgets in a scope: the rows that contain a text, or, for a graph
 * outside its store's database, everything. `placeholders` stand for secrets that contain the text. Adds the deleted
 * rows to the result as kind and number. The caller wipes the files of the stores afterwards.
 *
 * @example
 * await forgetInGraphs([store], { scope: 'acme', text: 'walrus' }, forgotten) // … { key: 'acme', entries: ['entity 1', 'observation 1'] }
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
  for (const store of stores) for (const entry of await forgetInStore(store, scope, texts)) entries.push(entry)
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
  const { eraseListeners = [], graph: storage } = store.capabilities
  for (const listener of eraseListeners) for (const row of await listener.forget(scope, texts)) deleted.push(row)
  if (texts === undefined || storage === undefined) return deleted
  // A connection to a file that was deleted after its store was closed would create it again.
  store.capabilities.file?.check()
  if (!hasGraph(storage)) return deleted
  const graph = openStorage(storage)
  try {
    return [...deleted, ...(await graph.forget(scope, texts, { deferWipe: true }))]
  } finally {
    await graph.close()
  }
}

/** `store` is closed with the graph. */
const maskGraph = (
  graph: StoreGraph,
  { masker = new SecretMasker('mask', chars4, yieldWhenLong) }: GraphOptions,
  store?: Store,
): StoreGraph => new MaskedGraph(graph, new GraphMasking(masker), store)

function openStorage(storage: GraphStorage, options: GraphOptions = {}): StoreGraph {
  const keyring = storage.copyKeyring?.()
  return storage.kind === 'sqlite'
    ? createSqliteGraph(storage.path, keyring, options, storage)
    : createPostgresGraph(storage.database, keyring, options)
}

/** Takes ownership of the keyring and wipes it. */
function createPostgresGraph(
  database: StoreDatabase,
  keyring: Keyring | undefined,
  { clock = Date.now }: GraphOptions,
): PostgresGraph {
  try {
    return new PostgresGraph(new PostgresWorkspaces(database, new WorkspaceCiphers(keyring), clock))
  } finally {
    if (keyring !== undefined) wipeKeyring(keyring)
  }
}

/** Takes ownership of the keyring and wipes it; `GraphWorkspaces` keeps a copy. */
function createSqliteGraph(
  path: string | undefined,
  keyring: Keyring | undefined,
  { clock = Date.now }: GraphOptions,
  maintenance?: FileMaintenance,
): SqliteGraph {
  try {
    const database = new GraphDatabase(path, keyring, maintenance)
    return new SqliteGraph(database, new GraphWorkspaces(database, keyring), clock)
  } finally {
    if (keyring !== undefined) wipeKeyring(keyring)
  }
}

/** Checks for graph tables without creating them. */
function hasGraph(storage: GraphStorage): boolean {
  if (storage.kind !== 'sqlite') return true
  const database = connectReader(storage.path, 'checked')
  try {
    return readGraphFormat(database) !== undefined
  } finally {
    database.close()
  }
}
