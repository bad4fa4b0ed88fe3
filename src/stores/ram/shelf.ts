import { type Derived, type Entry, isBlank, type Message, type Millis, messageId, sequenceOf } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { Changes, Erasure, Range, Store, Where } from '../../domain/ports.ts'
import { type Change, emptyHead, type Gap, type Head, isExpired, type Listed, placeOf, withGap, withGaps } from '../../domain/session.ts'

/** Everything kept of one session. */
type Session = {
  readonly key: Key
  revision: number
  startedAt: Millis
  touchedAt: Millis
  expiresAt: Millis
  /** In order of their sequence numbers. */
  messages: Message[]
  last: number
  weight: number
  gaps: readonly Gap[]
  asked: Message | undefined
  readonly derived: Map<string, Derived>
  /** The first and last message of each change, so that the same change twice is once. */
  readonly done: Map<string, readonly [first: number, last: number]>
  /** When it was last changed, on the shelf's own count. */
  stamp: number
  /** How often entries went. */
  removals: number
}

/** Sessions in the memory of this process and nowhere else. Synchronous; `ramStore` is its face as a store. */
export class RamShelf {
  private readonly sessions = new Map<string, Session>()
  private readonly epochs = new Map<string, number>()
  /** How often something went, by scope. */
  private readonly removals = new Map<string, number>()
  private stamp = 0

