import type { DerivedEntry, Message } from '../../domain/entry.ts'
import { formatKey, isInScope, type Key, type Scope } from '../../domain/key.ts'
import { LruCache } from '../../domain/lruCache.ts'
import type { PageOptions } from '../../domain/ports.ts'
import { findMessageIndex, type SessionChange, type SessionHead } from '../../domain/session.ts'
import { estimateDerivedBytes, estimateMessageBytes, sliceTail } from '../messageTail.ts'
import { putEntries } from '../putEntries.ts'
import { createMessage } from '../ram/session.ts'
import type { SessionRow } from './rows.ts'

/** State of a session at one revision. */
export type CachedSession = {
  readonly row: SessionRow
  /** The newest messages, without a hole. */
  readonly tail: readonly Message[]
  readonly first: Message | undefined
  readonly lastUserMessage: Message | undefined
  readonly derived: readonly DerivedEntry[]
}

/** Messages of a session that are kept; more are read on demand. */
export const maxTailMessages = 512
const maxSessions = 10_000

/**
 * Sessions that this process has read. Redis compares revisions on every read and sends only what is newer; a caller
 * that names the revision it has just read is answered without asking.
 */
export class SessionCache {
  readonly #sessions: LruCache<string, CachedSession>
  /** Highest revision that this process knows to exist, of sessions whose cached state is older. */
  readonly #outdated = new LruCache<string, Pick<SessionRow, 'epoch' | 'revision'>>({ maxEntries: maxSessions })

  constructor(maxBytes: number) {
    this.#sessions = new LruCache({ maxEntries: maxSessions, maxTotalSize: maxBytes })
  }

  /** Estimated size. */
  get bytes(): number {
    return this.#sessions.totalSize
  }

  get(key: Key): CachedSession | undefined {
    return this.#sessions.get(formatKey(key))
  }

  /** Returns the session if it is at least as new as a revision and as this process's own writes. */
  getSince(key: Key, revision: number): CachedSession | undefined {
    const session = this.get(key)
    if (session === undefined || session.row.revision < revision) return undefined
    const known = this.#outdated.peek(formatKey(key))
    return known !== undefined && known.epoch === session.row.epoch && known.revision > session.row.revision
      ? undefined
      : session
  }

  /** Stores what was read, unless a newer state is there. */
  set(key: Key, session: CachedSession): void {
    const name = formatKey(key)
    const current = this.#sessions.peek(name)
    if (current !== undefined && isNewer(current.row, session.row)) return
    this.#sessions.set(name, session, estimateBytes(session))
  }

  /** Applies a change that this process has committed, so that it need not be read back. */
  applyCommit(key: Key, change: SessionChange, row: SessionRow, stored: readonly Message[]): void {
    const current = this.get(key)
    const isNext = current?.row.epoch === row.epoch && current.row.revision + 1 === row.revision
    const session =
      current === undefined
        ? startSession(change, row, stored)
        : isNext
          ? applyChange(current, change, row, stored)
          : undefined
    if (session !== undefined) this.set(key, session)
    else this.setLatest(key, row)
  }

  /** Notes that a session has reached a revision that is not cached. */
  setLatest(key: Key, latest: Pick<SessionRow, 'epoch' | 'revision'>): void {
    this.#outdated.set(formatKey(key), latest)
  }

  drop(key: Key): void {
    this.#sessions.delete(formatKey(key))
  }

  dropScope(scope: Scope): void {
    this.#sessions.deleteWhere((name) => isInScope(name, scope))
  }

  clear(): void {
    this.#sessions.clear()
    this.#outdated.clear()
  }
}

const isNewer = (row: SessionRow, other: SessionRow): boolean =>
  row.epoch === other.epoch ? row.revision > other.revision : row.epoch > other.epoch

/** True if the newest messages include the `recent` newest ones. */
export const hasRecent = ({ tail, row }: CachedSession, recent: number): boolean =>
  tail.length >= recent || tail.length === row.messageCount

export const sliceCached = ({ tail, row }: CachedSession, range: PageOptions): readonly Message[] | undefined =>
  sliceTail({ tail, messageCount: row.messageCount }, range)

