import type { Key } from '../../domain/key.ts'
import type { Index, Store } from '../../domain/ports.ts'
import type { Indexed } from '../../search/scopeIndex.ts'
import { Finder } from '../../search/storeSearch.ts'
import { searchTerms } from '../../search/terms.ts'
import type { RamShelf } from './sessionTable.ts'
import type { RamVectors } from './vectors.ts'

/** Adapts a session table to the `Store` and `Index` ports. Without vectors only lexical search works; the browser build leaves them out. */
export function ramStoreOn(table: RamShelf, vectors?: RamVectors): Store & Index {
  const finder = createFinder(table, vectors)
  return {
    durability: 'ram',
    head: async (key, recent) => table.head(key, recent),
    page: async (key, range) => table.page(key, range),
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
    changes: async (where, since) => table.changes(where, since),
    unembedded: async (model, after, limit) =>
      vectors?.unembedded(model, after, limit) ?? { entries: [], next: undefined },
    embed: async (model, embedded) => vectors?.embed(model, embedded) ?? 0,
    embedded: async (model) => vectors?.embedded(model) ?? { done: 0, total: 0 },
    close: async () => {
      finder.clear()
      table.clear()
      vectors?.clear()
    },
  }
}

function createFinder(table: RamShelf, vectors: RamVectors | undefined): Finder {
  const indexed = (key: Key, after: number, limit: number): readonly Indexed[] =>
    table
      .page(key, { after, limit })
      .map(({ sequence, at, name, content }) => ({ sequence, at, name, terms: searchTerms(content) }))
  return new Finder({
    changes: async (where, since) => table.changes(where, since),
    indexed: async (key, after, limit) => indexed(key, after, limit),
    derived: async (key) => table.head(key, 0).derived,
    pointed: async (where, model, after, limit) =>
      vectors?.listVectors(where, model, after, limit) ?? { vectors: [], next: after },
    // Everything is in RAM already: no index snapshot is stored.
    load: async () => undefined,
    save: () => undefined,
    pause: async () => undefined,
    vector: async (key, id, model) => vectors?.getVector(key, id, model),
    meaning: (model) => vectors?.createVectorIndex(model),
    entries: async (found) => table.findEntries(found),
  })
}
