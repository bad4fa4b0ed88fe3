import type { Session } from './session.ts'

/** Where a session names the one used before it and the one used after it. */
type Links = { readonly older: 'olderUsed' | 'olderAwake'; readonly newer: 'newerUsed' | 'newerAwake' }

/** Sessions in the order of their last use. They are linked to each other: one moves up with every write, and is not looked up for it. */
export class Order {
  private readonly older: Links['older']
  private readonly newer: Links['newer']
  private first: Session | undefined
  private last: Session | undefined

  constructor({ older, newer }: Links) {
    this.older = older
    this.newer = newer
  }

  /** The one that nobody has used for longest, unless it is the only one. */
  get oldestOfSome(): Session | undefined {
    return this.first === this.last ? undefined : this.first
  }

  has(session: Session): boolean {
    return this.last === session || session[this.newer] !== undefined
  }

  /** Puts a session last. */
  moveUp(session: Session): void {
    if (this.last === session) return
    this.delete(session)
    session[this.older] = this.last
    if (this.last === undefined) this.first = session
    else this.last[this.newer] = session
    this.last = session
  }

  delete(session: Session): void {
    if (!this.has(session)) return
    const older = session[this.older]
    const newer = session[this.newer]
    if (older === undefined) this.first = newer
    else older[this.newer] = newer
    if (newer === undefined) this.last = older
    else newer[this.older] = older
    session[this.older] = undefined
    session[this.newer] = undefined
  }

  /** The one that nobody has used for longest first; each may be deleted when it comes. */
  *[Symbol.iterator](): Iterator<Session> {
    for (let session = this.first; session !== undefined; ) {
      const next = session[this.newer]
      yield session
      session = next
    }
  }
}
