import { randomUUID } from 'node:crypto'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { Keyring, Store } from '../../domain/ports.ts'
import { findKeyEntry, isWrappedBy, unwrapKey, wrapKey } from './keyEntry.ts'

/** Number of sessions visited, and of session keys wrapped again. */
export type RotationProgress = { readonly sessions: number; readonly rewrapped: number }

const pageSize = 100

/**
 * Wraps the key of every session under the current master key, after which the other keys are no longer needed. `inner`
 * is the store below the encrypted one. Content is not rewritten: one small write per session. May be interrupted and
 * repeated at any time, while other processes read and write.
 *
 * Throws `bad-secret` if a session's key is wrapped by a key that is not on the keyring, `corrupt` if it was modified.
 *
 * @example
 * await rotateKeys(inner, await loadKeyring('file:/etc/threadkeep/key'), ({ sessions }) => console.log(sessions))
 */
export async function rotateKeys(
  inner: Store,
  keyring: Keyring,
  onProgress: (progress: RotationProgress) => void = () => undefined,
): Promise<RotationProgress> {
  let progress: RotationProgress = { sessions: 0, rewrapped: 0 }
  for (let after = ''; ; ) {
    const listed = await inner.list({ after, limit: pageSize })
    for (const { key } of listed) {
      const isNew = await rewrap(inner, key, keyring)
      progress = { sessions: progress.sessions + 1, rewrapped: progress.rewrapped + (isNew ? 1 : 0) }
      after = formatKey(key)
      onProgress(progress)
    }
    if (listed.length < pageSize) {
      inner.capabilities.file?.retireKeys(keyring.current.id)
      // Copies of the keys of sessions are still wrapped by the former key.
      await inner.capabilities.file?.wipe()
      return progress
    }
  }
}

/** Returns false if the key is already wrapped by the current master key, or the session no longer exists. */
async function rewrap(inner: Store, key: Key, keyring: Keyring): Promise<boolean> {
  for (;;) {
    const { revision, epoch, touchedAt, expiresAt, derived } = await inner.readHead(key, 0)
    if (revision === 0) return false
    const entry = findKeyEntry(derived, key)
    if (isWrappedBy(keyring.current, entry)) return false
    // Needs no `base`: the key itself never changes within an epoch, whatever other writers do.
    const put = [wrapKey(unwrapKey(entry, key, keyring), key, entry.at, keyring.current)]
    try {
      await inner.commit({ id: randomUUID(), key, at: touchedAt, epoch, append: [], put, drop: [], expiresAt })
      return true
    } catch (error) {
      // The session was erased meanwhile and may exist again: look again.
      if (!(error instanceof MemoryError) || error.code !== 'erased') throw error
    }
  }
}
