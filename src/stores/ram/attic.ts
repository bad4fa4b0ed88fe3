import type { Entry, Millis } from '../../domain/entry.ts'
import { isInner, type Key, type Scope } from '../../domain/key.ts'
import { Expiries } from './expiries.ts'
import { folded, type Pack, unfolded } from './fold.ts'
import { Order } from './order.ts'
import type { Body, Session } from './session.ts'
import type { Attic, Filter } from './shelf.ts'
import { sizeOf, sizeOfSession } from './size.ts'

/** A store with a bound on what it takes of the process; what is beyond it is told, so that it can be ended as sessions are. */
export type Bounded = {
  /** While sessions take more than they may: the one that nobody has used for longest, but never the one used last. */
  overflowing(): Key | undefined
  /** Packs away what nobody has used for a while. */
  rest(now: Millis): void
  /** What sessions take, about, and what they may. */
  readonly bytes: { readonly used: number; readonly limit?: number }
}

/** A store that knows at once how many sessions a scope has, those included that are over but not yet gone. */
export type Counted = { sessionsIn(scope: Scope): number }

export type Room = {
  /** What sessions may take together, in bytes; no bound when left out. What belongs to a scope as a whole is not counted. */
  readonly bytes?: number
  /** Packs sessions that nobody uses; without it they stay as they are. */
  readonly pack?: Pack
  /** After how long without use; ten minutes when left out. */
  readonly restAfter?: Millis
  /** What sessions may take together, in bytes, before those that nobody has used for longest are packed at once; 32 MB when left out. */
  readonly awake?: number
}

/** Packing a session that is larger takes so long that nobody should wait for it: it stays as it is until it is at rest. */
const large = 64_000

/** Holds many sessions in little room, and finds those that are over, or of a scope, without looking at the others. */
export class RamAttic implements Attic, Bounded, Counted {
  private readonly room: Room
  private readonly expiries = new Expiries<Session>()
  private readonly scopes = new Map<Scope, Set<Session>>()
  /** How many of them are sessions, not what is kept beside those. */
  private readonly counts = new Map<Scope, number>()
  /** Sessions in the order of their last use: only where there is a bound, for which some may have to go. */
  private readonly used: Order | undefined
  /** The same of all that is not packed, and what those of them take that may be packed at once. */
  private readonly awake = new Order({ older: 'olderAwake', newer: 'newerAwake' })
  private awakeBytes = 0
  /** Who reads in a packed session reads there again at once. */
  private peeked: { readonly session: Session; readonly body: Body } | undefined
  private total = 0

  constructor(room: Room = {}) {
    this.room = room
    this.used = room.bytes === undefined ? undefined : new Order({ older: 'olderUsed', newer: 'newerUsed' })
  }

  begun(session: Session): void {
    const { scope } = session.key
    this.expiries.add(session)
    this.scopes.set(scope, (this.scopes.get(scope) ?? new Set()).add(session))
    this.count(session, 1)
    this.weigh(session, sizeOfSession)
  }

  wrote(session: Session, added: readonly Entry[], gone: readonly Entry[], isUse: boolean): void {
    const bytes = this.unpack(session) ?? session.bytes + sum(added) - sum(gone)
    this.weigh(session, bytes)
    this.expiries.moved(session)
    if (!this.awake.has(session)) {
      this.awakeBytes += lightBytes(session)
      this.awake.moveUp(session)
    } else if (isUse) this.awake.moveUp(session)
    if (this.used !== undefined && isSession(session.key) && (isUse || !this.used.has(session)))
      this.used.moveUp(session)
    this.makeRoom()
  }

  erased(session: Session): void {
    const { scope } = session.key
    const others = this.scopes.get(scope)
    others?.delete(session)
    if (others?.size === 0) this.scopes.delete(scope)
    this.count(session, -1)
    this.expiries.remove(session)
    this.used?.delete(session)
    this.peeked = undefined
    this.weigh(session, 0)
    this.awake.delete(session)
  }

  among({ scope, expiredBy }: Filter): Iterable<Session> {
    if (expiredBy !== undefined) return this.expiries.over(expiredBy)
    return scope === undefined ? this.everyone() : (this.scopes.get(scope) ?? [])
  }

  opened(session: Session): Body {
    if (this.peeked?.session !== session)
      this.peeked = { session, body: unfolded(session.packed as string, this.room.pack as Pack) }
    return this.peeked.body
  }

  sessionsIn(scope: Scope): number {
    return this.counts.get(scope) ?? 0
  }

  overflowing(): Key | undefined {
    const { bytes = Number.POSITIVE_INFINITY } = this.room
    return this.total <= bytes ? undefined : this.used?.oldestOfSome?.key
  }

  get bytes(): Bounded['bytes'] {
    const { bytes: limit } = this.room
    return { used: this.total, ...(limit === undefined ? {} : { limit }) }
  }

  rest(now: Millis): void {
    const { pack, restAfter = 600_000 } = this.room
    if (pack === undefined) return
    for (const session of this.awake) {
      if (session.touchedAt > now - restAfter) return
      this.putAway(session, pack)
    }
  }

  /** Packs what nobody has used for longest, until what is left has room. */
  private makeRoom(): void {
    const { pack, awake = 32_000_000 } = this.room
    if (pack === undefined || this.awakeBytes <= awake) return
    for (const session of this.awake) {
      if (this.awakeBytes <= awake) return
      if (lightBytes(session) > 0) this.putAway(session, pack)
    }
  }

  private putAway(session: Session, pack: Pack): void {
    this.awake.delete(session)
    this.awakeBytes -= lightBytes(session)
    if (session.bytes <= sizeOfSession) return
    session.packed = folded(session.body as Body, pack)
    session.body = undefined
    this.weigh(session, sizeOfSession + session.packed.length)
  }

  private *everyone(): Iterable<Session> {
    for (const sessions of this.scopes.values()) yield* sessions
  }

  /** What a session takes that is no longer packed, as it was just written to; undefined for one that was not. */
  private unpack(session: Session): number | undefined {
    if (session.packed === undefined) return undefined
    session.packed = undefined
    this.peeked = undefined
    const { messages, derived } = session.body as Body
    return sizeOfSession + sum([...messages, ...(derived?.values() ?? [])])
  }

  private count({ key }: Session, more: number): void {
    if (!isSession(key)) return
    const count = this.sessionsIn(key.scope) + more
    if (count === 0) this.counts.delete(key.scope)
    else this.counts.set(key.scope, count)
  }

  private weigh(session: Session, bytes: number): void {
    if (!belongsToScope(session.key)) {
      this.total += bytes - session.bytes
      if (this.awake.has(session)) this.awakeBytes += light(bytes) - light(session.bytes)
    }
    session.bytes = bytes
  }
}

/** What a session counts for among those that may be packed at once: what belongs to a scope is read whenever one of its sessions is used. */
const lightBytes = ({ key, bytes }: Session): number => (belongsToScope(key) ? 0 : light(bytes))
const light = (bytes: number): number => (bytes > large ? 0 : bytes)

function sum(entries: readonly Entry[]): number {
  let bytes = 0
  for (const entry of entries) bytes += sizeOf(entry)
  return bytes
}

const isSession = (key: Key): boolean => key.id !== '' && !isInner(key)
/** Nobody's session: the scope's own memory, its files, what is to be delivered. It does not crowd sessions out. */
const belongsToScope = (key: Key): boolean => key.id === '' || key.id.startsWith(':')
