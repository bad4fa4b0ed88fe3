import type { Key, Scope } from '../domain/key.ts'
import type { Erasure, Store } from '../domain/ports.ts'
import type { Keyring } from './encrypted/keyring.ts'

/**
 * A store in a database file. The graph of its sessions is stored in the same file. An encrypted store also hands out a
 * copy of its keys, which the caller wipes after use.
 */
export type InFile = { readonly path: string; readonly keys?: () => Keyring }
export const isInFile = <S extends Store>(store: S): store is S & InFile =>
  'path' in store && typeof store.path === 'string'

/** Erases data that was derived from a store's entries and is stored elsewhere. */
export type Listener = {
  /** Called after a session was erased, or only these entries of it. */
  erased(key: Key, entries?: readonly string[]): Promise<void>
  /** Erases data that contains one of the texts, or without texts the whole scope. Resolves to opaque names of the erased data. */
  forget(scope: Scope, texts?: readonly string[]): Promise<readonly string[]>
}

/** A store that notifies listeners after an erasure. */
export type Heard = { readonly listeners: Set<Listener> }
export const isHeard = <S extends Store>(store: S): store is S & Heard =>
  (store as Store & Partial<Heard>).listeners !== undefined

/** Wraps a store so that listeners are notified after each erasure. */
export function heard<S extends Store>(store: S): S & Heard {
  const listeners = new Set<Listener>()
  const erase = async (key: Key, only?: Erasure): Promise<readonly string[]> => {
    const erasedIds = await store.erase(key, only)
    if (only !== undefined && ('remains' in only || 'records' in only)) return erasedIds
    const entries = only !== undefined && 'entries' in only ? only.entries : undefined
    // An expired session may have been written to again, in which case nothing was erased.
    const wasErased = entries !== undefined || (await store.head(key, 0)).revision === 0
    for (const listener of wasErased ? listeners : []) await listener.erased(key, entries)
    return erasedIds
  }
  // Copies property descriptors, so that getters stay getters.
  const copy = Object.defineProperties({}, Object.getOwnPropertyDescriptors(store)) as S
  const notifier: Heard = { listeners }
  return Object.assign(copy, { erase }, notifier)
}

/** Copies the file and listener capabilities of a store to a store that wraps it; `keys` adds the keys of an encrypted store. */
export function forwardCapabilities(store: Store, keys?: () => Keyring): Partial<InFile & Heard> {
  const notifier: Partial<Heard> = isHeard(store) ? { listeners: store.listeners } : {}
  return { ...fileCapability(store, keys), ...notifier }
}

function fileCapability(store: Store, keys: InFile['keys']): Partial<InFile> {
  if (!isInFile(store)) return {}
  const keySource = keys ?? store.keys
  return keySource === undefined ? { path: store.path } : { path: store.path, keys: keySource }
}
