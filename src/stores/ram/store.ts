import type { Key } from '../../domain/key.ts'
import type { SearchIndex, Store } from '../../domain/ports.ts'
import type { IndexedMessage } from '../../search/scopeIndex.ts'
import { StoreSearch } from '../../search/storeSearch.ts'
import { searchTerms } from '../../search/terms.ts'
import type { RamSessionTable } from './sessionTable.ts'
import type { RamVectors } from './vectors.ts'

/**
 * Adapts a session table to the `Store` and `Index` ports. Without vectors only lexical search works; the browser build
 * leaves them out.
 */
export function createRamStore(table: RamSessionTable, vectors?: RamVectors): Store & SearchIndex {
  const finder = createFinder(table, vectors)
  return {
    durability: 'ram',
    capabilities: {},
    readHead: async (key, recent) => table.head(key, recent),
    readMessages: async (key, range) => table.page(key, range),
    commit: async (change) => (vectors ?? table).commit(change),
    list: async (filter) => table.list(filter),
    erase: async (key, only) => {
      finder.drop(key.scope)
      const erasedIds = table.erase(key, only)
      vectors?.delete(key, erasedIds)
      return erasedIds
    },
    appendRecord: async (key, record, keep) => table.appendRecord(key, record, keep),
    records: async (key, { before = Number.POSITIVE_INFINITY, limit }) => table.records(key, before, limit),
    search: (where, query) => finder.search(where, query),
    changesSince: async (where, since) => table.changes(where, since),
    listUnembedded: async (model, after, limit) =>
      vectors?.unembedded(model, after, limit) ?? { entries: [], next: undefined },
    storeVectors: async (model, embedded) => vectors?.embed(model, embedded) ?? 0,
    countVectors: async (model) => vectors?.embedded(model) ?? { done: 0, total: 0 },
    close: async () => {
      finder.clear()
      table.clear()
      vectors?.clear()
    },
  }
}

function createFinder(table: RamSessionTable, vectors: RamVectors | undefined): StoreSearch {
  const indexed = (key: Key, after: number, limit: number): readonly IndexedMessage[] =>
    table
      .page(key, { after, limit })
      .map(({ sequence, at, name, content }) => ({ sequence, at, name, terms: searchTerms(content) }))
  return new StoreSearch({
    changes: async (where, since) => table.changes(where, since),
    readMessages: async (key, after, limit) => indexed(key, after, limit),
    readDerived: async (key) => table.head(key, 0).derived,
    readVectors: async (where, model, after, limit) =>
      vectors?.listVectors(where, model, after, limit) ?? { vectors: [], next: after },
    // Everything is in RAM already: no index snapshot is stored.
    loadSnapshot: async () => undefined,
    saveSnapshot: () => undefined,
    pause: async () => undefined,
    readVector: async (key, id, model) => vectors?.getVector(key, id, model),
    createVectorIndex: (model) => vectors?.createVectorIndex(model),
    readEntries: async (found) => table.findEntries(found),
  })
}
