import type { DerivedEntry, Message } from '../../domain/entry.ts'
import { formatKey, isInScope, type Key, type Scope } from '../../domain/key.ts'
import { LruCache } from '../../domain/lruCache.ts'
import type { PageOptions } from '../../domain/ports.ts'
import { createEmptyHead, findMessageIndex, type SessionHead } from '../../domain/session.ts'
import { estimateDerivedBytes } from '../messageTail.ts'
import type { BatchReader } from './reader.ts'
import {
  type DerivedCells,
  type MessageCells,
  parseDerived,
  parseMessage,
  parseSessionRow,
  type SessionCells,
  type SessionRow,
} from './rows.ts'

/** State of a session as it was read last. */
export type CachedSession = {
  readonly row: SessionRow
  /** The newest messages, without a hole. */
  readonly tail: readonly Message[]
  readonly first: Message | undefined
  readonly lastUser: Message | undefined
  readonly derived: readonly DerivedEntry[]
}

/** Answer to a request for a head. */
type HeadAnswer =
  | { readonly session?: undefined; readonly epoch: number }
  | {
      readonly session: SessionCells
      readonly derived: readonly DerivedCells[] | null
      /** Messages after the cached ones; absent in a complete answer. */
      readonly added?: readonly MessageCells[] | null
      readonly first?: MessageCells | null
      readonly lastUser?: MessageCells | null
      readonly tail?: readonly MessageCells[] | null
    }

const maxTailMessages = 512
/** Messages that a first read of a session gets at least: a context that follows needs no other read. */
const minTailMessages = 64
const maxSessions = 1_000
const defaultMaxBytes = 32_000_000

/**
 * Heads that this process has read. Every read asks the database, which answers with no more than what is newer than
 * the cached state.
 */
export class HeadCache {
  private readonly reader: BatchReader
  private readonly sessions: LruCache<string, CachedSession>
  /** Last states that this process has written. */
  private readonly written = new LruCache<string, Pick<SessionRow, 'id' | 'revision'>>({ maxEntries: maxSessions })
  /** Incremented by each erasure: an answer that was requested before must not be cached. */
  private drops = 0

  constructor(reader: BatchReader, maxBytes = defaultMaxBytes) {
    this.reader = reader
    this.sessions = new LruCache({ maxEntries: maxSessions, maxTotalSize: maxBytes })
  }

  async readHead(key: Key, recent: number, revision?: number): Promise<SessionHead> {
    const cached = this.sessions.get(formatKey(key))
    const known = cached !== undefined && coversRecent(cached, recent) ? cached : undefined
    if (known !== undefined && this.isSince(key, known, revision)) return toHead(key, known, recent)
    const { drops } = this
    const answer = await this.reader.read<HeadAnswer>(key.scope, {
      read: 'head',
      name: key.id,
      recent: known === undefined && recent > 0 ? Math.max(recent, minTailMessages) : recent,
      ...(known !== undefined && { known: describeKnown(known) }),
    })
    if (answer.session === undefined) {
      // Nothing was erased by this read: answers about other sessions that are on their way may be cached.
      this.sessions.delete(formatKey(key))
      return createEmptyHead(key, answer.epoch)
    }
    const session = answer.first === undefined ? applyNews(known as CachedSession, answer) : parseAnswer(answer)
    if (drops === this.drops) this.put(key, session)
    return toHead(key, session, recent)
  }

  /** Returns the cached session if it is at this revision; it was current when that revision was read. */
  peek(key: Key, revision: number): CachedSession | undefined {
    const cached = this.sessions.peek(formatKey(key))
    return cached?.row.revision === revision ? cached : undefined
  }

  /** Returns messages of a range if they are cached and the caller has read the session at this revision. */
  page(key: Key, range: PageOptions): readonly Message[] | undefined {
    const cached = this.sessions.get(formatKey(key))
    return cached !== undefined && this.isSince(key, cached, range.revision) ? sliceTail(cached, range) : undefined
  }

  /** Applies a change of this process. Appended messages need not be read back; other changes have no `messages`. */
  applyWrite(key: Key, row: SessionRow, messages: readonly Message[] | undefined): void {
    const name = formatKey(key)
    const written = this.written.peek(name)
    if (written === undefined || written.id !== row.id || written.revision < row.revision) this.written.set(name, row)
    if (messages === undefined) return
    const cached = this.sessions.peek(name)
    const isNext =
      cached?.row.id === row.id && cached.row.revision + 1 === row.revision && cached.row.removals === row.removals
    if (isNext) this.put(key, extend(cached, row, messages, cached.derived))
    else if (row.revision === 1) this.put(key, startSession(row, messages))
  }

  /** Completes the cached session of this revision with all its messages. */
  adoptTail(key: Key, revision: number, messages: readonly Message[]): void {
    const cached = this.peek(key, revision)
    if (cached !== undefined && cached.row.messageCount === messages.length)
      this.put(key, { ...cached, tail: messages })
  }

  /** Removes a session, which may contain data that was just erased. */
  drop(key: Key): void {
    this.drops++
    this.sessions.delete(formatKey(key))
  }

  dropScope(scope: Scope): void {
    this.drops++
    this.sessions.deleteWhere((name) => isInScope(name, scope))
  }

