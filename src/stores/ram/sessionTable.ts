import type { Entry, Message, Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key, type Scope } from '../../domain/key.ts'
import type {
  AuxiliaryRecord,
  EraseFilter,
  IndexChanges,
  PageOptions,
  SearchTarget,
  SessionFilter,
  StoredRecord,
} from '../../domain/ports.ts'
import {
  createEmptyHead,
  findFilledSequence,
  findMessageIndex,
  isExpired,
  matchesMetadata,
  type Replacement,
  type SessionChange,
  type SessionHead,
  type SessionListItem,
} from '../../domain/session.ts'
import type { Compressor } from './compression.ts'
import { EventCounts } from './eventCounts.ts'
import {
  appendMessages,
  createSession,
  fillGap,
  messageAt,
  putDerived,
  RecordLog,
  removeEntries,
  type Session,
  type SessionContent,
  updateMetadata,
} from './session.ts'

/**
 * Finds sessions without visiting all of them, counts their memory and compresses idle ones. A table with few sessions
 * (the browser build) works without one: visiting a hundred sessions is cheaper than shipping this code.
 */
export interface SessionCache {
  onCreated(session: Session): void
  /** Called after a write. `isUse` is false for changes that are not a use of the session, such as upkeep. */
  onWritten(session: Session, added: readonly Entry[], removed: readonly Entry[], isUse: boolean): void
  onErased(session: Session): void
  /** Returns at least the sessions that match the filter. */
  candidates(filter: CandidateFilter): Iterable<Session>
  /** Called after the records of a session changed. */
  onRecordsChanged(session: Session, bytesBefore: number): void
  /** Reads the content of a compressed session, which stays compressed. */
  readContent(session: Session): SessionContent
  /** Compresses records; undefined to keep them as they are. */
  readonly compressor: Compressor | undefined
}

/**
 * Checks, finds and replaces messages by id. A table to which nobody gives external ids or replacements
 * (session-memory) works without it.
 */
export interface MessageEdits {
  /** Throws `conflict` unless the ids of a change are free and the messages to replace exist. */
  check(change: SessionChange, content: SessionContent | undefined): void
  replace(
    session: Session,
    content: SessionContent,
    replace: readonly Replacement[],
  ): { readonly old: readonly Message[]; readonly added: readonly Message[] }
  find(content: SessionContent, externalIds: readonly string[]): readonly Message[]
}

export type CandidateFilter = { readonly scope?: Scope | undefined; readonly expiredBy?: Millis | undefined }

/** Sessions in the memory of this process. All methods are synchronous; `ramStore` adapts it to the `Store` port. */
export class RamSessionTable {
  private readonly cache: SessionCache | undefined
  private readonly edits: MessageEdits | undefined
  private readonly sessions = new Map<string, Session>()
  /** Number of erasures by session. */
  private readonly epochs = new EventCounts()
  /** Number of changes by scope that changed the lineage of a session. */
  private readonly removals = new EventCounts()
  /** Change counter. */
  private stamp = 0

  constructor(cache?: SessionCache, edits?: MessageEdits) {
    this.cache = cache
    this.edits = edits
  }

  head(key: Key, recent: number): SessionHead {
    const name = formatKey(key)
    const session = this.sessions.get(name)
    if (session === undefined) return createEmptyHead(key, this.getEpoch(name))
    const { revision, epoch, startedAt, touchedAt, expiresAt, lastSequence } = session
    const { messages, gaps, lastUserMessage, derived } = this.contentOf(session)
    return {
      key,
      revision,
      epoch,
      startedAt,
      touchedAt,
      expiresAt,
      messages: messages.length,
      lastSequence,
      gaps,
      firstMessage: messages[0],
      lastUserMessage,
      recent: recent <= 0 ? emptyList : messages.slice(-recent),
      derived: derived === undefined ? emptyList : [...derived.values()],
    }
  }

  page(
    key: Key,
    { after = 0, before = Number.POSITIVE_INFINITY, limit, newest = false }: PageOptions,
  ): readonly Message[] {
    const session = this.sessions.get(formatKey(key))
    if (session === undefined) return []
    const { messages } = this.contentOf(session)
    const from = findMessageIndex(messages, after + 1)
    const to = findMessageIndex(messages, before)
    return newest ? messages.slice(Math.max(from, to - limit), to) : messages.slice(from, Math.min(to, from + limit))
  }

