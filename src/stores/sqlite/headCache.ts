import type { DerivedEntry, Message } from '../../domain/entry.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import { LruCache } from '../../domain/lruCache.ts'
import type { PageOptions } from '../../domain/ports.ts'
import { createEmptyHead, findMessageIndex, type SessionHead } from '../../domain/session.ts'
import { estimateSize } from '../../domain/stringify.ts'
import type { SearchableMessage } from '../../search/scopeIndex.ts'
import { estimateMessageBytes, sliceTail } from '../messageTail.ts'
import { putEntries } from '../putEntries.ts'
import { yieldToEventLoop } from '../yieldToEventLoop.ts'
import type { Reader } from './read.ts'
import { copyDerived, type SessionRow } from './rows.ts'

/** Cached parts of a session. Parts other than the row are loaded on demand. */
type CachedSession = {
  row: SessionRow
  /** Database version at which the row was last known to be current. */
  checkedVersion: number
  /** The newest messages, without a hole. */
  tail: Message[]
  first?: Message | undefined
  lastUserMessage?: Message | undefined
  derived?: readonly DerivedEntry[] | undefined
  derivedBytes: number
}

/** No version of the database: the row is read before the session is used. */
const unchecked = -1
const maxTailMessages = 512
const maxSessions = 1_000
const defaultMaxBytes = 32_000_000
/** Derived entries that are read in one turn: up to 10 ms. An entry of the maximum size takes 30 ms. */
const maxDerivedBytes = 1_000_000

/** Messages that are read in one turn: about 10 ms. */
export const maxPageMessages = 250
/** Bytes of messages that are read in one turn, unless one has more: about 10 ms. */
const maxPageBytes = 4_000_000

/** Runs a query in a turn of the event loop. */
type RunQuery = <T>(query: () => T) => Promise<T>
type ReadDerived = { readonly row: SessionRow; readonly entries: DerivedEntry[] }

/**
 * Session cache in front of the database. Before each answer it checks that nothing was written since: one query of
 * SQLite's data version if nobody has written at all, one session row otherwise.
 */
export class HeadCache {
  private readonly reader: Reader
  private readonly sessions: LruCache<string, CachedSession>

  constructor(reader: Reader, maxBytes = defaultMaxBytes) {
    this.reader = reader
    this.sessions = new LruCache({ maxEntries: maxSessions, maxTotalSize: maxBytes })
  }

  /** Estimated size of the cache. */
  get bytes(): number {
    return this.sessions.totalSize
  }

  /** False if `head` would have to read derived entries. */
  hasDerived(key: Key): boolean {
    return this.sessions.peek(formatKey(key))?.derived !== undefined
  }

  /** Reads derived entries into the cache, if they are many, in several turns. Leaves others to `head`. */
  async loadDerived(key: Key, run: RunQuery): Promise<void> {
    const read = await this.readManyDerived(key, run)
    if (read !== undefined) await run(() => this.keepDerived(key, read))
  }

  /** Reads derived entries, many in several turns. */
  async readDerivedInTurns(key: Key, run: RunQuery): Promise<readonly DerivedEntry[]> {
    return (await this.readManyDerived(key, run))?.entries ?? run(() => this.reader.derivedOf(key))
  }

  /** Reads derived entries in several turns; undefined if they are few, or have changed meanwhile. */
  private async readManyDerived(key: Key, run: RunQuery): Promise<ReadDerived | undefined> {
    const plan = await run(() => this.planDerived(key))
    if (plan === undefined) return undefined
    const entries: DerivedEntry[] = []
    for (const places of plan.groups) {
      const rows = await run(() => this.reader.derivedRows(places))
      await yieldToEventLoop()
      entries.push(...this.reader.parseDerivedRows(key, rows))
      await yieldToEventLoop()
    }
    return (await run(() => this.isCurrent(key, plan.row))) ? { row: plan.row, entries } : undefined
  }

