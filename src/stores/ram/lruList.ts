import type { Session } from './session.ts'

/** Names of the two link fields that a list uses in its sessions. */
type LinkFields = {
  readonly older: 'olderUsed' | 'olderUncompressed'
  readonly newer: 'newerUsed' | 'newerUncompressed'
}

/**
 * Doubly linked list of sessions by last use. The links are fields of the sessions, so that moving one needs no lookup.
 */
export class LruList {
  private readonly older: LinkFields['older']
  private readonly newer: LinkFields['newer']
  private oldest: Session | undefined
  private newest: Session | undefined

  constructor({ older, newer }: LinkFields) {
    this.older = older
    this.newer = newer
  }

  /** The least recently used session; undefined if it is the only one. */
  get oldestUnlessOnly(): Session | undefined {
    return this.oldest === this.newest ? undefined : this.oldest
  }

  has(session: Session): boolean {
    return this.newest === session || session[this.newer] !== undefined
  }

  /** Adds a session as the newest, or moves it there. */
  moveToNewest(session: Session): void {
    if (this.newest === session) return
    this.delete(session)
    session[this.older] = this.newest
    if (this.newest === undefined) this.oldest = session
    else this.newest[this.newer] = session
    this.newest = session
  }

  delete(session: Session): void {
    if (!this.has(session)) return
    const older = session[this.older]
    const newer = session[this.newer]
    if (older === undefined) this.oldest = newer
    else older[this.newer] = newer
    if (newer === undefined) this.newest = older
    else newer[this.older] = older
    session[this.older] = undefined
    session[this.newer] = undefined
  }

  /** Iterates from the least recently used session; the current one may be deleted. */
  *[Symbol.iterator](): Iterator<Session> {
    for (let session = this.oldest; session !== undefined; ) {
      const next = session[this.newer]
      yield session
      session = next
    }
  }
}
