import { randomUUID } from 'node:crypto'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { Store } from '../../domain/ports.ts'
import type { Keyring } from './keyring.ts'
import { isUnder, keyEntryOf, unwrapped, wrapped } from './wrap.ts'

/** How many sessions were looked at, and how many of their keys were wrapped anew. */
export type Rotation = { readonly sessions: number; readonly rewrapped: number }

const piece = 100

/**
 * Wraps the key of every session of a sealed store's inner store under the current master key, after which the others
 * are no longer needed. Content is not touched: one small write for each session. Can be stopped at any time and begun
 * again, while others read and write.
 *
 * @example
 * await rotate(inner, await loadKeyring('file:/etc/threadkeep/key'), ({ sessions }) => console.log(sessions))
 */
export async function rotate(
  inner: Store,
  ring: Keyring,
  progress: (so: Rotation) => void = () => undefined,
): Promise<Rotation> {
  let so: Rotation = { sessions: 0, rewrapped: 0 }
  for (let after = ''; ; ) {
    const listed = await inner.list({ after, limit: piece })
    for (const { key } of listed) {
      const isNew = await rewrap(inner, key, ring)
      so = { sessions: so.sessions + 1, rewrapped: so.rewrapped + (isNew ? 1 : 0) }
      after = formatKey(key)
      progress(so)
    }
    if (listed.length < piece) return so
  }
}

/** False when there was nothing to do: the key is under the current master already, or the session has gone. */
async function rewrap(inner: Store, key: Key, ring: Keyring): Promise<boolean> {
  for (;;) {
    const { revision, epoch, touchedAt, expiresAt, derived } = await inner.head(key, 0)
    if (revision === 0) return false
    const entry = keyEntryOf(derived, key)
    if (isUnder(ring.current, entry)) return false
    // no base: within an epoch the key itself never changes, so that nothing another writer does can make this wrong
    const put = [wrapped(unwrapped(entry, key, ring), key, entry.at, ring.current)]
    try {
      await inner.commit({ id: randomUUID(), key, at: touchedAt, epoch, append: [], put, drop: [], expiresAt })
      return true
    } catch (error) {
      // forgotten in between, and perhaps begun anew: look again
      if (!(error instanceof MemoryError) || error.code !== 'erased') throw error
    }
  }
}