  private isCurrent(key: Key, row: SessionRow): boolean {
    const current = this.reader.session(key)
    return current !== undefined && hasSameDerived(current, row)
  }

  /** Groups the places of derived entries by size; undefined if one group has all. */
  private planDerived(key: Key): { readonly row: SessionRow; readonly groups: readonly number[][] } | undefined {
    const row = this.reader.session(key)
    if (row === undefined || row.derivedVersion === 0) return undefined
    const groups: number[][] = []
    let groupBytes = Number.POSITIVE_INFINITY
    for (const [place, bytes] of this.reader.derivedSizes(row.id)) {
      if (groupBytes + bytes > maxDerivedBytes) {
        groups.push([])
        groupBytes = 0
      }
      groups.at(-1)?.push(place)
      groupBytes += bytes
    }
    return groups.length < 2 && groupBytes <= maxDerivedBytes ? undefined : { row, groups }
  }

  private keepDerived(key: Key, { row, entries }: ReadDerived): void {
    const current = this.reader.session(key)
    if (current === undefined || !hasSameDerived(current, row)) return
    const cached = this.sessions.get(formatKey(key))
    const session =
      cached?.row.revision === current.revision
        ? cached
        : { row: current, checkedVersion: unchecked, tail: [], derivedBytes: 0 }
    session.derived = entries
    session.derivedBytes = sizeOf(entries)
    this.add(key, session)
  }

  /** True if the cache may answer without reading messages. */
  isCached(key: Key, range: PageOptions): boolean {
    const cached = this.sessions.peek(formatKey(key))
    return range.limit <= 0 || (cached !== undefined && sliceCached(cached, range) !== undefined)
  }

  /** Returns how many messages of a range one turn may read: one at least. */
  limitPage(key: Key, range: PageOptions): number {
    const limit = Math.min(range.limit, maxPageMessages)
    const row = this.reader.session(key)
    if (row === undefined) return limit
    const sizes = this.reader.messageSizes(row.id, { ...range, limit })
    let count = 0
    for (let bytes = 0; count < sizes.length; count++) {
      bytes += sizes[count] as number
      if (bytes > maxPageBytes) return Math.max(1, count)
    }
    return limit
  }

  /** Reads up to `limit` messages for a search index, long ones in several turns. */
  async readIndexed(key: Key, after: number, limit: number, run: RunQuery): Promise<readonly SearchableMessage[]> {
    const messages: SearchableMessage[] = []
    for (let last = after; messages.length < limit; last = messages.at(-1)?.sequence ?? last) {
      const count = await run(() => this.limitPage(key, { after: last, limit: limit - messages.length }))
      const page = await run(() => this.reader.indexed(key, last, count))
      messages.push(...page)
      if (page.length < count) break
    }
    return messages
  }

  head(key: Key, recent: number): SessionHead {
    const cached = this.getUnchanged(key)
    if (cached !== undefined && isComplete(cached, recent)) return this.buildHead(key, cached, recent)
    return this.reader.snapshotRead(() => {
      const session = this.refresh(key)
      if (session === undefined) return createEmptyHead(key, this.reader.tombstoneEpoch(key))
      const head = this.buildHead(key, session, recent)
      this.add(key, session)
      return head
    })
  }

  page(key: Key, range: PageOptions): readonly Message[] {
    const cached = this.getUnchanged(key)
    const slice = cached && sliceCached(cached, range)
    if (slice !== undefined) return slice
    return this.reader.snapshotRead(() => {
      const session = this.refresh(key)
      if (session === undefined) return []
      const messages = this.readPage(key, session, range)
      this.add(key, session)
      return messages
    })
  }

  /** Stays the same while messages are only added at the end; undefined if the session is not cached. */
  lineage(key: Key): string | undefined {
    const row = this.sessions.get(formatKey(key))?.row
    return row && `${row.id} ${row.epoch} ${row.removals}`
  }

