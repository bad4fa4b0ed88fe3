import type { DerivedEntry, Millis } from '../domain/entry.ts'
import { hasErrorCode, MemoryError } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { SessionHead } from '../domain/session.ts'

/** Derived entries to put and to drop. */
type Revision = { readonly put: readonly DerivedEntry[]; readonly drop: readonly string[] }

/** A committed revision and the head it was based on. */
export type RevisionResult = Revision & { readonly head: SessionHead }

const maxAttempts = 1_000

/**
 * Reads a session, decides on a revision and commits it; repeats all of that on a conflict. Resolves to undefined when
 * there is nothing to change. Counts as a use of the session only when `at` is given. Throws `conflict` after 1,000
 * attempts.
 */
export async function revise(
  store: Store,
  key: Key,
  decide: (head: SessionHead) => Revision | undefined | Promise<Revision | undefined>,
  at?: Millis,
): Promise<RevisionResult | undefined> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const head = await store.readHead(key, 0)
    const revision = await decide(head)
    if (revision === undefined || revision.put.length + revision.drop.length === 0) return undefined
    if (await tryCommit(store, at === undefined ? head : { ...head, touchedAt: at }, revision))
      return { ...revision, head }
  }
  throw new MemoryError('conflict', 'Too many concurrent writes to this session. Try again.')
}

/** Commits a revision of a session as it was read; false if the session has changed since. */
export async function tryCommit(
  store: Store,
  { key, epoch, revision, touchedAt, expiresAt }: SessionHead,
  { put, drop }: Revision,
): Promise<boolean> {
  try {
    await store.commit({ key, at: touchedAt, epoch, base: revision, append: [], put, drop, expiresAt })
    return true
  } catch (error) {
    if (hasErrorCode(error, 'conflict')) return false
    throw error
  }
}
