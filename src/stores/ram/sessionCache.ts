import { countMessageBytes, type Entry, type Millis, utf8Length } from '../../domain/entry.ts'
import { Heap } from '../../domain/heap.ts'
import { isInternalKey, type Key, type Scope } from '../../domain/key.ts'
import { LruCache } from '../../domain/lruCache.ts'
import type { MemoryLimit, SessionCounter } from '../../domain/ports.ts'
import type { Pause } from '../../domain/work.ts'
import type { TextAnalysis } from '../../search/scopeIndex.ts'
import type { Compressor } from './compression.ts'
import { deserialize, serialize } from './serialize.ts'
import type { Session, SessionContent } from './session.ts'
import type { CandidateFilter, SessionCache } from './sessionTable.ts'
/** Options of `ramStore`. */
export type RamStoreOptions = {
  /** Word table and languages for search. Default: search by the words of English. */
  readonly analysis?: TextAnalysis
  /** Lets other work run while a long session is indexed. Default: it is indexed at once. */
  readonly pause?: Pause
  /**
   * Memory limit of all sessions together, in bytes; beyond it the least recently used sessions end. Data that belongs
   * to a whole scope is not counted. Default: 512,000,000. `Infinity` removes the limit.
   */
  readonly maxBytes?: number
  /** Compresses idle sessions. Default: sessions are never compressed. */
  readonly compressor?: Compressor
  /** Idle time after which a session is compressed, in milliseconds. Default: 600,000 (ten minutes). */
  readonly compressAfterMs?: Millis
  /**
   * Memory that uncompressed sessions may use together, in bytes; beyond it the least recently used ones are compressed
   * at once. Default: 32,000,000.
   */
  readonly maxUncompressedBytes?: number
}

/** Room for 10,000 sessions of 50 kB, and far below the heap limit of Node on a small machine. */
const defaultMaxBytes = 512_000_000

/** Larger sessions take too long to compress during a write: they wait until they are idle. */
const maxInlineCompressBytes = 64_000

/** Overhead of an empty session, and of an entry besides its text: measured, rounded up. */
const sessionOverheadBytes = 600
const entryOverheadBytes = 200

/** Finds sessions by expiry time and by scope, counts their memory, and compresses idle ones. */
export class RamSessionCache implements SessionCache, MemoryLimit, SessionCounter {
  private readonly options: RamStoreOptions
  private readonly expiries = new Heap<Session>(
    (a, b) => a.expiresAt < b.expiresAt,
    (session, index) => {
      session.heapIndex = index
    },
  )
  private readonly scopes = new Map<Scope, Set<Session>>()
  /** Number of user sessions by scope, without the engine's internal ones. */
  private readonly counts = new Map<Scope, number>()
  /** User sessions by last use, for eviction. */
  private readonly lru = new LruCache<Session, true>()
  /** Uncompressed sessions by last use, and the bytes of those that may be compressed during a write. */
  private readonly uncompressed = new LruCache<Session, true>()
  private uncompressedBytes = 0
  /** The compressed session read last: a reader usually reads it several times in a row. */
  private lastRead: { readonly session: Session; readonly content: SessionContent } | undefined
  private totalBytes = 0
  private sessionCount = 0

  constructor(options: RamStoreOptions = {}) {
    this.options = options
  }

  onCreated(session: Session): void {
    const { scope } = session.key
    this.expiries.push(session)
    this.scopes.set(scope, (this.scopes.get(scope) ?? new Set()).add(session))
    this.adjustCount(session, 1)
    this.setSize(session, sessionOverheadBytes)
  }

  onWritten(session: Session, added: readonly Entry[], removed: readonly Entry[], isUse: boolean): void {
    const bytes = this.dropCompressed(session) ?? session.bytes + sumBytes(added) - sumBytes(removed)
    this.setSize(session, bytes)
    this.expiries.update(session.heapIndex)
    if (!this.uncompressed.has(session)) {
      this.uncompressedBytes += compressibleBytes(session)
      this.uncompressed.set(session, true)
    } else if (isUse) this.uncompressed.get(session)
    if (isSession(session.key) && (isUse || !this.lru.has(session))) this.lru.set(session, true)
    this.compressOverflow()
  }

  onErased(session: Session): void {
    const { scope } = session.key
    const siblings = this.scopes.get(scope)
    siblings?.delete(session)
    if (siblings?.size === 0) this.scopes.delete(scope)
    this.adjustCount(session, -1)
    this.expiries.remove(session.heapIndex)
    this.lru.delete(session)
    this.lastRead = undefined
    this.setSize(session, 0)
    this.uncompressed.delete(session)
  }

  onRecordsChanged(session: Session, bytesBefore: number): void {
    this.setSize(session, session.bytes + recordBytes(session) - bytesBefore)
  }

  get compressor(): Compressor | undefined {
    return this.options.compressor
  }

