import type { Entry, Message, Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key, type Scope } from '../../domain/key.ts'
import type { Changes, Erasure, Range, Store, Where } from '../../domain/ports.ts'
import { type Change, emptyHead, type Head, isExpired, type Listed, placeOf } from '../../domain/session.ts'
import { append, at, type Body, begun, put, remove, type Session } from './session.ts'

/**
 * Finds sessions without looking at all of them, keeps count of what they take, and packs away what nobody uses. A shelf
 * does without one where it holds few sessions: looking at a hundred costs less than the code that need not.
 */
export interface Attic {
  begun(session: Session): void
  /** Hears of a session that was written to: what is new in it, what went, and whether that was a use of it. */
  wrote(session: Session, added: readonly Entry[], gone: readonly Entry[], isUse: boolean): void
  erased(session: Session): void
  /** At least the sessions of a scope, or those that are over. */
  among(filter: Filter): Iterable<Session>
  /** What is in a session that is packed away. */
  opened(session: Session): Body
}

export type Filter = { readonly scope?: Scope | undefined; readonly expiredBy?: Millis | undefined }

/** Sessions in the memory of this process and nowhere else. Synchronous; `ramStore` is its face as a store. */
export class RamShelf {
  private readonly attic: Attic | undefined
  private readonly sessions = new Map<string, Session>()
  private readonly epochs = new Map<string, number>()
  /** How often something went, by scope. */
  private readonly removals = new Map<string, number>()
  private stamp = 0

  constructor(attic?: Attic) {
    this.attic = attic
  }

  head(key: Key, recent: number): Head {
    const name = formatKey(key)
    const session = this.sessions.get(name)
    if (session === undefined) return emptyHead(key, this.epochOf(name))
    const { revision, epoch, startedAt, touchedAt, expiresAt, last } = session
    const { messages, gaps, asked, derived } = this.bodyOf(session)
    return {
      key,
      revision,
      epoch,
      startedAt,
      touchedAt,
      expiresAt,
      messages: messages.length,
      last,
      gaps,
      first: messages[0],
      asked,
      recent: recent <= 0 ? none : messages.slice(-recent),
      derived: derived === undefined ? none : [...derived.values()],
    }
  }

  page(key: Key, { after = 0, before = Number.POSITIVE_INFINITY, limit, newest = false }: Range): readonly Message[] {
    const session = this.sessions.get(formatKey(key))
    if (session === undefined) return []
    const { messages } = this.bodyOf(session)
    const from = placeOf(messages, after + 1)
    const to = placeOf(messages, before)
    return newest ? messages.slice(Math.max(from, to - limit), to) : messages.slice(from, Math.min(to, from + limit))
  }

  commit(change: Change): readonly Message[] {
    const name = formatKey(change.key)
    const session = this.sessions.get(name)
    if (change.epoch !== (session?.epoch ?? this.epochOf(name))) {
      throw new MemoryError(
        'erased',
        `Session ${name} was forgotten while this was being written; nothing was stored. Read it again and repeat if it is still wanted.`,
      )
    }
    const before =
      session === undefined || change.id === undefined ? undefined : this.bodyOf(session).done?.get(change.id)
    if (before !== undefined)
      return this.page(change.key, { after: before[0] - 1, before: before[1] + 1, limit: before[1] - before[0] + 1 })
    const { revision = 0, last = 0 } = session ?? {}
    if (change.base !== undefined && change.base !== revision) {
      throw new MemoryError(
        'conflict',
        `Session ${name} is at revision ${revision}, not ${change.base}. Read it again and decide again.`,
      )
    }
    if (change.from !== undefined && change.from.sequence <= last) {
      throw new MemoryError(
        'conflict',
        `The next message of ${name} cannot be number ${change.from.sequence}: it has ${last} already.`,
      )
    }
    return this.apply(session ?? this.begin(name, change), change)
  }

  list({ scope, expiredBy, after = '', limit }: Parameters<Store['list']>[0]): readonly Listed[] {
    const [afterScope = '', id = ''] = after.split(/:(.*)/s)
    const start = { scope: afterScope, id }
    const chosen: Listed[] = []
    for (const session of this.among({ scope, expiredBy })) {
      const { key, startedAt, touchedAt, expiresAt, count } = session
      if (!isAfter(key, start) || (scope !== undefined && key.scope !== scope)) continue
      if (expiredBy !== undefined && !isExpired(session, expiredBy)) continue
      chosen.push({ key, startedAt, touchedAt, expiresAt, messages: count })
    }
    return chosen.sort((a, b) => (isAfter(a.key, b.key) ? 1 : -1)).slice(0, limit)
  }

