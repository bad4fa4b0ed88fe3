import type { DerivedEntry, Entry } from '../../domain/entry.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { IndexQuery, SearchTarget } from '../../domain/ports.ts'
import { findMessageIndex } from '../../domain/session.ts'
import { runInSlices } from '../../domain/work.ts'
import { indexName } from '../../search/indexName.ts'
import type {
  NearestEntry,
  ScopeIndex,
  ScopeIndexSnapshot,
  SearchableMessage,
  SearchMatch,
} from '../../search/scopeIndex.ts'
import type { IndexState, ReadAlong, SearchSource, SourceChanges } from '../../search/storeSearch.ts'
import { VectorIndex } from '../../search/vectorIndex.ts'
import { compressInBackground, decodeSnapshot, encodeSnapshotInSteps } from '../sqlite/snapshot.ts'
import { textAnalysis } from '../textAnalysis.ts'
import { yieldToEventLoop } from '../yieldToEventLoop.ts'
import type { Database } from './database.ts'
import { type CachedSession, type HeadCache, messagesAfter } from './headCache.ts'
import type { NearestFinder } from './pgvector.ts'
import type { BatchReader } from './reader.ts'
import { type DerivedCells, type MessageCells, parseDerived, parseMessage } from './rows.ts'
import { escapeText } from './text.ts'
import { listVectors, readVector } from './vectors.ts'

type ChangesAnswer = {
  readonly stamp: number
  readonly lineage: string
  readonly sessions: readonly (readonly [
    name: string,
    revision: number,
    derivedVersion: number,
    messages?: readonly MessageCells[] | null,
    derived?: readonly DerivedCells[] | null,
  ])[]
}

/** State of an index over one session: what it has seen of it. */
type SessionState = { readonly revision: number; readonly derivedVersion: number }

/** Messages of a session that are read along with the changes, and sessions of a scope whose content is. */
const maxReadAlong = { session: { page: 512, maxContents: 1 }, scope: { page: 64, maxContents: 32 } }

const newIndex: IndexState = { stamp: 0, lastSequence: 0, revision: undefined, sourceState: undefined }

export type SearchSourceDeps = {
  readonly database: Database
  readonly reader: BatchReader
  readonly heads: HeadCache
  readonly minSnapshotMessages: number
  /** Finds vectors in the database; undefined without pgvector. */
  readonly nearest: NearestFinder | undefined
}

/** Reads for `StoreSearch`, with as few round trips as possible. */
export class PostgresSearchSource implements SearchSource {
  readonly analysis = textAnalysis
  readonly pause = yieldToEventLoop
  private readonly database: Database
  private readonly reader: BatchReader
  private readonly heads: HeadCache
  private readonly minSnapshotMessages: number
  private readonly nearest: NearestFinder | undefined
  /** Changes that were read along with the search for a snapshot, for the request that follows. */
  private readonly readAhead = new Map<string, SourceChanges>()

  constructor({ database, reader, heads, minSnapshotMessages, nearest }: SearchSourceDeps) {
    this.database = database
    this.reader = reader
    this.heads = heads
    this.minSnapshotMessages = minSnapshotMessages
    this.nearest = nearest
  }

  async findNearest(
    where: SearchTarget,
    query: IndexQuery,
    limit: number,
  ): Promise<readonly NearestEntry[] | undefined> {
    return this.nearest?.find(where, query, limit)
  }

  async changes(where: SearchTarget, state: IndexState): Promise<SourceChanges> {
    const ahead = this.readAhead.get(indexName(where))
    this.readAhead.delete(indexName(where))
    if (ahead !== undefined && state.stamp === 0) return ahead
    return this.answerFromCache(where, state) ?? this.readChanges(where, state)
  }

  async readMessages(key: Key, after: number, limit: number): Promise<readonly SearchableMessage[]> {
    const page = { read: 'page', name: key.id, after, before: Number.MAX_SAFE_INTEGER, limit, newest: false }
    return (await this.reader.read<readonly MessageCells[]>(key.scope, page)).map(parseMessage)
  }

  async readDerived(key: Key): Promise<readonly DerivedEntry[]> {
    const cells = await this.reader.read<readonly DerivedCells[]>(key.scope, { read: 'derived', name: key.id })
    return cells.map(parseDerived)
  }

  readVectors(where: SearchTarget, model: string, after: number, limit: number): ReturnType<typeof listVectors> {
    return listVectors(this.reader, where, { model, after, limit })
  }

  async readVector(key: Key, id: string, model: string): Promise<Float32Array | undefined> {
    const vector = await readVector(this.reader, key, id)
    return vector?.model === model ? vector.values : undefined
  }

  createVectorIndex(model: string): VectorIndex {
    return new VectorIndex(model)
  }