  /** Applies a write of this process to the cache, so that it need not be read back. */
  applyWrite(key: Key, row: SessionRow, messages: readonly Message[], put: readonly DerivedEntry[]): void {
    const session = this.sessions.get(formatKey(key))
    if (session === undefined) {
      // A new session, whose messages are all known.
      if (row.messageCount === messages.length)
        this.add(key, { row, checkedVersion: unchecked, tail: messages.slice(-maxTailMessages), derivedBytes: 0 })
      return
    }
    if (session.row.revision + 1 !== row.revision || !isContinuation(session.row, row)) return
    const { derived } = session
    applyRow(session, row, messages)
    if (derived !== undefined && put.length > 0) putDerived(session, derived, put)
    this.add(key, session)
  }

  /** Removes a session, which may contain data that was just erased. */
  drop(key: Key): void {
    this.sessions.delete(formatKey(key))
  }

  /** Returns the cached session if nothing was written to it since; reads one row at most. */
  private getUnchanged(key: Key): CachedSession | undefined {
    const cached = this.sessions.get(formatKey(key))
    if (cached === undefined) return undefined
    const version = this.reader.version()
    if (cached.checkedVersion === version) return cached
    const row = this.reader.session(key)
    if (row === undefined || row.revision !== cached.row.revision || !isContinuation(cached.row, row)) return undefined
    cached.checkedVersion = version
    return cached
  }

  private buildHead(key: Key, session: CachedSession, recent: number): SessionHead {
    const { epoch, revision, startedAt, touchedAt, expiresAt, messageCount, lastSequence, gaps } = session.row
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
      recent: recent <= 0 ? [] : this.readPage(key, session, { limit: recent, newest: true }),
      firstMessage: this.readFirst(key, session),
      lastUserMessage: this.readLastUserMessage(key, session),
      derived: this.readDerived(key, session),
    }
  }

  private readPage(key: Key, session: CachedSession, range: PageOptions): readonly Message[] {
    const { row } = session
    const isNewest = range.newest === true && (range.before ?? Number.POSITIVE_INFINITY) > row.lastSequence
    const tailLength = Math.min(range.limit, maxTailMessages, row.messageCount)
    if (isNewest && session.tail.length < tailLength)
      session.tail = this.reader.messages(key, row.id, { limit: tailLength, newest: true })
    return sliceCached(session, range) ?? this.reader.messages(key, row.id, range)
  }

  private readFirst(key: Key, session: CachedSession): Message | undefined {
    const { row, tail } = session
    if (row.messageCount === 0) return undefined
    session.first ??= tail.length === row.messageCount ? tail[0] : this.reader.messages(key, row.id, { limit: 1 })[0]
    return session.first
  }

  private readLastUserMessage(key: Key, session: CachedSession): Message | undefined {
    const { id, lastUserSequence: sequence } = session.row
    if (sequence === null) return undefined
    if (session.lastUserMessage?.sequence === sequence) return session.lastUserMessage
    const inTail = session.tail[findMessageIndex(session.tail, sequence)]
    session.lastUserMessage =
      inTail?.sequence === sequence
        ? inTail
        : this.reader.messages(key, id, { after: sequence - 1, before: sequence + 1, limit: 1 })[0]
    return session.lastUserMessage
  }

  private readDerived(key: Key, session: CachedSession): readonly DerivedEntry[] {
    if (session.derived === undefined) {
      session.derived = session.row.derivedVersion === 0 ? [] : this.reader.derived(key, session.row.id)
      session.derivedBytes = sizeOf(session.derived)
    }
    return session.derived
  }

  /** Brings the cached session up to date, or starts a new one; undefined if the session does not exist. */
  private refresh(key: Key): CachedSession | undefined {
    const name = formatKey(key)
    const version = this.reader.version()
    const cached = this.sessions.get(name)
    if (cached?.checkedVersion === version) return cached
    const row = this.reader.session(key)
    // Callers add it again when it is complete, so that a failed read leaves nothing behind.
    this.sessions.delete(name)
    if (row === undefined) return undefined
    const session =
      cached !== undefined && isContinuation(cached.row, row)
        ? this.catchUp(key, cached, row)
        : { row, checkedVersion: version, tail: [], derivedBytes: 0 }
    session.checkedVersion = version
    return session
  }

  /** Adds a session, or counts its size again. */
  private add(key: Key, session: CachedSession): void {
    this.sessions.set(formatKey(key), session, estimateBytes(session))
  }

  /** Reads only the messages that other processes have added, and only if the tail before them is cached. */
  private catchUp(key: Key, session: CachedSession, row: SessionRow): CachedSession {
    if (row.revision === session.row.revision) return session
    const after = session.tail.at(-1)?.sequence
    const added = after === undefined ? [] : this.reader.messages(key, row.id, { after, limit: maxTailMessages })
    // There may be more: reserved numbers after the tail may have been used as well.
    if (added.length === maxTailMessages) session.tail = []
    applyRow(session, row, added)
    return session
  }
}