  clear(): void {
    this.drops++
    this.sessions.clear()
  }

  /** True if the cached state is at least as new as the revision a caller has read and as writes of this process. */
  private isSince(key: Key, { row }: CachedSession, revision: number | undefined): boolean {
    if (revision === undefined || row.revision < revision) return false
    const written = this.written.peek(formatKey(key))
    return written === undefined || (written.id === row.id && written.revision <= row.revision)
  }

  private put(key: Key, session: CachedSession): void {
    const name = formatKey(key)
    const before = this.sessions.peek(name)
    // An answer may arrive after a newer one.
    if (before !== undefined && before.row.id === session.row.id && before.row.revision > session.row.revision) return
    const tail = session.tail.length > 2 * maxTailMessages ? session.tail.slice(-maxTailMessages) : session.tail
    const trimmed = { ...session, tail }
    this.sessions.set(name, trimmed, estimateBytes(trimmed))
  }
}

function describeKnown({ row, tail }: CachedSession): object {
  const { id, removals, revision, derivedVersion, messageCount } = row
  const last = tail.at(-1)?.sequence ?? (messageCount === 0 ? 0 : undefined)
  return { id, removals, revision, derivedVersion, messages: messageCount, ...(last !== undefined && { tail: last }) }
}

/** True if the cached tail, with what was added since, answers a request for the newest messages. */
const coversRecent = ({ tail, row }: CachedSession, recent: number): boolean =>
  tail.length >= recent || tail.length === row.messageCount

type FullAnswer = Extract<HeadAnswer, { readonly session: SessionCells }>

function applyNews(known: CachedSession, { session, added, derived }: FullAnswer): CachedSession {
  const row = parseSessionRow(session)
  return extend(
    known,
    row,
    (added ?? []).map(parseMessage),
    derived === null ? known.derived : derived.map(parseDerived),
  )
}

function parseAnswer({ session, tail, first, lastUser, derived }: FullAnswer): CachedSession {
  return {
    row: parseSessionRow(session),
    tail: (tail ?? []).map(parseMessage),
    first: first ? parseMessage(first) : undefined,
    lastUser: lastUser ? parseMessage(lastUser) : undefined,
    derived: (derived ?? []).map(parseDerived),
  }
}

/** State of a session that its first messages have started. */
const startSession = (row: SessionRow, messages: readonly Message[]): CachedSession => ({
  row,
  tail: messages,
  first: messages[0],
  lastUser: messages.find(({ sequence }) => sequence === row.lastUserSequence),
  derived: [],
})

/** Adds messages after the end of a cached session. */
function extend(
  { tail: cachedTail, first, lastUser, row: before }: CachedSession,
  row: SessionRow,
  added: readonly Message[],
  derived: readonly DerivedEntry[],
): CachedSession {
  const hasTail = cachedTail.length > 0 || before.messageCount === 0
  return {
    row,
    tail: added.length === 0 || !hasTail ? cachedTail : [...cachedTail, ...added],
    first: first ?? added[0],
    lastUser:
      lastUser?.sequence === row.lastUserSequence
        ? lastUser
        : added.find(({ sequence }) => sequence === row.lastUserSequence),
    derived,
  }
}

function toHead(key: Key, { row, tail, first, lastUser, derived }: CachedSession, recent: number): SessionHead {
  const { revision, epoch, startedAt, touchedAt, expiresAt, messageCount, lastSequence, gaps } = row
  return {
    key,
    revision,
    epoch,
    startedAt,
    touchedAt,
    expiresAt,
    messages: messageCount,
    lastSequence,
    gaps,
    firstMessage: first,
    lastUserMessage: lastUser,
    recent: recent <= 0 ? [] : tail.slice(-recent),
    derived,
  }
}

/** Returns the messages after a number if the cached tail has all of them. */
export function messagesAfter({ tail, row }: CachedSession, after: number): readonly Message[] | undefined {
  const isComplete = tail.length === row.messageCount || (tail[0] !== undefined && tail[0].sequence <= after + 1)
  return isComplete ? tail.slice(findMessageIndex(tail, after + 1)) : undefined
}

/** Returns a range of messages if the cached tail has all of it. */
function sliceTail(
  session: CachedSession,
  { after = 0, before = Number.MAX_SAFE_INTEGER, limit, newest = false }: PageOptions,
): readonly Message[] | undefined {
  const { tail } = session
  const [from, to] = [findMessageIndex(tail, after + 1), findMessageIndex(tail, before)]
  const isComplete = messagesAfter(session, after) !== undefined || (newest && to - from >= limit)
  if (!isComplete) return undefined
  return newest ? tail.slice(Math.max(from, to - limit), to) : tail.slice(from, Math.min(to, from + limit))
}

/** Estimated size of a message besides its text. */
const messageOverheadBytes = 200

const estimateBytes = ({ tail, first, lastUser, derived }: CachedSession): number =>
  [...tail, first, lastUser].reduce(
    (bytes, message) => bytes + (message === undefined ? 0 : messageOverheadBytes + textLength(message)),
    estimateDerivedBytes(derived),
  )

const textLength = ({ content, packedPayload = '', toolCalls = [] }: Message): number =>
  toolCalls.reduce(
    (length, { name, arguments: text }) => length + name.length + text.length,
    content.length + packedPayload.length,
  )
