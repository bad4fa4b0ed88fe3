import type { Key } from '../domain/key.ts'
import type { SearchIndex, Store } from '../domain/ports.ts'

/** A completed write: entries of a session changed, a record was stored beside it, or the whole session was erased. */
export type StoreChange = { readonly kind: 'entries' | 'record' | 'erased'; readonly key: Key }

/** Wraps a store so that a listener is called after each write that succeeded. */
export function withChangeListener(
  store: Store & SearchIndex,
  onChange: (change: StoreChange) => void,
): Store & SearchIndex {
  return {
    ...store,
    async commit(change) {
      const appended = await store.commit(change)
      onChange({ kind: 'entries', key: change.key })
      return appended
    },
    async appendRecord(key, record, keep) {
      const isStored = await store.appendRecord(key, record, keep)
      if (isStored) onChange({ kind: 'record', key })
      return isStored
    },
    async erase(key, only) {
      const ids = await store.erase(key, only)
      if (ids.length === 0) return ids
      const isWhole = only === undefined || 'expiredBy' in only
      onChange({ kind: isWhole ? 'erased' : 'entries', key })
      return ids
    },
  }
}
