import type { Derived, Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { Head } from '../domain/session.ts'

/** Derived entries to put and to drop. */
export type Revision = { readonly put: readonly Derived[]; readonly drop: readonly string[] }

/** A session as it was read, and what was then changed in it. */
export type Revised = Revision & { readonly head: Head }

/** What others keep undoing is given up at last. */
const mostRounds = 1_000

/**
 * Reads a session, decides and writes; if somebody else has written meanwhile, all of it again. Undefined when nothing is
 * to be changed. Without a time of its own this is no use of the session.
 */
export async function revise(
  store: Store,
  key: Key,
  decide: (head: Head) => Revision | undefined,
  at?: Millis,
): Promise<Revised | undefined> {
  for (let round = 0; round < mostRounds; round++) {
    const head = await store.head(key, 0)
    const revision = decide(head)
    if (revision === undefined || revision.put.length + revision.drop.length === 0) return undefined
    if (await wrote(store, at === undefined ? head : { ...head, touchedAt: at }, revision)) return { ...revision, head }
  }
  throw new MemoryError('conflict', 'Others have written to this session without pause. Try again.')
}

/** Writes what was decided on a session as it was read; false if it is no longer so. */
export async function wrote(
  store: Store,
  { key, epoch, revision, touchedAt, expiresAt }: Head,
  { put, drop }: Revision,
): Promise<boolean> {
  try {
    await store.commit({ key, at: touchedAt, epoch, base: revision, append: [], put, drop, expiresAt })
    return true
  } catch (error) {
    if (error instanceof MemoryError && error.code === 'conflict') return false
    throw error
  }
}