export function buildHead(key: Key, { row, tail, first, lastUserMessage, derived }: CachedSession, recent: number) {
  const { revision, epoch, startedAt, touchedAt, expiresAt, messageCount, lastSequence, gaps } = row
  const head: SessionHead = {
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
    lastUserMessage,
    recent: recent <= 0 ? [] : tail.slice(-recent),
    derived,
  }
  return head
}

/** Adds newer messages to a known state; `derived` replaces the known entries if it is given. */
export function continueSession(
  known: CachedSession,
  row: SessionRow,
  messages: readonly Message[],
  derived = known.derived,
): CachedSession {
  const tail = trim([...known.tail, ...messages])
  return {
    row,
    tail,
    first: known.first ?? tail[0],
    lastUserMessage: findBySequence(tail, row.lastUserSequence) ?? known.lastUserMessage,
    derived,
  }
}

/** State of a session that a change has started. */
function startSession(
  { put, drop }: SessionChange,
  row: SessionRow,
  stored: readonly Message[],
): CachedSession | undefined {
  if (row.revision !== 1 || drop.length > 0) return undefined
  return {
    row,
    tail: stored,
    first: stored[0],
    lastUserMessage: findBySequence(stored, row.lastUserSequence),
    derived: putEntries([], put),
  }
}

/** Applies a change to a known state. Undefined if the state lacks messages that the result contains. */
function applyChange(
  session: CachedSession,
  { replace = [], put, drop }: SessionChange,
  row: SessionRow,
  stored: readonly Message[],
): CachedSession | undefined {
  const replaced = new Map(replace.map(({ id, message }) => [id, message]))
  const dropped = new Set(drop)
  const update = (message: Message): Message => {
    const content = replaced.get(message.id)
    return content === undefined ? message : createMessage(content, message.sequence, message.offset)
  }
  const isComplete = session.tail.length === session.row.messageCount
  const updated = replaced.size === 0 ? session.tail : session.tail.map(update)
  const added = insertMessages(updated, stored, isComplete)
  const kept = dropped.size === 0 ? added : added.filter(({ id }) => !dropped.has(id))
  const tail = trim(kept)
  const first = kept.length === row.messageCount ? kept[0] : findFirst(session.first && update(session.first), stored)
  const lastUserMessage =
    findBySequence(kept, row.lastUserSequence) ??
    [first, session.lastUserMessage && update(session.lastUserMessage)].find(
      (message) => message?.sequence === row.lastUserSequence,
    )
  const isFirstKnown = row.messageCount === 0 || (first !== undefined && !dropped.has(first.id))
  if (!isFirstKnown || (lastUserMessage === undefined && row.lastUserSequence >= 0)) return undefined
  const all = putEntries(session.derived, put)
  const derived = dropped.size === 0 ? all : all.filter(({ id }) => !dropped.has(id))
  return { row, tail, first, lastUserMessage, derived }
}

/** Inserts stored messages at their places; one that lies before an incomplete tail stays out of it. */
function insertMessages(tail: readonly Message[], stored: readonly Message[], isComplete: boolean): readonly Message[] {
  const [message] = stored
  const last = tail.at(-1)
  if (message === undefined) return tail
  if (last === undefined || last.sequence < message.sequence)
    return isComplete || last !== undefined ? [...tail, ...stored] : tail
  const index = findMessageIndex(tail, message.sequence)
  return index === 0 && !isComplete ? tail : tail.toSpliced(index, 0, message)
}

const findFirst = (first: Message | undefined, [message]: readonly Message[]): Message | undefined =>
  first === undefined || (message !== undefined && message.sequence < first.sequence) ? message : first

const trim = (tail: readonly Message[]): readonly Message[] =>
  tail.length > 2 * maxTailMessages ? tail.slice(-maxTailMessages) : tail

function findBySequence(messages: readonly Message[], sequence: number): Message | undefined {
  const message = messages[findMessageIndex(messages, sequence)]
  return message?.sequence === sequence ? message : undefined
}

const estimateBytes = ({ tail, first, derived }: CachedSession): number =>
  [...tail, ...(first === undefined ? [] : [first])].reduce(
    (bytes, message) => bytes + estimateMessageBytes(message),
    estimateDerivedBytes(derived),
  )
