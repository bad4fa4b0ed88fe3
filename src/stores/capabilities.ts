import type { Key, Scope } from '../domain/key.ts'
import type { EraseFilter, Store } from '../domain/ports.ts'
import type { Keyring } from './encrypted/keyring.ts'

/**
 * A store in a database file. The graph of its sessions is stored in the same file. An encrypted store also hands out a
 * copy of its keys, which the caller wipes after use.
 */
export type FileBackedStore = { readonly path: string; readonly copyKeyring?: () => Keyring }
export const isFileBacked = <S extends Store>(store: S): store is S & FileBackedStore =>
  'path' in store && typeof store.path === 'string'

/** Erases data that was derived from a store's entries and is stored elsewhere. */
export type EraseListener = {
  /** Called after a session was erased, or only these entries of it. */
  onErase(key: Key, entries?: readonly string[]): Promise<void>
  /** Erases data that contains one of the texts, or without texts the whole scope. Resolves to opaque names of the erased data. */
  forget(scope: Scope, texts?: readonly string[]): Promise<readonly string[]>
}

/** A store that notifies listeners after an erasure. */
export type EraseNotifier = { readonly eraseListeners: Set<EraseListener> }
export const isEraseNotifier = <S extends Store>(store: S): store is S & EraseNotifier =>
  (store as Store & Partial<EraseNotifier>).eraseListeners !== undefined

/** Wraps a store so that listeners are notified after each erasure. */
export function withEraseListeners<S extends Store>(store: S): S & EraseNotifier {
  const listeners = new Set<EraseListener>()
  const erase = async (key: Key, only?: EraseFilter): Promise<readonly string[]> => {
    const erasedIds = await store.erase(key, only)
    if (only !== undefined && ('remains' in only || 'records' in only)) return erasedIds
    const entries = only !== undefined && 'entries' in only ? only.entries : undefined
    // An expired session may have been written to again, in which case nothing was erased.
    const wasErased = entries !== undefined || (await store.readHead(key, 0)).revision === 0
    for (const listener of wasErased ? listeners : []) await listener.onErase(key, entries)
    return erasedIds
  }
  // Copies property descriptors, so that getters stay getters.
  const copy = Object.defineProperties({}, Object.getOwnPropertyDescriptors(store)) as S
  const notifier: EraseNotifier = { eraseListeners: listeners }
  return Object.assign(copy, { erase }, notifier)
}

/** Copies the file and listener capabilities of a store to a store that wraps it; `keys` adds the keys of an encrypted store. */
export function forwardCapabilities(store: Store, keys?: () => Keyring): Partial<FileBackedStore & EraseNotifier> {
  const notifier: Partial<EraseNotifier> = isEraseNotifier(store) ? { eraseListeners: store.eraseListeners } : {}
  return { ...fileCapability(store, keys), ...notifier }
}

function fileCapability(store: Store, keys: FileBackedStore['copyKeyring']): Partial<FileBackedStore> {
  if (!isFileBacked(store)) return {}
  const keySource = keys ?? store.copyKeyring
  return keySource === undefined ? { path: store.path } : { path: store.path, copyKeyring: keySource }
}
