import { type Derived, isBlank, type Message, type Millis, messageId, sequenceOf } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Erasure, Hit, Index, Query, Range, Store } from '../domain/ports.ts'
import { type Change, emptyHead, type Gap, type Head, isExpired, type Listed, placeOf, withGap } from '../domain/session.ts'
import { SessionIndex } from '../recall/score.ts'

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
  /** What each change answered, so that the same change twice is once. */
  readonly done: Map<string, readonly Message[]>
  index: SessionIndex | undefined
}

/** Sessions in the memory of this process and nowhere else. Synchronous; `ramStore` is its face as a store. */
export class RamShelf {
  private readonly sessions = new Map<string, Session>()
  private readonly epochs = new Map<string, number>()

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
    const before = session?.done.get(change.id)
    if (before !== undefined) return before
    if (change.base !== undefined && change.base !== (session?.revision ?? 0)) {
      throw new MemoryError('conflict', `Session ${name} is at revision ${session?.revision ?? 0}, not ${change.base}. Read it again and decide again.`)
    }
    return apply(session ?? this.begin(name, change), change)
  }

  list({ scope, expiredBy, after = '', limit }: Parameters<Store['list']>[0]): readonly Listed[] {
    const chosen: (Listed & { name: string })[] = []
    for (const [name, session] of this.sessions) {
      if (name <= after || (scope !== undefined && session.key.scope !== scope)) continue
      if (expiredBy !== undefined && !isExpired(session, expiredBy)) continue
      const { key, startedAt, touchedAt, expiresAt, messages } = session
      chosen.push({ name, key, startedAt, touchedAt, expiresAt, messages: messages.length })
    }
    chosen.sort((a, b) => (a.name < b.name ? -1 : 1))
    return chosen.slice(0, limit).map(({ name: _, ...listed }) => listed)
  }

  erase(key: Key, only?: Erasure): readonly string[] {
    const name = formatKey(key)
    const session = this.sessions.get(name)
    if (only !== undefined && 'entries' in only) return session === undefined ? [] : this.eraseEntries(session, only.entries)
    if (only !== undefined && (session === undefined || !isExpired(session, only.expiredBy))) return []
    this.sessions.delete(name)
    this.epochs.set(name, (this.epochs.get(name) ?? 0) + 1)
    return session === undefined ? [] : [...session.messages.map((message) => message.id), ...session.derived.keys()]
  }

  private eraseEntries(session: Session, entries: readonly string[]): readonly string[] {
    const gone = entries.filter((id) => session.derived.has(id) || has(session, id))
    remove(session, gone)
    if (gone.length > 0) {
      // answers to earlier changes hold what was just forgotten
      for (const [id, messages] of session.done)
        session.done.set(
          id,
          messages.filter((message) => !gone.includes(message.id)),
        )
      session.revision++
    }
    return gone
  }

  search(key: Key, query: Query): readonly Hit[] {
    const session = this.sessions.get(formatKey(key))
    if (session === undefined || (query.kinds !== undefined && !query.kinds.includes('message'))) return []
    session.index ??= new SessionIndex()
    for (let at = placeOf(session.messages, session.index.reached + 1); at < session.messages.length; at++) session.index.add(session.messages[at] as Message)
    const { before = Number.POSITIVE_INFINITY, from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY, limit } = query
    return session.index.rank(query.text, { before, from, to, most: limit }).map(({ message, score, why }) => ({ entry: message, score, why }))
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
      index: undefined,
    }
    this.sessions.set(name, session)
    return session
  }
}

/** How many answers to changes are kept for a change that comes again. */
const remembered = 1_000

function apply(session: Session, change: Change): readonly Message[] {
  const added = change.append.map((said): Message => {
    const sequence = ++session.last
    const message: Message = Object.freeze({ ...said, kind: 'message', id: messageId(sequence), sequence, offset: session.weight })
    session.weight += said.weight
    if (message.role === 'user' && !isBlank(message.content)) session.asked = message
    return message
  })
  for (const message of added) session.messages.push(message)
  for (const entry of change.put) session.derived.set(entry.id, entry)
  remove(session, change.drop)
  session.revision++
  session.touchedAt = change.at
  session.expiresAt = change.expiresAt
  session.done.set(change.id, added)
  if (session.done.size > remembered) session.done.delete(session.done.keys().next().value as string)
  return added
}

function has(session: Session, id: string): boolean {
  const sequence = sequenceOf(id)
  return sequence !== undefined && session.messages[placeOf(session.messages, sequence)]?.sequence === sequence
}

function remove(session: Session, ids: readonly string[]): void {
  const gone = new Set(ids.filter((id) => has(session, id)).map((id) => sequenceOf(id) as number))
  for (const id of ids) session.derived.delete(id)
  if (gone.size === 0) return
  session.messages = session.messages.filter((message) => !gone.has(message.sequence))
  for (const sequence of gone) session.gaps = withGap(session.gaps, sequence)
  if (session.asked !== undefined && gone.has(session.asked.sequence)) {
    session.asked = session.messages.findLast((message) => message.role === 'user' && !isBlank(message.content))
  }
  session.index = undefined
}

/**
 * The reference store: sessions in RAM, gone with the process.
 *
 * @example
 * const memory = await openMemory({ store: ramStore() })
 */
export function ramStore(shelf = new RamShelf()): Store & Index {
  return {
    durability: 'ram',
    head: async (key, recent) => shelf.head(key, recent),
    page: async (key, range) => shelf.page(key, range),
    commit: async (change) => shelf.commit(change),
    list: async (filter) => shelf.list(filter),
    erase: async (key, only) => shelf.erase(key, only),
    search: async (key, query) => shelf.search(key, query),
    close: async () => shelf.clear(),
  }
}
