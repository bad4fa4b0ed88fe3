import type { Derived, Entry } from '../domain/entry.ts'
import { filesKey, isInner, type Key } from '../domain/key.ts'
import type { Changes, Hit, Query, Where } from '../domain/ports.ts'
import { Held, type HeldParts, type Indexed, type SearchMatch } from './scopeIndex.ts'
import type { Meaning, Pointed } from './vectorIndex.ts'

/** Read access that `Finder` needs from a store. */
export interface Findable {
  changes(where: Where, since: number): Promise<Changes>
  /** Reads up to `limit` messages after a sequence number, in order. */
  indexed(key: Key, after: number, limit: number): Promise<readonly Indexed[]>
  derived(key: Key): Promise<readonly Derived[]>
  /** Reads up to `limit` vectors of a model stored after a cursor. `next` is the cursor for the following call. */
  pointed(
    where: Where,
    model: string,
    after: number,
    limit: number,
  ): Promise<{ readonly vectors: readonly Pointed[]; readonly next: number }>
  /** Reads the current vector of an entry. */
  vector(key: Key, id: string, model: string): Promise<Float32Array | undefined>
  /** Creates a vector index for a model, or returns undefined if the store has no vectors. */
  meaning(model: string): Meaning | undefined
  /** Loads the last saved snapshot, if there is one. */
  load(where: Where): Promise<HeldParts | undefined>
  /** Saves a snapshot for the next start if it is worth it. Runs in the background. */
  save(where: Where, held: Held): void
  /** Yields to other work between two batches. */
  pause(): Promise<void>
  /** Reads entries by id; undefined for those that no longer exist. */
  entries(found: readonly SearchMatch[]): Promise<readonly (Entry | undefined)[]>
}

/** Messages or vectors read per batch, small enough not to block other work. */
const batchSize = 1_000

/**
 * Searches any store with indexes in memory. An index is built on the first search of a session or scope and updated from the
 * store's changes before each later one. Above the size limit the least recently searched indexes are dropped. Erasing anything
 * in a scope drops all its indexes.
 */
export class Finder {
  readonly #source: Findable
  readonly #maxSize: number
  /** Indexes by name, least recently used first. */
  readonly #indexes = new Map<string, Held>()
  #totalSize = 0

  /** `maxSize` limits the number of indexed texts and vectors. The index being searched is kept in any case. */
  constructor(source: Findable, maxSize = 2_000_000) {
    this.#source = source
    this.#maxSize = maxSize
  }

  async search(where: Where, query: Query): Promise<readonly Hit[]> {
    const index = this.#getOrCreate(where)
    const work = index.pending.then(() => this.#refreshAndSearch(index, where, query))
    index.pending = work.catch(() => undefined)
    const matches = await work
    const entries = await this.#source.entries(matches)
    return matches.flatMap(({ key, score, why }, at) => {
      const entry = entries[at]
      return entry === undefined ? [] : [{ key, entry, score, why }]
    })
  }

  /** Drops all indexes of a scope: they may contain erased text. */
  drop(scope: string): void {
    for (const name of [...this.#indexes.keys()]) if (name === scope || name.startsWith(`${scope}:`)) this.#delete(name)
  }

  clear(): void {
    this.#indexes.clear()
    this.#totalSize = 0
  }

  /** Updates the index from the store and searches it. Clears it on an error, so that no partial index remains. */
  async #refreshAndSearch(index: Held, where: Where, query: Query): Promise<readonly SearchMatch[]> {
    try {
      const changes = await this.#readChanges(index, where)
      for (const key of changes.sessions) {
        if (!isSearchable(where, key)) continue
        await this.#readSession(index, key)
        if (index.shouldPause(batchSize)) await this.#source.pause()
      }
      index.stamp = changes.stamp
      index.lineage = changes.lineage
      if (query.vector !== undefined) await this.#readVectors(index, where, query.vector.model)
    } catch (error) {
      index.clear()
      throw error
    }
    this.#evict(index, nameOf(where))
    this.#source.save(where, index)
    return index.search(query)
  }

  /** Returns what to read: everything for a new index, or if the lineage shows that something was erased. */
  async #readChanges(index: Held, where: Where): Promise<Changes> {
    const snapshot = index.stamp === 0 ? await this.#source.load(where) : undefined
    if (snapshot !== undefined) index.restore(snapshot)
    const changes = await this.#source.changes(where, index.stamp)
    if (index.stamp === 0 || changes.lineage === index.lineage) return changes
    index.clear()
    return this.#source.changes(where, 0)
  }

  async #readSession(index: Held, key: Key): Promise<void> {
    for (;;) {
      const messages = await this.#source.indexed(key, index.lastSequenceOf(key), batchSize)
      index.addMessages(key, messages)
      if (messages.length < batchSize) break
      if (index.shouldPause(batchSize)) await this.#source.pause()
    }
    index.setDerived(key, await this.#source.derived(key))
  }

  async #readVectors(index: Held, where: Where, model: string): Promise<void> {
    if (index.vectors?.model !== model) index.vectors = this.#source.meaning(model)
    for (const { key, entry } of index.takeChanged()) {
      const values = await this.#source.vector(key, entry.id, model)
      if (values !== undefined) index.addVectors([{ key, id: entry.id, kind: entry.kind, at: entry.at, values }])
    }
    while (index.vectors !== undefined) {
      const { vectors, next } = await this.#source.pointed(where, model, index.vectors.cursor, batchSize)
      index.addVectors(vectors.filter(({ key }) => isSearchable(where, key)))
      index.vectors.cursor = next
      if (vectors.length < batchSize) break
      await this.#source.pause()
    }
  }

  #getOrCreate(where: Where): Held {
    const name = nameOf(where)
    const index = this.#indexes.get(name) ?? new Held()
    this.#indexes.delete(name)
    this.#indexes.set(name, index)
    return index
  }

  /** Updates the total size and drops the least recently used indexes, but never the current one. */
  #evict(current: Held, currentName: string): void {
    if (this.#indexes.get(currentName) !== current) return
    this.#totalSize += current.size - current.countedSize
    current.countedSize = current.size
    for (const name of this.#indexes.keys()) {
      if (this.#totalSize <= this.#maxSize) return
      if (name !== currentName) this.#delete(name)
    }
  }

  #delete(name: string): void {
    this.#totalSize -= this.#indexes.get(name)?.countedSize ?? 0
    this.#indexes.delete(name)
  }
}

/** A scope search covers its sessions, its own memory and its files, but no other internal session of the engine. */
const isSearchable = (where: Where, key: Key): boolean =>
  where.id !== undefined || !isInner(key) || key.id === filesKey(key.scope).id

/** Name of a search target. The scope's own memory has an empty id and differs from the scope with all its sessions. */
export const nameOf = ({ scope, id }: Where): string => (id === undefined ? scope : `${scope}:${id}`)
