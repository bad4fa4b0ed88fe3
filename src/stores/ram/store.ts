import {
  checkEraseFilter,
  checkListFilter,
  checkPage,
  checkRecordRange,
  checkTarget,
} from '../../domain/checkStoreOptions.ts'
import { type Entry, getEntryText, isBlank, isInternal, type Message, parseMessageId } from '../../domain/entry.ts'
import { formatKey, type Key, parseStoredKey } from '../../domain/key.ts'
import type { EntryVector, SearchIndex, SearchTarget, Store, StoredVector, UnembeddedPage } from '../../domain/ports.ts'
import type { SessionChange } from '../../domain/session.ts'
import type { Pause } from '../../domain/work.ts'
import type { TextAnalysis } from '../../search/scopeIndex.ts'
import { StoreSearch } from '../../search/storeSearch.ts'
import { type IndexedVector, VectorIndex } from '../../search/vectorIndex.ts'
import type { RamSessionTable } from './sessionTable.ts'
import { RamTable } from './table.ts'

/** Memory of search indexes. The sessions take memory already, and indexing one again takes milliseconds. */
const maxIndexBytes = 32_000_000

/**
 * Adapts a session table to the `Store` and `Index` ports. Without vectors only lexical search works; the browser build
 * leaves them out.
 */
export function createRamStore(
  table: RamSessionTable,
  vectors?: RamVectors,
  analysis?: TextAnalysis,
  pause: Pause = async () => undefined,
): Store & SearchIndex {
  const finder = createFinder(table, vectors, analysis, pause)
  const rows = new RamTable()
  return {
    durability: 'ram',
    capabilities: { ...analysis },
    readHead: async (key, recent) => table.head(key, recent),
    readMessages: async (key, range) => {
      checkPage(range)
      return table.page(key, range)
    },
    findMessages: async (key, externalIds) => table.findMessages(key, externalIds),
    commit: async (change) => (vectors ?? table).commit(change),
    list: async (filter) => {
      checkListFilter(filter)
      return table.list(filter)
    },
    erase: async (key, only) => {
      checkEraseFilter(only)
      finder.drop(key.scope)
      const erasedIds = table.erase(key, only)
      vectors?.delete(key, erasedIds)
      return erasedIds
    },
    appendRecord: async (key, record, keep) => table.appendRecord(key, record, keep),
    records: async (key, range) => {
      checkRecordRange(range)
      return table.records(key, range.before ?? Number.POSITIVE_INFINITY, range.limit)
    },
    table: rows,
    search: (where, query) => finder.search(where, query),
    changesSince: async (where, since) => {
      checkTarget(where)
      return table.changes(where, since)
    },
    listUnembedded: async (model, after, limit) =>
      vectors?.unembedded(model, after, limit) ?? { entries: [], next: undefined },
    storeVectors: async (model, embedded) => vectors?.embed(model, embedded) ?? 0,
    readVectors: async (key, ids) => ids.map((id) => vectors?.readVector(key, id)),
    countVectors: async (model) => vectors?.embedded(model) ?? { done: 0, total: 0 },
    close: async () => {
      finder.clear()
      table.clear()
      vectors?.clear()
      rows.clear()
    },
  }
}

function createFinder(
  table: RamSessionTable,
  vectors: RamVectors | undefined,
  analysis: TextAnalysis | undefined,
  pause: Pause,
): StoreSearch {
  return new StoreSearch(
    {
      changes: async (where, { stamp }) => table.changes(where, stamp),
      readMessages: async (key, after, limit) => table.page(key, { after, limit }),
      readDerived: async (key) => table.head(key, 0).derived,
      readVectors: async (where, model, after, limit) =>
        vectors?.listVectors(where, model, after, limit) ?? { vectors: [], next: after },
      // Everything is in RAM already: no index snapshot is stored.
      loadSnapshot: async () => undefined,
      saveSnapshot: () => undefined,
      pause,
      readVector: async (key, id, model) => vectors?.getVector(key, id, model),
      createVectorIndex: (model) => vectors?.createVectorIndex(model),
      analysis,
      readEntries: async (found) => table.findEntries(found),
    },
    maxIndexBytes,
  )
}

type VectorRow = {
  readonly key: Key
  readonly id: string
  readonly model: string
  /** Increases with every stored vector. */
  readonly position: number
  readonly values: Float32Array
}

/** Vectors of the entries of a session table, newest last. */
export class RamVectors {
  private readonly table: RamSessionTable
  private readonly vectors = new Map<string, VectorRow>()
  private lastPosition = 0

  constructor(table: RamSessionTable) {
    this.table = table
  }

