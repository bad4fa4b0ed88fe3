import { checkSearch } from '../domain/checkStoreOptions.ts'
import { type DerivedEntry, type Entry, getEntryText } from '../domain/entry.ts'
import { filesKey, formatKey, isInScope, isInternalKey, type Key } from '../domain/key.ts'
import { getOrCompute } from '../domain/keyed.ts'
import { LruCache } from '../domain/lruCache.ts'
import type { IndexChanges, IndexHit, IndexQuery, SearchTarget } from '../domain/ports.ts'
import { type Pause, runInSlices } from '../domain/work.ts'
import { type PassageRange, splitPassagesInSteps } from '../text/passages.ts'
import { indexName } from './indexName.ts'
import {
  type NearestEntry,
  ScopeIndex,
  type ScopeIndexSnapshot,
  type SearchableMessage,
  type SearchMatch,
  type TextAnalysis,
  vectorLimitOf,
} from './scopeIndex.ts'
import type { IndexedVector, VectorIndex } from './vectorIndex.ts'

/** Progress of an index. */
export type IndexState = {
  /** Stamp of the last answer; 0 for a new index. */
  readonly stamp: number
  /** Last indexed sequence number of a searched session. */
  readonly lastSequence: number
  /** Revision at which the caller has just read the searched session. */
  readonly revision: number | undefined
  /** State that the source attached to its last answer. */
  readonly sourceState: unknown
}

/** Content of a changed session that a source has read along with the changes. */
export type ReadAlong = {
  /** All messages that the index lacks; absent if they are too many. */
  readonly messages?: readonly SearchableMessage[] | undefined
  /** All derived entries; null if they have not changed. */
  readonly derived: readonly DerivedEntry[] | null
}

/** Changes since a stamp; a source that is far away reads the content of changed sessions along with them. */
export type SourceChanges = IndexChanges & {
  /** By formatted key. */
  readonly contents?: ReadonlyMap<string, ReadAlong>
  /** Handed back with the next request for the same index. */
  readonly sourceState?: unknown
}

/** Read access that `Finder` needs from a store. */
export interface SearchSource {
  changes(where: SearchTarget, state: IndexState): Promise<SourceChanges>
  /** Reads up to `limit` messages after a sequence number, in order. */
  readMessages(key: Key, after: number, limit: number): Promise<readonly SearchableMessage[]>
  readDerived(key: Key): Promise<readonly DerivedEntry[]>
  /** Reads up to `limit` vectors of a model stored after a cursor. `next` is the cursor for the following call. */
  readVectors(
    where: SearchTarget,
    model: string,
    after: number,
    limit: number,
  ): Promise<{ readonly vectors: readonly IndexedVector[]; readonly next: number }>
  /** Reads the current vector of an entry. */
  readVector(key: Key, id: string, model: string): Promise<Float32Array | undefined>
  /** Creates a vector index for a model, or returns undefined if the store has no vectors. */
  createVectorIndex(model: string): VectorIndex | undefined
  /** Loads the last saved snapshot, if there is one. The caller has just read the session at the given revision. */
  loadSnapshot(where: SearchTarget, revision: number | undefined): Promise<ScopeIndexSnapshot | undefined>
  /** Saves a snapshot for the next start if it is worth it. The index does not change meanwhile. */
  saveSnapshot(where: SearchTarget, index: ScopeIndex): void | Promise<void>
  /** Yields to other work between two batches. */
  readonly pause: Pause
  readonly analysis?: TextAnalysis | undefined
  /**
   * Finds the entries that are nearest to the query's vector, nearest first, if the source does so better than a
   * comparison of all vectors. Undefined if it does not.
   */
  findNearest?(where: SearchTarget, query: IndexQuery, limit: number): Promise<readonly NearestEntry[] | undefined>
  /**
   * Reads entries by id; undefined for those that no longer exist. The caller has just read the searched session at the
   * given revision.
   */
  readEntries(found: readonly SearchMatch[], revision: number | undefined): Promise<readonly (Entry | undefined)[]>
}

