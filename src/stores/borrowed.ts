import type { Index, Store } from '../domain/ports.ts'
import { besideOf } from './beside.ts'
import type { Bounded, Counted } from './ram/attic.ts'

/**
 * A store for one of several users: who closes it leaves it open for the others. Its owner closes the store itself, last.
 *
 * @example
 * const store = await openStore('sqlite:memory.db')
 * await openMemory({ store: borrowed(store) })
 */
export function borrowed(store: Store & Index): Store & Index {
  const lent: Store & Index = {
    ...besideOf(store),
    durability: store.durability,
    head: (key, recent) => store.head(key, recent),
    page: (key, range) => store.page(key, range),
    commit: (change) => store.commit(change),
    list: (filter) => store.list(filter),
    erase: (key, only) => store.erase(key, only),
    search: (where, query) => store.search(where, query),
    changes: (where, since) => store.changes(where, since),
    unembedded: (model, after, limit) => store.unembedded(model, after, limit),
    embed: (model, vectors) => store.embed(model, vectors),
    embedded: (model) => store.embedded(model),
    close: async () => undefined,
  }
  return isBounded(store) ? bounded(lent, store) : lent
}

/** What has a bound keeps it for whoever borrows it, and what counts goes on counting. */
function bounded(lent: Store & Index, store: Bounded & Partial<Counted>): Store & Index & Bounded {
  return {
    ...lent,
    ...(store.sessionsIn === undefined ? {} : { sessionsIn: store.sessionsIn.bind(store) }),
    overflowing: () => store.overflowing(),
    rest: (now) => store.rest(now),
    get bytes() {
      return store.bytes
    },
  }
}

const isBounded = (store: Store): store is Store & Bounded => 'overflowing' in store
