import type { Index, Store } from '../domain/ports.ts'
import { Finder } from '../search/find.ts'
import { Meaning } from '../search/meaning.ts'
import { searchTerms } from '../search/terms.ts'
import { besideOf } from './beside.ts'
import { type Keyring, wipe } from './encrypted/keyring.ts'
import { loadKeyring } from './encrypted/load.ts'
import { SealedSessions } from './encrypted/sessions.ts'
import { entriesOf, SealedVectors } from './encrypted/vectors.ts'

/**
 * Any store with everything that is said in it encrypted: AES-256-GCM, a key for each session, wrapped by a key for each
 * scope. docs/encryption.md lists what can still be read. Search runs in the memory of this process. Rejects with
 * `bad-secret` when the keys are not those of the store.
 *
 * @example
 * const memory = await openMemory({ store: await sealedStore(inner, await loadKeyring('env:THREADKEEP_KEY')) })
 */
export async function sealedStore(inner: Store & Index, ring: Keyring): Promise<Store & Index> {
  const sessions = new SealedSessions(inner, ring)
  await sessions.check()
  const vectors = new SealedVectors(sessions)
  const finder = finderOf(inner, sessions, vectors)
  return {
    ...besideOf(inner, () => sessions.keyring()),
    durability: inner.durability,
    head: (key, recent) => sessions.head(key, recent),
    page: (key, range) => sessions.page(key, range),
    commit: async (change) => {
      const messages = await sessions.commit(change)
      vectors.forget(change.key, [...change.put.map(({ id }) => id), ...change.drop])
      return messages
    },
    list: (filter) => sessions.list(filter),
    erase: async (key, only) => {
      const gone = await sessions.erase(key, only)
      finder.drop(key.scope)
      vectors.forget(key, gone)
      return gone
    },
    search: (where, query) => finder.search(where, query),
    changes: (where, since) => inner.changes(where, since),
    unembedded: (model, after, limit) => vectors.unembedded(model, after, limit),
    embed: (model, made) => vectors.embed(model, made),
    embedded: (model) => vectors.embedded(model),
    close: async () => {
      finder.clear()
      vectors.clear()
      await sessions.close()
    },
  }
}

/**
 * Seals a store with the keys from `file:PATH`, `env:NAME` or `command:PROGRAM ARGUMENTS`. When it rejects, the inner
 * store is still open.
 *
 * @example
 * const store = await openSealed(inner, 'file:/etc/threadkeep/key')
 */
export async function openSealed(inner: Store & Index, source: string): Promise<Store & Index> {
  const ring = await loadKeyring(source)
  try {
    return await sealedStore(inner, ring)
  } finally {
    wipe(ring)
  }
}

function finderOf(inner: Index, sessions: SealedSessions, vectors: SealedVectors): Finder {
  return new Finder({
    changes: (where, since) => inner.changes(where, since),
    indexed: async (key, after, limit) => {
      const messages = await sessions.page(key, { after, limit })
      return messages.map(({ sequence, at, name, content }) => ({ sequence, at, name, terms: searchTerms(content) }))
    },
    derived: async (key) => (await sessions.head(key, 0)).derived,
    pointed: (where, model, after, limit) => vectors.pointed(where, model, after, limit),
    // An index tells what is said: it is made anew after each start.
    load: async () => undefined,
    save: () => undefined,
    pause: () => new Promise((resolve) => setImmediate(resolve)),
    vector: async (key, id, model) => vectors.vector(key, id, model),
    meaning: (model) => new Meaning(model),
    entries: (found) => entriesOf(sessions, found),
  })
}

export { type Keyring, type MasterKey, parseKeyring } from './encrypted/keyring.ts'
export { loadKeyring } from './encrypted/load.ts'
export { type Rotation, rotate } from './encrypted/rotate.ts'