  /** A new index needs all changes if there is no snapshot; both are read in one round trip. */
  async loadSnapshot(where: SearchTarget, revision: number | undefined): Promise<ScopeIndexSnapshot | undefined> {
    if (this.answerFromCache(where, { ...newIndex, revision }) !== undefined) return undefined
    const [hasSnapshot, changes] = await Promise.all([
      this.reader.read<boolean>(where.scope, { read: 'hasSnapshot', index: indexName(where) }),
      this.readChanges(where, newIndex),
    ])
    if (!hasSnapshot) {
      this.readAhead.set(indexName(where), changes)
      return undefined
    }
    const [row] = await this.database.query<[Uint8Array | null]>(
      `SELECT ${this.database.schema}.load_snapshot($1, $2)`,
      [where.scope, indexName(where)],
      'always',
    )
    return decodeSnapshot(row?.[0] ?? undefined, yieldToEventLoop)
  }

  /** Saves an index once it has grown by a quarter. Failures are ignored: it can be built again from the messages. */
  async saveSnapshot(where: SearchTarget, index: ScopeIndex): Promise<void> {
    if (index.messageCount < this.minSnapshotMessages || index.messageCount < index.savedMessageCount * 1.25) return
    index.savedMessageCount = index.messageCount
    const { stamp, lineage } = index
    const snapshot = await runInSlices(index.snapshotInSteps(), yieldToEventLoop)
    const data = await compressInBackground(await runInSlices(encodeSnapshotInSteps(snapshot), yieldToEventLoop))
    const values = [where.scope, where.id ?? null, indexName(where), stamp, lineage, data]
    await this.database.call('save_snapshot', values).catch(() => undefined)
  }

  async readEntries(
    found: readonly SearchMatch[],
    revision: number | undefined,
  ): Promise<readonly (Entry | undefined)[]> {
    const cached = found.map((match) => this.findCached(match, revision))
    const missing = found.filter((_, at) => cached[at] === undefined)
    const scope = missing[0]?.key.scope
    if (scope === undefined) return cached
    const read = await this.reader.read<readonly (EntryAnswer | null)[]>(scope, {
      read: 'entries',
      entries: missing.map(({ key, id }) => [key.id, escapeText(id)]),
    })
    let next = 0
    return cached.map((entry) => entry ?? parseEntry(read[next++]))
  }

  private findCached({ key, id, sequence }: SearchMatch, revision: number | undefined): Entry | undefined {
    const cached = revision === undefined ? undefined : this.heads.peek(key, revision)
    if (cached === undefined) return undefined
    return sequence === 0 ? cached.derived.find((entry) => entry.id === id) : findInTail(cached, sequence)
  }

  /** The caller has just read the session, and the cache may hold all that the index lacks. */
  private answerFromCache(where: SearchTarget, { stamp, lastSequence, revision, sourceState }: IndexState) {
    if (where.id === undefined || revision === undefined) return undefined
    const key = { scope: where.scope, id: where.id } as Key
    const cached = this.heads.peek(key, revision)
    const messages = cached && messagesAfter(cached, lastSequence)
    if (cached === undefined || messages === undefined) return undefined
    const { epoch, removals, derivedVersion } = cached.row
    const known = sourceState as SessionState | undefined
    const derived = known?.derivedVersion === derivedVersion ? null : cached.derived
    return {
      // The stamp of the answer is unknown; the next request gets what the index has seen meanwhile again.
      stamp: Math.max(1, stamp),
      lineage: `${epoch}.${removals}`,
      sessions: known?.revision === revision ? [] : [key],
      contents: new Map([[formatKey(key), { messages, derived }]]),
      sourceState: { revision, derivedVersion } satisfies SessionState,
    }
  }

  private async readChanges(where: SearchTarget, state: IndexState): Promise<SourceChanges> {
    const { scope, id } = where
    const isNew = state.stamp === 0
    const known = isNew ? undefined : (state.sourceState as SessionState | undefined)
    const answer = await this.reader.read<ChangesAnswer>(scope, {
      read: 'changes',
      since: state.stamp,
      ...(id === undefined ? maxReadAlong.scope : { ...maxReadAlong.session, name: id, after: state.lastSequence }),
      ...known,
    })
    const contents = new Map<string, ReadAlong>()
    let sourceState: SessionState | undefined = known
    const sessions = answer.sessions.map(([name, revision, derivedVersion, messages, derived]) => {
      const key = { scope, id: name } as Key
      if (id !== undefined) sourceState = { revision, derivedVersion }
      if (messages === undefined) return key
      const parsed = messages?.map(parseMessage)
      contents.set(formatKey(key), { messages: parsed, derived: derived?.map(parseDerived) ?? null })
      if (id !== undefined && isNew && parsed !== undefined) this.heads.adoptTail(key, revision, parsed)
      return key
    })
    const { stamp, lineage } = answer
    return { stamp, lineage, sessions, contents, sourceState }
  }
}

type EntryAnswer = { readonly message: MessageCells } | { readonly derived: DerivedCells }

function parseEntry(answer: EntryAnswer | null | undefined): Entry | undefined {
  if (answer === null || answer === undefined) return undefined
  return 'message' in answer ? parseMessage(answer.message) : parseDerived(answer.derived)
}

function findInTail({ tail }: CachedSession, sequence: number): Entry | undefined {
  const message = tail[findMessageIndex(tail, sequence)]
  return message?.sequence === sequence ? message : undefined
}
