import type { Derived, Entry } from '../domain/entry.ts'
import { filesKey, isInner, type Key } from '../domain/key.ts'
import type { Changes, Hit, Query, Where } from '../domain/ports.ts'
import { type Found, Held, type HeldParts, type Indexed } from './held.ts'
import type { Meaning, Pointed } from './meaning.ts'

/** What a finder reads of a store. */
export interface Findable {
  changes(where: Where, since: number): Promise<Changes>
  /** Messages after a sequence number, in order, so many at most. */
  indexed(key: Key, after: number, limit: number): Promise<readonly Indexed[]>
  derived(key: Key): Promise<readonly Derived[]>
  /** Vectors of a model that were kept after a place, with the place to go on from. */
  pointed(
    where: Where,
    model: string,
    after: number,
    limit: number,
  ): Promise<{ readonly vectors: readonly Pointed[]; readonly next: number }>
  /** The vector an entry has of a model now. */
  vector(key: Key, id: string, model: string): Promise<Float32Array | undefined>
  /** Where vectors of a model are compared; undefined if there are none. */
  meaning(model: string): Meaning | undefined
  /** What was held of it earlier; undefined if nothing is kept. */
  load(where: Where): Promise<HeldParts | undefined>
  /** Keeps what is held for a later start, if it is worth it; nobody waits for it. */
  save(where: Where, held: Held): void
  /** Lets others have their turn while much is being read. */
  pause(): Promise<void>
  /** Entries by their ids; what is gone is left out. */
  entries(found: readonly Found[]): Promise<readonly (Entry | undefined)[]>
}

/** So many messages are read at once, so that nobody waits long for their turn. */
const piece = 1_000

/**
 * Searches any store from RAM: what is asked for is read once, then followed as it changes. What was searched longest
 * ago goes when there is too much of it; whatever is forgotten takes all that was held with it.
 */
export class Finder {
  readonly #source: Findable
  readonly #room: number
  readonly #held = new Map<string, Held>()
  #total = 0

  /** `room` bounds how many texts and vectors are held; what is being searched is held in any case. */
  constructor(source: Findable, room = 2_000_000) {
    this.#source = source
    this.#room = room
  }

  async search(where: Where, query: Query): Promise<readonly Hit[]> {
    const held = this.#take(where)
    const work = held.busy.then(() => this.#refreshed(held, where, query))
    held.busy = work.catch(() => undefined)
    const found = await work
    const entries = await this.#source.entries(found)
    return found.flatMap(({ key, score, why }, at) => {
      const entry = entries[at]
      return entry === undefined ? [] : [{ key, entry, score, why }]
    })
  }

  /** Lets go of everything held of a scope: it may hold what has just been forgotten. */
  drop(scope: string): void {
    for (const name of [...this.#held.keys()]) if (name === scope || name.startsWith(`${scope}:`)) this.#letGo(name)
  }

  clear(): void {
    this.#held.clear()
    this.#total = 0
  }

  /** Brings what is held to what there is now, and searches it; after an error nothing half-read is left. */
  async #refreshed(held: Held, where: Where, query: Query): Promise<readonly Found[]> {
    try {
      const changes = await this.#changes(held, where)
      for (const key of changes.sessions) {
        if (!isSearched(where, key)) continue
        await this.#read(held, key)
        if (held.isRested(piece)) await this.#source.pause()
      }
      held.stamp = changes.stamp
      held.lineage = changes.lineage
      if (query.vector !== undefined) await this.#point(held, where, query.vector.model)
    } catch (error) {
      held.clear()
      throw error
    }
    this.#tidy(held, nameOf(where))
    this.#source.save(where, held)
    return held.search(query)
  }

  /** What to read: everything if nothing is held, or if what is held may hold what has gone. */
  async #changes(held: Held, where: Where): Promise<Changes> {
    const earlier = held.stamp === 0 ? await this.#source.load(where) : undefined
    if (earlier !== undefined) held.adopt(earlier)
    const changes = await this.#source.changes(where, held.stamp)
    if (held.stamp === 0 || changes.lineage === held.lineage) return changes
    held.clear()
    return this.#source.changes(where, 0)
  }

  async #read(held: Held, key: Key): Promise<void> {
    for (;;) {
      const messages = await this.#source.indexed(key, held.reachedOf(key), piece)
      held.hear(key, messages)
      if (messages.length < piece) break
      if (held.isRested(piece)) await this.#source.pause()
    }
    held.learn(key, await this.#source.derived(key))
  }

  async #point(held: Held, where: Where, model: string): Promise<void> {
    if (held.meaning?.model !== model) held.meaning = this.#source.meaning(model)
    for (const { key, entry } of held.doubtful()) {
      const values = await this.#source.vector(key, entry.id, model)
      if (values !== undefined) held.point([{ key, id: entry.id, kind: entry.kind, at: entry.at, values }])
    }
    while (held.meaning !== undefined) {
      const { vectors, next } = await this.#source.pointed(where, model, held.meaning.cursor, piece)
      held.point(vectors.filter(({ key }) => isSearched(where, key)))
      held.meaning.cursor = next
      if (vectors.length < piece) break
      await this.#source.pause()
    }
  }

  #take(where: Where): Held {
    const name = nameOf(where)
    const held = this.#held.get(name) ?? new Held()
    this.#held.delete(name)
    this.#held.set(name, held)
    return held
  }

  #tidy(kept: Held, keptAs: string): void {
    if (this.#held.get(keptAs) !== kept) return
    this.#total += kept.size - kept.counted
    kept.counted = kept.size
    for (const name of this.#held.keys()) {
      if (this.#total <= this.#room) return
      if (name !== keptAs) this.#letGo(name)
    }
  }

  #letGo(name: string): void {
    this.#total -= this.#held.get(name)?.counted ?? 0
    this.#held.delete(name)
  }
}

/** A whole scope is its sessions, its own memory and its files; what the engine keeps besides is nobody's answer. */
const isSearched = (where: Where, key: Key): boolean =>
  where.id !== undefined || !isInner(key) || key.id === filesKey(key.scope).id

/** A scope's own memory has an empty id, and is not the scope with all its sessions. */
export const nameOf = ({ scope, id }: Where): string => (id === undefined ? scope : `${scope}:${id}`)