  erase(key: Key, only?: Erasure): readonly string[] {
    const name = formatKey(key)
    const session = this.sessions.get(name)
    if (only !== undefined && 'remains' in only) return []
    if (only !== undefined && 'entries' in only)
      return session === undefined ? [] : this.eraseEntries(session, only.entries)
    if (only !== undefined && (session === undefined || !isExpired(session, only.expiredBy))) return []
    this.removed(key.scope)
    this.epochs.set(name, this.epochOf(name) + 1)
    if (session === undefined) return []
    const { messages, derived } = this.bodyOf(session)
    this.sessions.delete(name)
    this.attic?.erased(session)
    return [...messages.map((message) => message.id), ...(derived?.keys() ?? [])]
  }

  private eraseEntries(session: Session, entries: readonly string[]): readonly string[] {
    const gone = remove(session, this.unpacked(session), entries)
    if (gone.length > 0) this.removed(session.key.scope)
    // Also if nothing went: whoever has read the session before may know what should be forgotten.
    this.changed(session, [], gone, false)
    return gone.map(({ id }) => id)
  }

  changes({ scope, id }: Where, since: number): Changes {
    if (id === undefined) {
      const sessions = [...this.among({ scope })]
        .filter(({ key, stamp }) => key.scope === scope && stamp > since)
        .map(({ key }) => key)
      return { stamp: this.stamp, lineage: `${this.removals.get(scope) ?? 0}`, sessions }
    }
    const name = formatKey({ scope, id })
    const session = this.sessions.get(name)
    const lineage = `${this.epochOf(name)}.${session?.removals ?? 0}`
    return { stamp: this.stamp, lineage, sessions: session !== undefined && session.stamp > since ? [session.key] : [] }
  }

  /** What was found, most of it in the same session. */
  found(
    places: readonly { readonly key: Key; readonly id: string; readonly sequence: number }[],
  ): (Entry | undefined)[] {
    return places.map(({ key, id, sequence }) => {
      const session = this.sessions.get(formatKey(key))
      const body = session && this.bodyOf(session)
      return body && (sequence === 0 ? body.derived?.get(id) : at(body, sequence))
    })
  }

  clear(): void {
    for (const session of [...this.sessions.values()]) this.erase(session.key)
  }

  private begin(name: string, change: Change): Session {
    const session = begun(change)
    this.sessions.set(name, session)
    this.attic?.begun(session)
    return session
  }

  private apply(session: Session, change: Change): readonly Message[] {
    const body = this.unpacked(session)
    const added = append(session, body, change)
    const replaced = put(body, change.put)
    const gone = remove(session, body, change.drop)
    if (gone.length > 0) this.removed(session.key.scope)
    // What upkeep writes bears the time of the last use, and is none.
    const isUse = added.length > 0 || change.at > session.touchedAt
    session.touchedAt = change.at
    session.expiresAt = change.expiresAt
    this.changed(session, both(added, change.put), both(replaced, gone), isUse)
    return added
  }

  private changed(session: Session, added: readonly Entry[], gone: readonly Entry[], isUse: boolean): void {
    session.revision++
    session.stamp = ++this.stamp
    this.attic?.wrote(session, added, gone, isUse)
  }

  /** How often a session was erased: those that are there know it themselves. */
  private epochOf(name: string): number {
    return this.epochs.get(name) ?? 0
  }

  private among(filter: Filter): Iterable<Session> {
    return this.attic?.among(filter) ?? this.sessions.values()
  }

  /** What is in a session, which stays packed if it is. */
  private bodyOf(session: Session): Body {
    return session.body ?? (this.attic as Attic).opened(session)
  }

  /** What is in a session that is about to change. */
  private unpacked(session: Session): Body {
    session.body ??= this.bodyOf(session)
    return session.body
  }

  private removed(scope: string): void {
    this.removals.set(scope, (this.removals.get(scope) ?? 0) + 1)
    this.stamp++
  }
}

/** What most sessions have of most things. */
const none: readonly never[] = []

/** Two lists as one; that they are copied is seldom needed. */
const both = (some: readonly Entry[], more: readonly Entry[]): readonly Entry[] =>
  more.length === 0 ? some : [...some, ...more]

type Halves = Pick<Key, 'scope' | 'id'>
const isAfter = (key: Halves, other: Halves): boolean =>
  key.scope === other.scope ? key.id > other.id : key.scope > other.scope
