import { type Entry, isBlank, isSilent, type Message, sequenceOf, textOf } from '../../domain/entry.ts'
import { formatKey, type Key, parseStoredKey } from '../../domain/key.ts'
import type { Embedded, Unembedded, Where } from '../../domain/ports.ts'
import type { Change } from '../../domain/session.ts'
import { Meaning, type Pointed } from '../../search/meaning.ts'
import type { RamShelf } from './shelf.ts'

type Kept = {
  readonly key: Key
  readonly id: string
  readonly model: string
  readonly place: number
  readonly values: Float32Array
}

/** The vectors of what is on a shelf, newest last. */
export class RamVectors {
  private readonly shelf: RamShelf
  private readonly kept = new Map<string, Kept>()
  private places = 0

  constructor(shelf: RamShelf) {
    this.shelf = shelf
  }

  unembedded(model: string, after: string, limit: number): Unembedded {
    const entries: Unembedded['entries'][number][] = []
    const [from = '', skip = '0'] = after.split(' ')
    for (const { key, name, epoch, all } of this.entries(from)) {
      for (let at = name === from ? Number(skip) : 0; at < all.length; at++) {
        const entry = all[at] as Entry
        if (!isEmbeddable(entry) || this.kept.get(nameOf(key, entry.id))?.model === model) continue
        entries.push({ key, id: entry.id, epoch, text: textOf(entry) })
        if (entries.length === limit) return { entries, next: `${name} ${at + 1}` }
      }
    }
    return { entries, next: undefined }
  }

  embed(model: string, vectors: readonly Embedded[]): number {
    let kept = 0
    for (const { key, id, epoch, text, values } of vectors) {
      const entry = this.entry(key, id)
      if (epoch !== this.shelf.head(key, 0).epoch || entry === undefined || textOf(entry) !== text) continue
      const name = nameOf(key, id)
      this.kept.delete(name)
      this.kept.set(name, { key, id, model, place: ++this.places, values: Float32Array.from(values) })
      kept++
    }
    return kept
  }

  embedded(model: string): { done: number; total: number } {
    let total = 0
    for (const { all } of this.entries()) for (const entry of all) if (isEmbeddable(entry)) total++
    return { done: [...this.kept.values()].filter((vector) => vector.model === model).length, total }
  }

  pointed(
    { scope, id }: Where,
    model: string,
    after: number,
    limit: number,
  ): { vectors: readonly Pointed[]; next: number } {
    const vectors: Pointed[] = []
    let next = after
    for (const vector of this.kept.values()) {
      if (
        vector.place <= after ||
        vector.model !== model ||
        vector.key.scope !== scope ||
        (id !== undefined && vector.key.id !== id)
      )
        continue
      const entry = this.entry(vector.key, vector.id)
      if (entry === undefined) continue
      vectors.push({ key: vector.key, id: vector.id, kind: entry.kind, at: entry.at, values: vector.values })
      next = vector.place
      if (vectors.length === limit) break
    }
    return { vectors, next }
  }

  vector(key: Key, id: string, model: string): Float32Array | undefined {
    const vector = this.kept.get(nameOf(key, id))
    return vector?.model === model ? vector.values : undefined
  }

  meaning(model: string): Meaning {
    return new Meaning(model)
  }

  /** Brings a change onto the shelf, and forgets the vectors of what it puts anew or drops. */
  commit(change: Change): readonly Message[] {
    const { key, put, drop } = change
    if (this.kept.size === 0 || put.length + drop.length === 0) return this.shelf.commit(change)
    const { revision } = this.shelf.head(key, 0)
    const messages = this.shelf.commit(change)
    // What comes again was done before, and what it put may have its vector by now.
    if (this.shelf.head(key, 0).revision === revision) return messages
    for (const { id } of put) this.kept.delete(nameOf(key, id))
    this.forget(key, drop)
    return messages
  }

  forget(key: Key, ids: readonly string[]): void {
    for (const id of ids) this.kept.delete(nameOf(key, id))
  }

  private entry(key: Key, id: string): Entry | undefined {
    const sequence = sequenceOf(id)
    if (sequence === undefined) return this.shelf.head(key, 0).derived.find((entry) => entry.id === id)
    return this.shelf.page(key, { after: sequence - 1, before: sequence + 1, limit: 1 })[0]
  }

  /** Every entry, by session in order of their keys. */
  private *entries(
    from = '',
  ): Iterable<{ readonly key: Key; readonly name: string; readonly epoch: number; readonly all: readonly Entry[] }> {
    const begun = from === '' ? [] : [parseStoredKey(from)]
    for (const key of [
      ...begun,
      ...this.shelf.list({ after: from, limit: Number.MAX_SAFE_INTEGER }).map((session) => session.key),
    ]) {
      const { epoch, derived, messages } = this.shelf.head(key, 0)
      yield { key, name: formatKey(key), epoch, all: [...this.shelf.page(key, { limit: messages }), ...derived] }
    }
  }

  clear(): void {
    this.kept.clear()
  }
}

const isEmbeddable = (entry: Entry): boolean => (entry.kind === 'message' ? !isBlank(entry.content) : !isSilent(entry))

const nameOf = (key: Key, id: string): string => `${formatKey(key)} ${id}`