  unembedded(model: string, after: string, limit: number): UnembeddedPage {
    const entries: UnembeddedPage['entries'][number][] = []
    const [from = '', skip = '0'] = after.split(' ')
    for (const { key, name, epoch, all } of this.entries(from)) {
      for (let at = name === from ? Number(skip) : 0; at < all.length; at++) {
        const entry = all[at] as Entry
        if (!isEmbeddable(entry) || this.vectors.get(vectorKey(key, entry.id))?.model === model) continue
        entries.push({ key, id: entry.id, epoch, text: getEntryText(entry) })
        if (entries.length === limit) return { entries, next: `${name} ${at + 1}` }
      }
    }
    return { entries, next: undefined }
  }

  embed(model: string, vectors: readonly EntryVector[]): number {
    let stored = 0
    for (const { key, id, epoch, text, values } of vectors) {
      const entry = this.entry(key, id)
      if (epoch !== this.table.head(key, 0).epoch || entry === undefined || getEntryText(entry) !== text) continue
      const name = vectorKey(key, id)
      // Deletes first, so that the new vector moves to the end of the map.
      this.vectors.delete(name)
      this.vectors.set(name, { key, id, model, position: ++this.lastPosition, values: Float32Array.from(values) })
      stored++
    }
    return stored
  }

  embedded(model: string): { done: number; total: number } {
    let total = 0
    for (const { all } of this.entries()) for (const entry of all) if (isEmbeddable(entry)) total++
    return { done: [...this.vectors.values()].filter((vector) => vector.model === model).length, total }
  }

  listVectors(
    { scope, id }: SearchTarget,
    model: string,
    after: number,
    limit: number,
  ): { vectors: readonly IndexedVector[]; next: number } {
    const vectors: IndexedVector[] = []
    let next = after
    for (const vector of this.vectors.values()) {
      if (
        vector.position <= after ||
        vector.model !== model ||
        vector.key.scope !== scope ||
        (id !== undefined && vector.key.id !== id)
      )
        continue
      const entry = this.entry(vector.key, vector.id)
      if (entry === undefined) continue
      vectors.push({ key: vector.key, id: vector.id, kind: entry.kind, at: entry.at, values: vector.values })
      next = vector.position
      if (vectors.length === limit) break
    }
    return { vectors, next }
  }

  readVector(key: Key, id: string): StoredVector | undefined {
    const vector = this.vectors.get(vectorKey(key, id))
    return vector && { model: vector.model, values: Float32Array.from(vector.values) }
  }

  getVector(key: Key, id: string, model: string): Float32Array | undefined {
    const vector = this.vectors.get(vectorKey(key, id))
    return vector?.model === model ? vector.values : undefined
  }

  createVectorIndex(model: string): VectorIndex {
    return new VectorIndex(model)
  }

  /** Commits a change to the table and deletes the vectors of the entries it replaces or drops. */
  commit(change: SessionChange): readonly Message[] {
    const { key, replace = [], put, drop } = change
    if (this.vectors.size === 0 || replace.length + put.length + drop.length === 0) return this.table.commit(change)
    const { revision } = this.table.head(key, 0)
    const messages = this.table.commit(change)
    // A repeated change was applied earlier, and its entries may have new vectors by now.
    if (this.table.head(key, 0).revision === revision) return messages
    for (const { id } of [...replace, ...put]) this.vectors.delete(vectorKey(key, id))
    this.delete(key, drop)
    return messages
  }

  delete(key: Key, ids: readonly string[]): void {
    for (const id of ids) this.vectors.delete(vectorKey(key, id))
  }

  private entry(key: Key, id: string): Entry | undefined {
    const sequence = parseMessageId(id)
    if (sequence === undefined) return this.table.head(key, 0).derived.find((entry) => entry.id === id)
    return this.table.page(key, { after: sequence - 1, before: sequence + 1, limit: 1 })[0]
  }

  /** Iterates over all sessions by key, starting at `from`, with the entries of each. */
  private *entries(
    from = '',
  ): Iterable<{ readonly key: Key; readonly name: string; readonly epoch: number; readonly all: readonly Entry[] }> {
    const firstKey = from === '' ? [] : [parseStoredKey(from)]
    for (const key of [
      ...firstKey,
      ...this.table.list({ after: from, limit: Number.MAX_SAFE_INTEGER }).map((session) => session.key),
    ]) {
      const { epoch, derived, messages } = this.table.head(key, 0)
      yield { key, name: formatKey(key), epoch, all: [...this.table.page(key, { limit: messages }), ...derived] }
    }
  }

  clear(): void {
    this.vectors.clear()
  }
}

const isEmbeddable = (entry: Entry): boolean =>
  entry.kind === 'message' ? !isBlank(entry.content) : !isInternal(entry)

const vectorKey = (key: Key, id: string): string => `${formatKey(key)} ${id}`
