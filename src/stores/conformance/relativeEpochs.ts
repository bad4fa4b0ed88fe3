import { parseKey, type Scope } from '../../domain/key.ts'
import type { SearchIndex, Store } from '../../domain/ports.ts'
import { sharedStore } from '../sharedStore.ts'

/**
 * Wraps an empty store so that the epochs of its sessions begin with 0. Stores choose the first epoch of a scope
 * themselves: one that can lose all its data at once never gives out the same epoch again.
 */
export function withRelativeEpochs(store: Store & SearchIndex): Store & SearchIndex {
  const firstEpochs = new Map<Scope, Promise<number>>()
  const firstEpochOf = (scope: Scope): Promise<number> => {
    const first = firstEpochs.get(scope) ?? store.readHead(parseKey(`${scope}:unused`), 0).then(({ epoch }) => epoch)
    firstEpochs.set(scope, first)
    return first
  }
  return {
    ...sharedStore(store),
    readHead: async (key, recent, revision) => {
      const first = await firstEpochOf(key.scope)
      const head = await store.readHead(key, recent, revision)
      return { ...head, epoch: head.epoch - first }
    },
    commit: async (change) => store.commit({ ...change, epoch: change.epoch + (await firstEpochOf(change.key.scope)) }),
    listUnembedded: async (model, after, limit) => {
      const { entries, next } = await store.listUnembedded(model, after, limit)
      const relative = entries.map(async (entry) => ({
        ...entry,
        epoch: entry.epoch - (await firstEpochOf(entry.key.scope)),
      }))
      return { entries: await Promise.all(relative), next }
    },
    storeVectors: async (model, vectors) => {
      const absolute = vectors.map(async (vector) => ({
        ...vector,
        epoch: vector.epoch + (await firstEpochOf(vector.key.scope)),
      }))
      return store.storeVectors(model, await Promise.all(absolute))
    },
    close: () => store.close(),
  }
}
