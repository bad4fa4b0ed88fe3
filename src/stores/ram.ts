import type { Key } from '../domain/key.ts'
import type { Index, Store } from '../domain/ports.ts'
import { Finder } from '../recall/find.ts'
import type { Indexed } from '../recall/held.ts'
import { searchTerms } from '../recall/score.ts'
import { RamShelf } from './ram/shelf.ts'
import { RamVectors } from './ram/vectors.ts'

/**
 * The reference store: sessions in RAM, gone with the process.
 *
 * @example
 * const memory = await openMemory({ store: ramStore() })
 */
export function ramStore(shelf = new RamShelf()): Store & Index {
  const vectors = new RamVectors(shelf)
  const indexed = (key: Key, after: number, limit: number): readonly Indexed[] =>
    shelf.page(key, { after, limit }).map(({ sequence, at, name, content }) => ({ sequence, at, name, terms: searchTerms(content) }))
  const finder = new Finder({
    changes: async (where, since) => shelf.changes(where, since),
    indexed: async (key, after, limit) => indexed(key, after, limit),
    derived: async (key) => shelf.head(key, 0).derived,
    pointed: async (where, model, after, limit) => vectors.pointed(where, model, after, limit),
    entries: async (found) => found.map(({ key, id }) => shelf.entry(key, id)),
  })
  return {
    durability: 'ram',
    head: async (key, recent) => shelf.head(key, recent),
    page: async (key, range) => shelf.page(key, range),
    commit: async (change) => {
      const messages = shelf.commit(change)
      vectors.forget(change.key, [...change.put.map(({ id }) => id), ...change.drop])
      return messages
    },
    list: async (filter) => shelf.list(filter),
    erase: async (key, only) => {
      finder.drop(key.scope)
      const gone = shelf.erase(key, only)
      vectors.forget(key, gone)
      return gone
    },
    search: (where, query) => finder.search(where, query),
    changes: async (where, since) => shelf.changes(where, since),
    unembedded: async (model, after, limit) => vectors.unembedded(model, after, limit),
    embed: async (model, made) => vectors.embed(model, made),
    embedded: async (model) => vectors.embedded(model),
    close: async () => {
      finder.clear()
      shelf.clear()
      vectors.clear()
    },
  }
}