/** Messages and vectors read per batch, few enough not to block other work. */
const messageBatch = 64
const vectorBatch = 1_000
/** Larger indexes are ranked in a turn of the event loop of their own. */
const maxMessagesPerTurn = 1_000

/** The index of a conversation of 60 messages takes about 1 MB, and 3 ms to build again after it was dropped. */
const defaultMaxBytes = 64_000_000

/**
 * Searches any store with indexes in memory. An index is built on the first search of a session or scope and updated
 * from the store's changes before each later one. Above the size limit the least recently searched indexes are dropped.
 * Erasing anything in a scope drops all its indexes.
 */
export class StoreSearch {
  readonly #source: SearchSource
  /** Indexes by name. */
  readonly #indexes: LruCache<string, ScopeIndex>

  /** `maxBytes` limits the estimated memory of all indexes. The index being searched is kept in any case. */
  constructor(source: SearchSource, maxBytes = defaultMaxBytes) {
    this.#source = source
    this.#indexes = new LruCache({ maxTotalSize: maxBytes })
  }

  /** Messages added to indexes so far. */
  indexedMessages = 0

  /** Estimated memory of all indexes. */
  get bytes(): number {
    return this.#indexes.totalSize
  }

  async search(where: SearchTarget, query: IndexQuery): Promise<readonly IndexHit[]> {
    checkSearch(where, query)
    const index = getOrCompute(this.#indexes, indexName(where), () => new ScopeIndex(this.#source.analysis))
    const work = index.pending.then(() => this.#refreshAndSearch(index, where, query))
    // The result does not wait for the snapshot; the next search of this index does.
    index.pending = work.then(() => this.#source.saveSnapshot(where, index)).catch(() => undefined)
    const matches = await work
    // A long entry matches with many passages; it is read and split once.
    const found = new Map(matches.map((match) => [entryName(match), match]))
    const entries = await this.#source.readEntries([...found.values()], query.revision)
    const byName = new Map([...found.keys()].map((name, at) => [name, entries[at]]))
    const passagesOf = new Map<Entry, readonly PassageRange[]>()
    for (const entry of byName.values())
      if (entry !== undefined) {
        const work = splitPassagesInSteps(getEntryText(entry))
        passagesOf.set(entry, await runInSlices(work, () => this.#source.pause()))
      }
    return matches.flatMap((match) => {
      const entry = byName.get(entryName(match))
      if (entry === undefined) return []
      const { key, passage, score, why } = match
      const range = passagesOf.get(entry)?.[passage]
      return [{ key, entry, score, why, ...(range && { passage: range }) }]
    })
  }

  /** Drops all indexes of a scope: they may contain erased text. */
  drop(scope: string): void {
    this.#indexes.deleteWhere((name) => isInScope(name, scope))
  }

  clear(): void {
    this.#indexes.clear()
  }

  /** Updates the index from the store and searches it. Clears it on an error, so that no partial index remains. */
  async #refreshAndSearch(index: ScopeIndex, where: SearchTarget, query: IndexQuery): Promise<readonly SearchMatch[]> {
    let nearest: readonly NearestEntry[] | undefined
    try {
      let changes = await this.#readChanges(index, where, query.revision)
      await this.#readSessions(index, where, changes)
      if (index.takeLanguageChange()) {
        index.clear()
        changes = await this.#source.changes(where, stateOf(index, where, query.revision))
        await this.#readSessions(index, where, changes)
      }
      index.stamp = changes.stamp
      index.lineage = changes.lineage
      index.sourceState = changes.sourceState
      nearest = query.vector && (await this.#source.findNearest?.(where, query, vectorLimitOf(query)))
      if (query.vector !== undefined && nearest === undefined) await this.#readVectors(index, where, query.vector.model)
    } catch (error) {
      index.clear()
      throw error
    }
    const name = indexName(where)
    // An index that was dropped meanwhile must not return.
    if (this.#indexes.peek(name) === index) this.#indexes.set(name, index, index.bytes)
    if (index.messageCount > maxMessagesPerTurn) await this.#source.pause()
    return runInSlices(index.searchInSteps(query, nearest), () => this.#source.pause())
  }

  /** Returns what to read: everything for a new index, or if the lineage shows that something was erased. */
  async #readChanges(index: ScopeIndex, where: SearchTarget, revision: number | undefined): Promise<SourceChanges> {
    const snapshot = index.stamp === 0 ? await this.#source.loadSnapshot(where, revision) : undefined
    if (snapshot !== undefined) for (const _ of index.restore(snapshot)) await this.#source.pause()
    const changes = await this.#source.changes(where, stateOf(index, where, revision))
    if (index.stamp === 0 || changes.lineage === index.lineage) return changes
    index.clear()
    return this.#source.changes(where, stateOf(index, where, revision))
  }

  async #readSessions(index: ScopeIndex, where: SearchTarget, { sessions, contents }: SourceChanges): Promise<void> {
    let messages = 0
    for (const key of sessions) {
      if (!isSearchable(where, key)) continue
      messages += await this.#readSession(index, key, contents?.get(formatKey(key)))
      if (messages < messageBatch) continue
      await this.#source.pause()
      messages = 0
    }
  }

  /** Returns the number of messages read since the last pause, at least 1. */
  async #readSession(index: ScopeIndex, key: Key, content: ReadAlong | undefined): Promise<number> {
    let messages: readonly SearchableMessage[]
    for (;;) {
      const last = index.lastSequenceOf(key)
      messages =
        content?.messages?.filter(({ sequence }) => sequence > last) ??
        (await this.#source.readMessages(key, last, messageBatch))
      await runInSlices(index.addMessagesInSteps(key, messages), () => this.#source.pause())
      this.indexedMessages += messages.length
      if (content?.messages !== undefined || messages.length < messageBatch) break
      await this.#source.pause()
    }
    const derived = content === undefined ? await this.#source.readDerived(key) : content.derived
    if (derived !== null) await runInSlices(index.setDerivedInSteps(key, derived), () => this.#source.pause())
    return messages.length + 1
  }

  async #readVectors(index: ScopeIndex, where: SearchTarget, model: string): Promise<void> {
    if (index.vectors?.model !== model) index.vectors = this.#source.createVectorIndex(model)
    for (const { key, entry } of index.takeChanged()) {
      const values = await this.#source.readVector(key, entry.id, model)
      if (values !== undefined) index.addVectors([{ key, id: entry.id, kind: entry.kind, at: entry.at, values }])
    }
    while (index.vectors !== undefined) {
      const { vectors, next } = await this.#source.readVectors(where, model, index.vectors.cursor, vectorBatch)
      index.addVectors(vectors.filter(({ key }) => isSearchable(where, key)))
      const isAtEnd = vectors.length < vectorBatch || next === index.vectors.cursor
      index.vectors.cursor = next
      if (isAtEnd) break
      await this.#source.pause()
    }
  }
}

const stateOf = (index: ScopeIndex, { scope, id }: SearchTarget, revision: number | undefined): IndexState => ({
  stamp: index.stamp,
  lastSequence: id === undefined ? 0 : index.lastSequenceOf({ scope, id } as Key),
  revision: id === undefined ? undefined : revision,
  sourceState: index.sourceState,
})

const entryName = ({ key, id }: SearchMatch): string => `${formatKey(key)} ${id}`

/** A scope search covers its sessions, its own memory and its files, but no other internal session of the engine. */
const isSearchable = (where: SearchTarget, key: Key): boolean =>
  where.id !== undefined || !isInternalKey(key) || key.id === filesKey(key.scope).id
