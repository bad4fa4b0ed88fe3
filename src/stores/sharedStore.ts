import type { SearchIndex, Store } from '../domain/ports.ts'

/**
 * Wraps a store for one of several users: `close` leaves the store open for the others. The owner closes the store
 * itself, last.
 *
 * @example
 * const store = await openStore('sqlite:memory.db')
 * await openMemory({ store: sharedStore(store) })
 */
export function sharedStore(store: Store & SearchIndex): Store & SearchIndex {
  return {
    capabilities: store.capabilities,
    durability: store.durability,
    readHead: (key, recent, revision) => store.readHead(key, recent, revision),
    readMessages: (key, range) => store.readMessages(key, range),
    findMessages: (key, externalIds) => store.findMessages(key, externalIds),
    commit: (change) => store.commit(change),
    list: (filter) => store.list(filter),
    erase: (key, only) => store.erase(key, only),
    appendRecord: (key, record, keep) => store.appendRecord(key, record, keep),
    records: (key, range) => store.records(key, range),
    table: store.table,
    search: (where, query) => store.search(where, query),
    changesSince: (where, since) => store.changesSince(where, since),
    listUnembedded: (model, after, limit) => store.listUnembedded(model, after, limit),
    storeVectors: (model, vectors) => store.storeVectors(model, vectors),
    readVectors: (key, ids) => store.readVectors(key, ids),
    countVectors: (model) => store.countVectors(model),
    close: async () => undefined,
  }
}
