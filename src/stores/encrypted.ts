import '../requireNode.ts'
import { MemoryError } from '../domain/error.ts'
import type { Keyring, SearchIndex, Store } from '../domain/ports.ts'
import { StoreSearch } from '../search/storeSearch.ts'
import { VectorIndex } from '../search/vectorIndex.ts'
import { wipeKeyring } from './encrypted/keyring.ts'
import { loadKeyring } from './encrypted/loadKeyring.ts'
import { EncryptedSessions } from './encrypted/sessions.ts'
import { EncryptedTable } from './encrypted/table.ts'
import { EncryptedStoreVectors, readEntries } from './encrypted/vectors.ts'
import { textAnalysis } from './textAnalysis.ts'
import { yieldWhenLong } from './yieldToEventLoop.ts'

/**
 * Encrypts the content of any store with AES-256-GCM: one key per session, wrapped by a key per scope.
 * docs/encryption.md lists the data that stays readable. Search runs in the memory of this process. Closing the
 * encrypted store closes the inner one.
 *
 * Throws `bad-secret` if the keys do not fit the store.
 *
 * @example
 * const keyring = await loadKeyring('env:THREADKEEP_KEY')
 * const memory = await openMemory({ store: await encryptedStore(sqliteStore('memory.db', { keyring }), keyring) })
 */
export async function encryptedStore(inner: Store & SearchIndex, keyring: Keyring): Promise<Store & SearchIndex> {
  if (inner.capabilities.file?.isEncrypted === false)
    throw new MemoryError('bad-option', 'Open the file with its keys first: sqliteStore(path, { keyring }).', {
      param: 'store',
    })
  const sessions = new EncryptedSessions(inner, keyring)
  await sessions.verifyKeys()
  const vectors = new EncryptedStoreVectors(sessions)
  const finder = createFinder(inner, sessions, vectors)
  return {
    capabilities: {
      ...inner.capabilities,
      ...textAnalysis,
      ...(inner.capabilities.graph !== undefined && {
        graph: { ...inner.capabilities.graph, copyKeyring: () => sessions.copyKeyring() },
      }),
      indexedMessages: () => finder.indexedMessages,
    },
    durability: inner.durability,
    readHead: (key, recent) => sessions.readHead(key, recent),
    readMessages: (key, range) => sessions.readMessages(key, range),
    findMessages: (key, externalIds) => sessions.findMessages(key, externalIds),
    commit: async (change) => {
      const messages = await sessions.commit(change)
      vectors.delete(change.key, [...[...(change.replace ?? []), ...change.put].map(({ id }) => id), ...change.drop])
      return messages
    },
    list: (filter) => sessions.list(filter),
    erase: async (key, only) => {
      const erasedIds = await sessions.erase(key, only)
      finder.drop(key.scope)
      vectors.delete(key, erasedIds)
      return erasedIds
    },
    appendRecord: (key, record, keep) => sessions.appendRecord(key, record, keep),
    records: (key, range) => sessions.records(key, range),
    table: new EncryptedTable(inner, sessions),
    search: (where, query) => finder.search(where, query),
    changesSince: (where, since) => sessions.changesSince(inner, where, since),
    listUnembedded: (model, after, limit) => vectors.unembedded(model, after, limit),
    storeVectors: (model, embedded) => vectors.embed(model, embedded),
    readVectors: async (key, ids) => ids.map((id) => vectors.readVector(key, id)),
    countVectors: (model) => vectors.embedded(model),
    close: async () => {
      finder.clear()
      vectors.clear()
      await sessions.close()
    },
  }
}

/**
 * Encrypts a store of your own with the keys from `file:PATH`, `env:NAME` or `command:PROGRAM ARGUMENTS`. If it throws,
 * the inner store is still open. An SQLite file needs its keys when it is opened: use `openMemory` with `storeKey`.
 *
 * @example
 * const store = await openEncryptedStore(inner, 'file:/etc/threadkeep/key')
 */
export async function openEncryptedStore(inner: Store & SearchIndex, source: string): Promise<Store & SearchIndex> {
  const keyring = await loadKeyring(source)
  try {
    return await encryptedStore(inner, keyring)
  } finally {
    wipeKeyring(keyring)
  }
}

function createFinder(inner: SearchIndex, sessions: EncryptedSessions, vectors: EncryptedStoreVectors): StoreSearch {
  return new StoreSearch({
    changes: (where, { stamp }) => sessions.changesSince(inner, where, stamp),
    readMessages: (key, after, limit) => sessions.readMessages(key, { after, limit }),
    readDerived: async (key) => (await sessions.readHead(key, 0)).derived,
    readVectors: (where, model, after, limit) => vectors.listVectors(where, model, after, limit),
    // A search index reveals the content, so no snapshot of it is stored.
    loadSnapshot: async () => undefined,
    saveSnapshot: () => undefined,
    pause: yieldWhenLong,
    readVector: async (key, id, model) => vectors.getVector(key, id, model),
    createVectorIndex: (model) => new VectorIndex(model),
    analysis: textAnalysis,
    readEntries: (found) => readEntries(sessions, found),
  })
}

export type { Keyring, MasterKey } from '../domain/ports.ts'
export { parseKeyring } from './encrypted/keyring.ts'
export { loadKeyring } from './encrypted/loadKeyring.ts'
export { type RotationProgress, rotateKeys } from './encrypted/rotateKeys.ts'