function applyRow(session: CachedSession, row: SessionRow, added: readonly Message[]): void {
  const { row: previous } = session
  if (session.tail.length > 0 || previous.messageCount === 0) session.tail.push(...added)
  if (session.tail.length > 2 * maxTailMessages) session.tail = session.tail.slice(-maxTailMessages)
  if (row.derivedVersion !== previous.derivedVersion) session.derived = undefined
  if (row.lastUserSequence !== previous.lastUserSequence)
    session.lastUserMessage = added.find(({ sequence }) => sequence === row.lastUserSequence)
  session.row = row
}

function putDerived(session: CachedSession, before: readonly DerivedEntry[], put: readonly DerivedEntry[]): void {
  const changed = new Set(put.map(({ id }) => id))
  const isChanged = ({ id }: DerivedEntry): boolean => changed.has(id)
  const after = putEntries(before, put.map(copyDerived))
  session.derived = after
  session.derivedBytes += sizeOf(after.filter(isChanged)) - sizeOf(before.filter(isChanged))
}

const sizeOf = (entries: readonly DerivedEntry[]): number =>
  entries.reduce((sum, entry) => sum + estimateSize(entry, Number.POSITIVE_INFINITY), 0)

const estimateBytes = ({ tail, first, lastUserMessage, derivedBytes }: CachedSession): number =>
  // The first and the last message of a user may be in the tail.
  [...new Set([...tail, first, lastUserMessage])].reduce(
    (bytes, message) => bytes + (message === undefined ? 0 : estimateMessageBytes(message)),
    derivedBytes,
  )

/** Returns a range from the cached messages; undefined if they do not cover it. */
const sliceCached = ({ tail, row }: CachedSession, range: PageOptions): readonly Message[] | undefined =>
  sliceTail({ tail, messageCount: row.messageCount }, range)

/** True if a head can be built without reading the database. */
function isComplete({ row, tail, first, lastUserMessage, derived }: CachedSession, recent: number): boolean {
  const hasEnds =
    (first !== undefined || row.messageCount === 0) &&
    (row.lastUserSequence === null || lastUserMessage?.sequence === row.lastUserSequence)
  return hasEnds && derived !== undefined && (tail.length >= recent || tail.length === row.messageCount)
}

/** True if messages were only added at the end, and few enough messages were added to read only those. */
const hasSameDerived = (one: SessionRow, other: SessionRow): boolean =>
  one.id === other.id &&
  one.epoch === other.epoch &&
  one.removals === other.removals &&
  one.derivedVersion === other.derivedVersion

const isContinuation = (previous: SessionRow, current: SessionRow): boolean =>
  previous.id === current.id &&
  previous.epoch === current.epoch &&
  previous.removals === current.removals &&
  current.lastSequence - previous.lastSequence <= maxTailMessages
