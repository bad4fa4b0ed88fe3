import type { Key, Scope } from '../domain/key.ts'
import type { Erasure, Store } from '../domain/ports.ts'
import type { Keyring } from './encrypted/keyring.ts'

/** A store that says in which file it lies, so that its graph is found there; one that is encrypted gives a copy of its keys too. */
export type InFile = { readonly path: string; readonly keys?: () => Keyring }
export const isInFile = <S extends Store>(store: S): store is S & InFile =>
  'path' in store && typeof store.path === 'string'

/** Hears what a store has forgotten, to forget what was made of it and lies elsewhere. */
export type Listener = {
  /** A session is gone, or only these entries of it. */
  erased(key: Key, entries?: readonly string[]): Promise<void>
  /** Forgets what holds one of these texts, or without them everything of a scope; what went, by names that tell nothing. */
  forget(scope: Scope, texts?: readonly string[]): Promise<readonly string[]>
}

/** A store whose forgetting is heard. */
export type Heard = { readonly listeners: Set<Listener> }
export const isHeard = <S extends Store>(store: S): store is S & Heard => 'listeners' in store

/** A store as it is, whose forgetting is heard by whatever lies beside it without being in it. */
export function heard<S extends Store>(store: S): S & Heard {
  const listeners = new Set<Listener>()
  const erase = async (key: Key, only?: Erasure): Promise<readonly string[]> => {
    const gone = await store.erase(key, only)
    const [entries, isScope] =
      only === undefined ? [] : ['entries' in only ? only.entries : undefined, 'remains' in only]
    // A session that was over may have been begun anew.
    const isGone = isScope !== true && (entries !== undefined || (await store.head(key, 0)).revision === 0)
    for (const listener of isGone ? listeners : []) await listener.erased(key, entries)
    return gone
  }
  // Getters stay what they are.
  const same = Object.defineProperties({}, Object.getOwnPropertyDescriptors(store)) as S
  return Object.assign(same, { erase, listeners })
}

/** What a store made of another one says of what lies beside that; of an encrypted one, with its keys. */
export function besideOf(store: Store, keys?: () => Keyring): Partial<InFile & Heard> {
  const held = keys ?? (isInFile(store) ? store.keys : undefined)
  return {
    ...(isInFile(store) ? { path: store.path, ...(held === undefined ? {} : { keys: held }) } : {}),
    ...(isHeard(store) ? { listeners: store.listeners } : {}),
  }
}