  findMessages(key: Key, externalIds: readonly string[]): readonly Message[] {
    const session = this.sessions.get(formatKey(key))
    return (session && this.edits?.find(this.contentOf(session), externalIds)) ?? []
  }

  commit(change: SessionChange): readonly Message[] {
    const name = formatKey(change.key)
    const session = this.sessions.get(name)
    if (change.epoch !== (session?.epoch ?? this.getEpoch(name))) {
      throw new MemoryError(
        'erased',
        `Session ${name} was erased while this change was in progress; nothing was stored. Read the session again and retry if the change is still needed.`,
      )
    }
    const applied =
      session === undefined || change.id === undefined
        ? undefined
        : this.contentOf(session).appliedChanges?.get(change.id)
    if (applied !== undefined) {
      const [first, last] = applied
      return this.page(change.key, { after: first - 1, before: last + 1, limit: last - first + 1 })
    }
    const { revision = 0, lastSequence = 0 } = session ?? {}
    if (change.base !== undefined && change.base !== revision) {
      throw new MemoryError(
        'conflict',
        `Session ${name} is at revision ${revision}, not ${change.base}. Read the session again and retry.`,
      )
    }
    const filled =
      session === undefined || change.from === undefined
        ? undefined
        : findFilledSequence(change, { lastSequence, gaps: this.contentOf(session).gaps })
    this.edits?.check(change, session && this.contentOf(session))
    return this.apply(session ?? this.create(name, change), change, filled)
  }

  list({ scope, expiredBy, metadata: filter, after = '', limit }: SessionFilter): readonly SessionListItem[] {
    const [afterScope = '', id = ''] = after.split(/:(.*)/s)
    const start = { scope: afterScope, id }
    const matches: SessionListItem[] = []
    for (const session of this.candidates({ scope, expiredBy })) {
      const { key, startedAt, touchedAt, expiresAt, messageCount, metadata } = session
      if (!isAfter(key, start) || (scope !== undefined && key.scope !== scope)) continue
      if (expiredBy !== undefined && !isExpired(session, expiredBy)) continue
      if (filter !== undefined && !matchesMetadata(metadata, filter)) continue
      const item = { key, startedAt, touchedAt, expiresAt, messages: messageCount }
      matches.push(metadata === undefined ? item : { ...item, metadata })
    }
    return matches.sort((a, b) => (isAfter(a.key, b.key) ? 1 : -1)).slice(0, limit)
  }

  erase(key: Key, only?: EraseFilter): readonly string[] {
    const name = formatKey(key)
    const session = this.sessions.get(name)
    if (only !== undefined && 'remains' in only) return []
    if (only !== undefined && 'records' in only) return this.eraseRecords(session)
    if (only !== undefined && 'entries' in only)
      return session === undefined ? [] : this.eraseEntries(session, only.entries)
    if (only !== undefined && (session === undefined || !isExpired(session, only.expiredBy))) return []
    this.recordRemoval(key.scope)
    this.epochs.increment(name)
    if (session === undefined) return []
    const { messages, derived } = this.contentOf(session)
    this.sessions.delete(name)
    this.cache?.onErased(session)
    return [...messages.map((message) => message.id), ...(derived?.keys() ?? [])]
  }

  appendRecord(key: Key, record: AuxiliaryRecord, keep: number): boolean {
    const session = this.sessions.get(formatKey(key))
    if (session === undefined) return false
    session.records ??= new RecordLog()
    const bytesBefore = session.records.bytes
    session.records.append(record, keep, this.cache?.compressor)
    this.cache?.onRecordsChanged(session, bytesBefore)
    return true
  }

  records(key: Key, before: number, limit: number): readonly StoredRecord[] {
    return this.sessions.get(formatKey(key))?.records?.list(before, limit, this.cache?.compressor) ?? []
  }

  private eraseRecords(session: Session | undefined): readonly string[] {
    if (session?.records === undefined) return []
    const bytesBefore = session.records.bytes
    session.records = undefined
    this.cache?.onRecordsChanged(session, bytesBefore)
    return []
  }

