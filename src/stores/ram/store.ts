import type { Key } from '../../domain/key.ts'
import type { Index, Store } from '../../domain/ports.ts'
import { Finder } from '../../search/find.ts'
import type { Indexed } from '../../search/held.ts'
import { searchTerms } from '../../search/terms.ts'
import type { RamShelf } from './shelf.ts'
import type { RamVectors } from './vectors.ts'

/** A shelf as a store. Without vectors it is found by words alone, and weighs less. */
export function ramStoreOn(shelf: RamShelf, vectors?: RamVectors): Store & Index {
  const finder = finderOf(shelf, vectors)
  return {
    durability: 'ram',
    head: async (key, recent) => shelf.head(key, recent),
    page: async (key, range) => shelf.page(key, range),
    commit: async (change) => (vectors ?? shelf).commit(change),
    list: async (filter) => shelf.list(filter),
    erase: async (key, only) => {
      finder.drop(key.scope)
      const gone = shelf.erase(key, only)
      vectors?.forget(key, gone)
      return gone
    },
    search: (where, query) => finder.search(where, query),
    changes: async (where, since) => shelf.changes(where, since),
    unembedded: async (model, after, limit) =>
      vectors?.unembedded(model, after, limit) ?? { entries: [], next: undefined },
    embed: async (model, made) => vectors?.embed(model, made) ?? 0,
    embedded: async (model) => vectors?.embedded(model) ?? { done: 0, total: 0 },
    close: async () => {
      finder.clear()
      shelf.clear()
      vectors?.clear()
    },
  }
}

function finderOf(shelf: RamShelf, vectors: RamVectors | undefined): Finder {
  const indexed = (key: Key, after: number, limit: number): readonly Indexed[] =>
    shelf
      .page(key, { after, limit })
      .map(({ sequence, at, name, content }) => ({ sequence, at, name, terms: searchTerms(content) }))
  return new Finder({
    changes: async (where, since) => shelf.changes(where, since),
    indexed: async (key, after, limit) => indexed(key, after, limit),
    derived: async (key) => shelf.head(key, 0).derived,
    pointed: async (where, model, after, limit) =>
      vectors?.pointed(where, model, after, limit) ?? { vectors: [], next: after },
    // What is in RAM is read at once, and gone with it.
    load: async () => undefined,
    save: () => undefined,
    pause: async () => undefined,
    vector: async (key, id, model) => vectors?.vector(key, id, model),
    meaning: (model) => vectors?.meaning(model),
    entries: async (found) => shelf.found(found),
  })
}
