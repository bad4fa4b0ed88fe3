import type { Derived, Entry, Message, Millis } from '../../domain/entry.ts'
import { isInner, type Key, type Scope } from '../../domain/key.ts'
import type { Gap } from '../../domain/session.ts'
import { Expiries } from './expiries.ts'
import { type Body, isQuestion, type Session } from './session.ts'
import type { Attic, Filter } from './shelf.ts'
import { sizeOf, sizeOfSession } from './size.ts'

/** Makes bytes fewer, and the same again. */
export type Pack = { pack(bytes: Uint8Array): Uint8Array; unpack(bytes: Uint8Array): Uint8Array }

/** A store with a bound on what it takes of the process; what is beyond it is told, so that it can be ended as sessions are. */
export type Bounded = {
  /** While sessions take more than they may: the one that nobody has used for longest, but never the one used last. */
  overflowing(): Key | undefined
  /** Packs away what nobody has used for a while. */
  rest(now: Millis): void
  /** What sessions take, about, and what they may. */
  readonly bytes: { readonly used: number; readonly limit?: number }
}

export type Room = {
  /** What sessions may take together, in bytes; no bound when left out. What belongs to a scope as a whole is not counted. */
  readonly bytes?: number
  /** Packs sessions that nobody uses; without it they stay as they are. */
  readonly pack?: Pack
  /** After how long without use; ten minutes when left out. */
  readonly restAfter?: Millis
}

/** Holds many sessions in little room, and finds those that are over, or of a scope, without looking at the others. */
export class RamAttic implements Attic, Bounded {
  private readonly room: Room
  private readonly expiries = new Expiries<Session>()
  private readonly scopes = new Map<Scope, Set<Session>>()
  /** Sessions in the order of their last use. */
  private readonly used = new Set<Session>()
  /** The same of all that is not packed. */
  private readonly awake = new Set<Session>()
  private readonly packed = new Map<Session, Uint8Array>()
  /** Who reads in a packed session reads there again at once. */
  private peeked: { readonly session: Session; readonly body: Body } | undefined
  private total = 0

  constructor(room: Room = {}) {
    this.room = room
  }

  begun(session: Session): void {
    const { scope } = session.key
    this.expiries.add(session)
    this.scopes.set(scope, (this.scopes.get(scope) ?? new Set()).add(session))
    this.weigh(session, sizeOfSession)
  }

  wrote(session: Session, added: readonly Entry[], gone: readonly Entry[], isUse: boolean): void {
    const bytes = this.unpack(session) ?? session.bytes + sum(added) - sum(gone)
    this.weigh(session, bytes)
    this.expiries.moved(session)
    for (const order of isSession(session.key) ? [this.used, this.awake] : [this.awake]) {
      if (isUse) order.delete(session)
      order.add(session)
    }
  }

  erased(session: Session): void {
    const { scope } = session.key
    const others = this.scopes.get(scope)
    others?.delete(session)
    if (others?.size === 0) this.scopes.delete(scope)
    this.expiries.remove(session)
    this.used.delete(session)
    this.awake.delete(session)
    this.packed.delete(session)
    this.peeked = undefined
    this.weigh(session, 0)
  }

  among({ scope, expiredBy }: Filter): Iterable<Session> {
    if (expiredBy !== undefined) return this.expiries.over(expiredBy)
    return scope === undefined ? this.everyone() : (this.scopes.get(scope) ?? [])
  }

  opened(session: Session): Body {
    if (this.peeked?.session !== session) this.peeked = { session, body: this.read(session) }
    return this.peeked.body
  }

  overflowing(): Key | undefined {
    const { bytes = Number.POSITIVE_INFINITY } = this.room
    const [oldest] = this.total > bytes && this.used.size > 1 ? this.used : []
    return oldest?.key
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
      this.awake.delete(session)
      if (session.bytes > sizeOfSession) this.putAway(session, pack)
    }
  }

  private putAway(session: Session, { pack }: Pack): void {
    const bytes = pack(new TextEncoder().encode(written(session.body as Body)))
    this.packed.set(session, bytes)
    session.body = undefined
    this.weigh(session, sizeOfSession + bytes.byteLength)
  }

  private *everyone(): Iterable<Session> {
    for (const sessions of this.scopes.values()) yield* sessions
  }

  private read(session: Session): Body {
    const bytes = this.room.pack?.unpack(this.packed.get(session) as Uint8Array)
    return bodyOf(new TextDecoder().decode(bytes))
  }

  /** What a session takes that is no longer packed, as it was just written to; undefined for one that was not. */
  private unpack(session: Session): number | undefined {
    if (!this.packed.delete(session)) return undefined
    this.peeked = undefined
    const { messages, derived } = session.body as Body
    return sizeOfSession + sum([...messages, ...(derived?.values() ?? [])])
  }

  private weigh(session: Session, bytes: number): void {
    if (!belongsToScope(session.key)) this.total += bytes - session.bytes
    session.bytes = bytes
  }
}

const sum = (entries: readonly Entry[]): number => entries.reduce((bytes, entry) => bytes + sizeOf(entry), 0)

const isSession = (key: Key): boolean => key.id !== '' && !isInner(key)
/** Nobody's session: the scope's own memory, its files, what is to be delivered. It does not crowd sessions out. */
const belongsToScope = (key: Key): boolean => key.id === '' || key.id.startsWith(':')

type Written = {
  readonly messages: Message[]
  readonly gaps: readonly Gap[]
  readonly derived: readonly Derived[]
  readonly done: readonly (readonly [id: string, run: readonly [first: number, last: number]])[]
}

const written = ({ messages, gaps, derived, done }: Body): string =>
  JSON.stringify({ messages, gaps, derived: [...(derived?.values() ?? [])], done: [...(done ?? [])] } satisfies Written)

function bodyOf(text: string): Body {
  const { messages, gaps, derived, done } = JSON.parse(text) as Written
  for (const message of messages) Object.freeze(message)
  return {
    messages,
    gaps,
    asked: messages.findLast(isQuestion),
    derived: derived.length === 0 ? undefined : new Map(derived.map((entry) => [entry.id, entry])),
    done: done.length === 0 ? undefined : new Map(done),
  }
}