  candidates({ scope, expiredBy }: CandidateFilter): Iterable<Session> {
    if (expiredBy !== undefined) return this.expiries.listWhile(({ expiresAt }) => expiresAt <= expiredBy)
    return scope === undefined ? this.allSessions() : (this.scopes.get(scope) ?? [])
  }

  readContent(session: Session): SessionContent {
    if (this.lastRead?.session !== session)
      this.lastRead = {
        session,
        content: deserialize(session.compressed as string, this.options.compressor as Compressor),
      }
    return this.lastRead.content
  }

  countSessions(scope?: Scope): number {
    return scope === undefined ? this.sessionCount : (this.counts.get(scope) ?? 0)
  }

  evictionCandidate(): Key | undefined {
    const { maxBytes = defaultMaxBytes } = this.options
    return this.lru.size < 2 || this.totalBytes <= maxBytes ? undefined : this.lru.oldest?.[0].key
  }

  get memoryUsage(): MemoryLimit['memoryUsage'] {
    const { maxBytes = defaultMaxBytes } = this.options
    return maxBytes === Number.POSITIVE_INFINITY
      ? { usedBytes: this.totalBytes }
      : { usedBytes: this.totalBytes, maxBytes }
  }

  compressIdle(now: Millis): void {
    const { compressor, compressAfterMs = 600_000 } = this.options
    if (compressor === undefined) return
    for (const [session] of this.uncompressed) {
      if (session.touchedAt > now - compressAfterMs) return
      this.compress(session, compressor)
    }
  }

  /** Compresses the least recently used sessions until the others fit. */
  private compressOverflow(): void {
    const { compressor, maxUncompressedBytes = 32_000_000 } = this.options
    if (compressor === undefined || this.uncompressedBytes <= maxUncompressedBytes) return
    for (const [session] of this.uncompressed) {
      if (this.uncompressedBytes <= maxUncompressedBytes) return
      if (compressibleBytes(session) > 0) this.compress(session, compressor)
    }
  }

  private compress(session: Session, compressor: Compressor): void {
    this.uncompressed.delete(session)
    this.uncompressedBytes -= compressibleBytes(session)
    const bytesBefore = recordBytes(session)
    session.records?.compact(compressor)
    this.setSize(session, session.bytes + recordBytes(session) - bytesBefore)
    if (session.bytes - recordBytes(session) <= sessionOverheadBytes) return
    session.compressed = serialize(session.content as SessionContent, compressor)
    session.content = undefined
    this.setSize(session, sessionOverheadBytes + session.compressed.length + recordBytes(session))
  }

  private *allSessions(): Iterable<Session> {
    for (const sessions of this.scopes.values()) yield* sessions
  }

  /**
   * Drops the compressed form of a session that was just written to and returns its new size; undefined if it had none.
   */
  private dropCompressed(session: Session): number | undefined {
    if (session.compressed === undefined) return undefined
    session.compressed = undefined
    this.lastRead = undefined
    const { messages, derived } = session.content as SessionContent
    return sessionOverheadBytes + recordBytes(session) + sumBytes([...messages, ...(derived?.values() ?? [])])
  }

  private adjustCount({ key }: Session, delta: number): void {
    if (!isSession(key)) return
    this.sessionCount += delta
    const count = this.countSessions(key.scope) + delta
    if (count === 0) this.counts.delete(key.scope)
    else this.counts.set(key.scope, count)
  }

  private setSize(session: Session, bytes: number): void {
    if (!belongsToScope(session.key)) {
      this.totalBytes += bytes - session.bytes
      if (this.uncompressed.has(session)) this.uncompressedBytes += inlineBytes(bytes) - inlineBytes(session.bytes)
    }
    session.bytes = bytes
  }
}

/**
 * Bytes that count towards inline compression. Scope data counts as 0: it is read whenever one of the scope's sessions
 * is used.
 */
const compressibleBytes = ({ key, bytes }: Session): number => (belongsToScope(key) ? 0 : inlineBytes(bytes))
const inlineBytes = (bytes: number): number => (bytes > maxInlineCompressBytes ? 0 : bytes)

const recordBytes = ({ records }: Session): number => records?.bytes ?? 0

function sumBytes(entries: readonly Entry[]): number {
  let bytes = 0
  for (const entry of entries) bytes += estimateBytes(entry)
  return bytes
}

/** Estimates an entry's memory: its text in UTF-8 plus overhead. */
const estimateBytes = (entry: Entry): number =>
  entryOverheadBytes + (entry.kind === 'message' ? countMessageBytes(entry) : utf8Length(JSON.stringify(entry)))

const isSession = (key: Key): boolean => key.id !== '' && !isInternalKey(key)
/** True for the scope's own memory, its files and its outbox, which never count against the sessions' limit. */
const belongsToScope = (key: Key): boolean => key.id === '' || key.id.startsWith(':')