  head(key: Key, recent: number): Head {
    const name = formatKey(key)
    const session = this.sessions.get(name)
    const epoch = this.epochs.get(name) ?? 0
    if (session === undefined) return emptyHead(key, epoch)
    const { revision, startedAt, touchedAt, expiresAt, messages, last, gaps, asked, derived } = session
    const shown = recent <= 0 ? [] : messages.slice(-recent)
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
      recent: shown,
      derived: [...derived.values()],
    }
  }

  page(key: Key, { after = 0, before = Number.POSITIVE_INFINITY, limit, newest = false }: Range): readonly Message[] {
    const messages = this.sessions.get(formatKey(key))?.messages ?? []
    const from = placeOf(messages, after + 1)
    const to = placeOf(messages, before)
    return newest ? messages.slice(Math.max(from, to - limit), to) : messages.slice(from, Math.min(to, from + limit))
  }

  commit(change: Change): readonly Message[] {
    const name = formatKey(change.key)
    if (change.epoch !== (this.epochs.get(name) ?? 0)) {
      throw new MemoryError(
        'erased',
        `Session ${name} was forgotten while this was being written; nothing was stored. Read it again and repeat if it is still wanted.`,
      )
    }
    const session = this.sessions.get(name)
    const before = change.id === undefined ? undefined : session?.done.get(change.id)
    if (before !== undefined) return this.page(change.key, { after: before[0] - 1, before: before[1] + 1, limit: before[1] - before[0] + 1 })
    if (change.base !== undefined && change.base !== (session?.revision ?? 0)) {
      throw new MemoryError('conflict', `Session ${name} is at revision ${session?.revision ?? 0}, not ${change.base}. Read it again and decide again.`)
    }
    if (change.from !== undefined && change.from.sequence <= (session?.last ?? 0)) {
      throw new MemoryError('conflict', `The next message of ${name} cannot be number ${change.from.sequence}: it has ${session?.last ?? 0} already.`)
    }
    return this.apply(session ?? this.begin(name, change), change)
  }

  list({ scope, expiredBy, after = '', limit }: Parameters<Store['list']>[0]): readonly Listed[] {
    const [afterScope = '', afterId = ''] = after.split(/:(.*)/s)
    const chosen: Listed[] = []
    for (const session of this.sessions.values()) {
      const { key, startedAt, touchedAt, expiresAt, messages } = session
      if (!isAfter(key, { scope: afterScope, id: afterId }) || (scope !== undefined && key.scope !== scope)) continue
      if (expiredBy !== undefined && !isExpired(session, expiredBy)) continue
      chosen.push({ key, startedAt, touchedAt, expiresAt, messages: messages.length })
    }
    return chosen.sort((a, b) => (isAfter(a.key, b.key) ? 1 : -1)).slice(0, limit)
  }

  erase(key: Key, only?: Erasure): readonly string[] {
    const name = formatKey(key)
    const session = this.sessions.get(name)
    if (only !== undefined && 'remains' in only) return []
    if (only !== undefined && 'entries' in only) return session === undefined ? [] : this.eraseEntries(session, only.entries)
    if (only !== undefined && (session === undefined || !isExpired(session, only.expiredBy))) return []
    this.sessions.delete(name)
    this.removed(key.scope)
    this.epochs.set(name, (this.epochs.get(name) ?? 0) + 1)
    return session === undefined ? [] : [...session.messages.map((message) => message.id), ...session.derived.keys()]
  }

  private eraseEntries(session: Session, entries: readonly string[]): readonly string[] {
    const gone = [...new Set(entries)].filter((id) => session.derived.has(id) || found(session, id) !== undefined)
    this.remove(session, gone)
    // Also if nothing went: whoever has read the session before may know what should be forgotten.
    session.revision++
    session.stamp = ++this.stamp
    return gone
  }

  changes({ scope, id }: Where, since: number): Changes {
    if (id === undefined) {
      const sessions = [...this.sessions.values()].filter(({ key, stamp }) => key.scope === scope && stamp > since).map(({ key }) => key)
      return { stamp: this.stamp, lineage: `${this.removals.get(scope) ?? 0}`, sessions }
    }
    const name = id === '' ? scope : `${scope}:${id}`
    const session = this.sessions.get(name)
    const lineage = `${this.epochs.get(name) ?? 0}.${session?.removals ?? 0}`
    return { stamp: this.stamp, lineage, sessions: session !== undefined && session.stamp > since ? [session.key] : [] }
  }

  /** What was found, most of it in the same session. */
  found(places: readonly { readonly key: Key; readonly id: string; readonly sequence: number }[]): (Entry | undefined)[] {
    let [last, session]: [Key | undefined, Session | undefined] = [undefined, undefined]
    return places.map(({ key, id, sequence }) => {
      if (key !== last) [last, session] = [key, this.sessions.get(formatKey(key))]
      if (session === undefined || sequence === 0) return session?.derived.get(id)
      const message = session.messages[placeOf(session.messages, sequence)]
      return message?.sequence === sequence ? message : undefined
    })
  }

  entry(key: Key, id: string): Entry | undefined {
    const session = this.sessions.get(formatKey(key))
    return session === undefined ? undefined : (session.derived.get(id) ?? found(session, id))
  }

  /** Every entry, by session in order of their keys. */
  *entries(from = ''): Iterable<{ readonly key: Key; readonly name: string; readonly epoch: number; readonly all: readonly Entry[] }> {
    for (const name of [...this.sessions.keys()].filter((one) => one >= from).sort()) {
      const { key, messages, derived } = this.sessions.get(name) as Session
      yield { key, name, epoch: this.epochs.get(name) ?? 0, all: [...messages, ...derived.values()] }
    }
  }

  clear(): void {
    for (const session of [...this.sessions.values()]) this.erase(session.key)
  }

  private begin(name: string, { key, at, expiresAt }: Change): Session {
    const session: Session = {
      key,
      revision: 0,
      startedAt: at,
      touchedAt: at,
      expiresAt,
      messages: [],
      last: 0,
      weight: 0,
      gaps: [],
      asked: undefined,
      derived: new Map(),
      done: new Map(),
      stamp: 0,
      removals: 0,
    }
    this.sessions.set(name, session)
    return session
  }

  private apply(session: Session, change: Change): readonly Message[] {
    if (change.from !== undefined) skipTo(session, change.from)
    const added = change.append.map((said): Message => {
      const sequence = ++session.last
      const message: Message = Object.freeze({ ...said, kind: 'message', id: messageId(sequence), sequence, offset: session.weight })
      session.weight += said.weight
      if (message.role === 'user' && !isBlank(message.content)) session.asked = message
      return message
    })
    for (const message of added) session.messages.push(message)
    for (const entry of change.put) session.derived.set(entry.id, entry)
    this.remove(session, change.drop)
    session.revision++
    session.stamp = ++this.stamp
    session.touchedAt = change.at
    session.expiresAt = change.expiresAt
    if (change.id !== undefined) session.done.set(change.id, [session.last - added.length + 1, session.last])
    if (session.done.size > remembered) session.done.delete(session.done.keys().next().value as string)
    return added
  }

  private remove(session: Session, ids: readonly string[]): void {
    const gone = new Set(ids.filter((id) => found(session, id) !== undefined).map((id) => sequenceOf(id) as number))
    let any = gone.size > 0
    for (const id of ids) any = session.derived.delete(id) || any
    if (!any) return
    session.removals++
    this.removed(session.key.scope)
    session.messages = session.messages.filter((message) => !gone.has(message.sequence))
    for (const sequence of gone) session.gaps = withGap(session.gaps, sequence)
    if (session.asked !== undefined && gone.has(session.asked.sequence)) {
      session.asked = session.messages.findLast((message) => message.role === 'user' && !isBlank(message.content))
    }
  }

  private removed(scope: string): void {
    this.removals.set(scope, (this.removals.get(scope) ?? 0) + 1)
    this.stamp++
  }
}

/** How many answers to changes are kept for a change that comes again. */
const remembered = 1_000

/** Leaves a gap up to where the next message stands. */
function skipTo(session: Session, { sequence, offset }: NonNullable<Change['from']>): void {
  session.gaps = withGaps(session.gaps, session.last + 1, sequence - 1)
  session.last = sequence - 1
  session.weight = offset
}

const isAfter = (key: Where, other: Where): boolean => (key.scope === other.scope ? (key.id ?? '') > (other.id ?? '') : key.scope > other.scope)

function found(session: Session, id: string): Message | undefined {
  const sequence = sequenceOf(id)
  const message = sequence === undefined ? undefined : session.messages[placeOf(session.messages, sequence)]
  return message?.sequence === sequence ? message : undefined
}
