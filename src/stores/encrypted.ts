import type { Index, Store } from '../domain/ports.ts'
import { Finder } from '../search/storeSearch.ts'
import { searchTerms } from '../search/terms.ts'
import { Meaning } from '../search/vectorIndex.ts'
import { forwardCapabilities } from './capabilities.ts'
import { type Keyring, wipe } from './encrypted/keyring.ts'
import { loadKeyring } from './encrypted/loadKeyring.ts'
import { EncryptedSessions } from './encrypted/sessions.ts'
import { EncryptedStoreVectors, readEntries } from './encrypted/vectors.ts'

/**
 * Encrypts the content of any store with AES-256-GCM: one key per session, wrapped by a key per scope.
 * docs/encryption.md lists the data that stays readable. Search runs in the memory of this process. Closing the
 * encrypted store closes the inner one.
 *
 * Throws `bad-secret` if the keys do not fit the store.
 *
 * @example
 * const memory = await openMemory({ store: await encryptedStore(inner, await loadKeyring('env:THREADKEEP_KEY')) })
 */
export async function sealedStore(inner: Store & Index, keyring: Keyring): Promise<Store & Index> {
  const sessions = new EncryptedSessions(inner, keyring)
  await sessions.verifyKeys()
  const vectors = new EncryptedStoreVectors(sessions)
  const finder = createFinder(inner, sessions, vectors)
  return {
    ...forwardCapabilities(inner, () => sessions.copyKeyring()),
    durability: inner.durability,
    head: (key, recent) => sessions.head(key, recent),
    page: (key, range) => sessions.page(key, range),
    commit: async (change) => {
      const messages = await sessions.commit(change)
      vectors.delete(change.key, [...change.put.map(({ id }) => id), ...change.drop])
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
    search: (where, query) => finder.search(where, query),
    changes: (where, since) => inner.changes(where, since),
    unembedded: (model, after, limit) => vectors.unembedded(model, after, limit),
    embed: (model, embedded) => vectors.embed(model, embedded),
    embedded: (model) => vectors.embedded(model),
    close: async () => {
      finder.clear()
      vectors.clear()
      await sessions.close()
    },
  }
}

/**
 * Encrypts a store with the keys from `file:PATH`, `env:NAME` or `command:PROGRAM ARGUMENTS`. If it throws, the inner
 * store is still open.
 *
 * @example
 * const store = await openEncryptedStore(inner, 'file:/etc/threadkeep/key')
 */
export async function openEncryptedStore(inner: Store & Index, source: string): Promise<Store & Index> {
  const keyring = await loadKeyring(source)
  try {
    return await sealedStore(inner, keyring)
  } finally {
    wipe(keyring)
  }
}

function createFinder(inner: Index, sessions: EncryptedSessions, vectors: EncryptedStoreVectors): Finder {
  return new Finder({
    changes: (where, since) => inner.changes(where, since),
    indexed: async (key, after, limit) => {
      const messages = await sessions.page(key, { after, limit })
      return messages.map(({ sequence, at, name, content }) => ({ sequence, at, name, terms: searchTerms(content) }))
    },
    derived: async (key) => (await sessions.head(key, 0)).derived,
    pointed: (where, model, after, limit) => vectors.listVectors(where, model, after, limit),
    // A search index reveals the content, so no snapshot of it is stored.
    load: async () => undefined,
    save: () => undefined,
    pause: () => new Promise((resolve) => setImmediate(resolve)),
    vector: async (key, id, model) => vectors.getVector(key, id, model),
    meaning: (model) => new Meaning(model),
    entries: (found) => readEntries(sessions, found),
  })
}

export { type Keyring, type MasterKey, parseKeyring } from './encrypted/keyring.ts'
export { loadKeyring } from './encrypted/loadKeyring.ts'
export { type RotationProgress, rotate } from './encrypted/rotateKeys.ts'
