import type { Index, Store } from '../domain/ports.ts'
import { forwardCapabilities } from './capabilities.ts'
import type { Bounded, Counted } from './ram/sessionCache.ts'

/**
 * Wraps a store for one of several users: `close` leaves the store open for the others. The owner closes the store
 * itself, last.
 *
 * @example
 * const store = await openStore('sqlite:memory.db')
 * await openMemory({ store: sharedStore(store) })
 */
export function borrowed(store: Store & Index): Store & Index {
  const shared: Store & Index = {
    ...forwardCapabilities(store),
    durability: store.durability,
    head: (key, recent) => store.head(key, recent),
    page: (key, range) => store.page(key, range),
    commit: (change) => store.commit(change),
    list: (filter) => store.list(filter),
    erase: (key, only) => store.erase(key, only),
    appendRecord: (key, record, keep) => store.appendRecord(key, record, keep),
    records: (key, range) => store.records(key, range),
    search: (where, query) => store.search(where, query),
    changes: (where, since) => store.changes(where, since),
    unembedded: (model, after, limit) => store.unembedded(model, after, limit),
    embed: (model, vectors) => store.embed(model, vectors),
    embedded: (model) => store.embedded(model),
    close: async () => undefined,
  }
  return isBounded(store) ? withMemoryLimit(shared, store) : shared
}

/** Forwards the memory limit and the session count of the underlying store. */
function withMemoryLimit(shared: Store & Index, store: Bounded & Partial<Counted>): Store & Index & Bounded {
  const counter: Partial<Counted> = store.sessionsIn === undefined ? {} : { sessionsIn: store.sessionsIn.bind(store) }
  return {
    ...shared,
    ...counter,
    overflowing: () => store.overflowing(),
    rest: (now) => store.rest(now),
    get bytes() {
      return store.bytes
    },
  }
}

const isBounded = (store: Store): store is Store & Bounded =>
  (store as Store & Partial<Bounded>).overflowing !== undefined