  private eraseEntries(session: Session, entries: readonly string[]): readonly string[] {
    const content = this.writableContent(session)
    const removed = removeEntries(session, content, entries)
    updateMetadata(session, content)
    if (removed.length > 0) this.recordRemoval(session.key.scope)
    // Increments the revision even if nothing was removed: a writer that read the session earlier may hold the erased
    // text.
    this.recordChange(session, [], removed, false)
    return removed.map(({ id }) => id)
  }

  changes({ scope, id }: SearchTarget, since: number): IndexChanges {
    if (id === undefined) {
      const sessions = [...this.candidates({ scope })]
        .filter(({ key, stamp }) => key.scope === scope && stamp > since)
        .map(({ key }) => key)
      return { stamp: this.stamp, lineage: `${this.removals.get(scope)}`, sessions }
    }
    const name = formatKey({ scope, id })
    const session = this.sessions.get(name)
    const lineage = `${this.getEpoch(name)}.${session?.removals ?? 0}`
    return { stamp: this.stamp, lineage, sessions: session !== undefined && session.stamp > since ? [session.key] : [] }
  }

  /** Reads entries by location; `sequence` is 0 for derived entries. Undefined for entries that no longer exist. */
  findEntries(
    locations: readonly { readonly key: Key; readonly id: string; readonly sequence: number }[],
  ): (Entry | undefined)[] {
    return locations.map(({ key, id, sequence }) => {
      const session = this.sessions.get(formatKey(key))
      const content = session && this.contentOf(session)
      return content && (sequence === 0 ? content.derived?.get(id) : messageAt(content, sequence))
    })
  }

  clear(): void {
    for (const session of [...this.sessions.values()]) this.erase(session.key)
  }

  private create(name: string, change: SessionChange): Session {
    const session = createSession(change)
    this.sessions.set(name, session)
    this.cache?.onCreated(session)
    return session
  }

  /** `filled` is the sequence number of the change's only message if it is inside a gap. */
  private apply(session: Session, change: SessionChange, filled: number | undefined): readonly Message[] {
    const content = this.writableContent(session)
    const { removals } = session
    const { old = [], added: renewed = [] } = this.edits?.replace(session, content, change.replace ?? []) ?? {}
    const added =
      filled === undefined ? appendMessages(session, content, change) : fillGap(session, content, change, filled)
    const replaced = putDerived(content, change.put)
    const removed = removeEntries(session, content, change.drop)
    if (session.removals !== removals) this.recordRemoval(session.key.scope)
    updateMetadata(session, content)
    // Upkeep writes with the time of the last use, so it does not count as one.
    const isUse = added.length > 0 || change.at > session.touchedAt
    session.touchedAt = change.at
    session.expiresAt = change.expiresAt
    this.recordChange(
      session,
      concat(concat(added, change.put), renewed),
      concat(concat(replaced, removed), old),
      isUse,
    )
    return added
  }

  private recordChange(session: Session, added: readonly Entry[], removed: readonly Entry[], isUse: boolean): void {
    session.revision++
    session.stamp = ++this.stamp
    this.cache?.onWritten(session, added, removed, isUse)
  }

  /** Number of times a session was erased. */
  private getEpoch(name: string): number {
    return this.epochs.get(name)
  }

  private candidates(filter: CandidateFilter): Iterable<Session> {
    return this.cache?.candidates(filter) ?? this.sessions.values()
  }

  /** Content for reading; a compressed session stays compressed. */
  private contentOf(session: Session): SessionContent {
    return session.content ?? (this.cache as SessionCache).readContent(session)
  }

  /** Content for writing; a compressed session is decompressed for good. */
  private writableContent(session: Session): SessionContent {
    session.content ??= this.contentOf(session)
    return session.content
  }

  private recordRemoval(scope: string): void {
    this.removals.increment(scope)
    this.stamp++
  }
}

/** Shared by the heads of all sessions that have no such entries. */
const emptyList: readonly never[] = []

/** Concatenates without copying in the common case of an empty second list. */
const concat = (first: readonly Entry[], second: readonly Entry[]): readonly Entry[] =>
  second.length === 0 ? first : [...first, ...second]

type KeyParts = Pick<Key, 'scope' | 'id'>
const isAfter = (key: KeyParts, other: KeyParts): boolean =>
  key.scope === other.scope ? key.id > other.id : key.scope > other.scope
