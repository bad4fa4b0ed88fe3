import type { Key } from '../domain/key.ts'
import type { EraseFilter, EraseListener, Store } from '../domain/ports.ts'

/** Wraps a store so that listeners are called after each erasure or replacement. */
export function withEraseListeners<S extends Store>(store: S): S {
  const eraseListeners = new Set<EraseListener>()
  const erase = async (key: Key, only?: EraseFilter): Promise<readonly string[]> => {
    const erasedIds = await store.erase(key, only)
    if (eraseListeners.size === 0) return erasedIds
    if (only !== undefined && ('remains' in only || 'records' in only)) return erasedIds
    const entries = only !== undefined && 'entries' in only ? only.entries : undefined
    // An expired session may have been written to again, in which case nothing was erased.
    const wasErased = entries !== undefined || (await store.readHead(key, 0)).revision === 0
    for (const listener of wasErased ? eraseListeners : []) await listener.onErase(key, entries)
    return erasedIds
  }
  // Data derived from the old text of a replaced message is erased too.
  const commit: Store['commit'] = async (change) => {
    const messages = await store.commit(change)
    const replaced = change.replace?.map(({ id }) => id) ?? []
    for (const listener of replaced.length > 0 ? eraseListeners : []) await listener.onErase(change.key, replaced)
    return messages
  }
  return { ...store, capabilities: { ...store.capabilities, eraseListeners }, commit, erase }
}
