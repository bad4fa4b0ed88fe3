import { randomBytes } from 'node:crypto'
import type { DerivedEntry, EncryptedEntry, Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { graphKey, type Key, parseKey } from '../domain/key.ts'
import { getOrCompute } from '../domain/keyed.ts'
import { LruCache } from '../domain/lruCache.ts'
import type { Keyring } from '../domain/ports.ts'
import { keyLengthBytes } from '../stores/encrypted/cipher.ts'
import { findKeyEntry, isKeyEntry, unwrapKey, wrapKey } from '../stores/encrypted/keyEntry.ts'
import { copyKeyring, wipeKeyring } from '../stores/encrypted/keyring.ts'
import { createCipher, type GraphCipher, plaintextCipher } from './cipher.ts'

/** Returns the key of the session that owns the graph of a workspace. Throws `bad-key` for a name of a session. */
export function parseWorkspace(name: string): Key {
  const { scope, id } = parseKey(name)
  if (id === '') return graphKey(scope)
  throw new MemoryError(
    'bad-key',
    `Workspace ${JSON.stringify(name)} names a session. Give the scope alone, for example ${scope}.`,
    { param: 'workspace' },
  )
}

const maxCachedCiphers = 10_000

/**
 * Ciphers of workspaces by their wrapped keys: a workspace that was erased and created again, or whose creation was
 * rolled back, has another key.
 */
export class WorkspaceCiphers {
  private readonly keyring: Keyring | undefined
  private readonly cached = new LruCache<string, GraphCipher>({ maxEntries: maxCachedCiphers })

  /** With a keyring, rows are encrypted. */
  constructor(keyring?: Keyring) {
    this.keyring = keyring && copyKeyring(keyring)
  }

  /** Creates the entries of a new workspace's session: its key, if the store is encrypted. */
  createKeyEntries(key: Key, at: Millis): readonly EncryptedEntry[] {
    return this.keyring === undefined ? [] : [wrapKey(randomBytes(keyLengthBytes), key, at, this.keyring.current)]
  }

  /**
   * Returns the cipher of a workspace, given the entries of its session. Throws `bad-secret` if the keyring is missing
   * or wrong.
   */
  open(key: Key, derived: readonly DerivedEntry[]): GraphCipher {
    const { keyring } = this
    if (keyring !== undefined) {
      const entry = findKeyEntry(derived, key)
      return getOrCompute(this.cached, entry.ciphertext, () => createCipher(unwrapKey(entry, key, keyring), key.scope))
    }
    if (!derived.some(isKeyEntry)) return plaintextCipher
    throw new MemoryError('bad-secret', `The graph of ${key.scope} is encrypted. Open it with the key of its store.`, {
      param: 'storeKey',
    })
  }

  /** Overwrites the keys. */
  wipe(): void {
    for (const [, cipher] of this.cached) cipher.wipe()
    this.cached.clear()
    if (this.keyring !== undefined) wipeKeyring(this.keyring)
  }
}
