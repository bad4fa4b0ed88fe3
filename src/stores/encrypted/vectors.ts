import { type Entry, isBlank, type Millis, type Place, sequenceOf, textOf } from '../../domain/entry.ts'
import { formatKey, type Key, parseStoredKey } from '../../domain/key.ts'
import type { Embedded, Store, Unembedded, Where } from '../../domain/ports.ts'
import { countBetween, type Head } from '../../domain/session.ts'
import type { Pointed } from '../../search/meaning.ts'

/** What is read of a store, opened. */
export type Opened = Pick<Store, 'head' | 'page' | 'list'>

type Kept = Pointed & { readonly model: string; readonly epoch: number; readonly place: number }
/** An entry on the walk through a store, and where to go on behind it. */
type Step = { readonly key: Key; readonly epoch: number; readonly entry: Entry; readonly next: string }

const piece = 1_000

/**
 * Vectors in the memory of this process and nowhere else, newest last. A vector tells what a text is about nearly as
 * well as the text itself, and a store that can compare vectors can read them: so none are given to it.
 */
export class SealedVectors {
  private readonly store: Opened
  private readonly kept = new Map<string, Kept>()
  private places = 0

  constructor(store: Opened) {
    this.store = store
  }

  async unembedded(model: string, after: string, limit: number): Promise<Unembedded> {
    const entries: Unembedded['entries'][number][] = []
    for await (const { key, epoch, entry, next } of this.walk(after)) {
      if (this.has(model, key, epoch, entry)) continue
      entries.push({ key, id: entry.id, epoch, text: textOf(entry) })
      if (entries.length >= limit) return { entries, next }
    }
    return { entries, next: undefined }
  }

  async embed(model: string, vectors: readonly Embedded[]): Promise<number> {
    const entries = await entriesOf(this.store, vectors)
    const heads = headsOf(this.store)
    let kept = 0
    for (const [at, { key, id, epoch, text, values }] of vectors.entries()) {
      const entry = entries[at]
      if (entry === undefined || textOf(entry) !== text || (await heads(key)).epoch !== epoch) continue
      const name = nameOf(key, id)
      this.kept.delete(name)
      this.kept.set(name, {
        key,
        id,
        kind: entry.kind,
        at: entry.at,
        model,
        epoch,
        place: ++this.places,
        values: Float32Array.from(values),
      })
      kept++
    }
    return kept
  }

  vector(key: Key, id: string, model: string): Float32Array | undefined {
    const vector = this.kept.get(nameOf(key, id))
    return vector?.model === model ? vector.values : undefined
  }

  async embedded(model: string): Promise<{ done: number; total: number }> {
    const count = { done: 0, total: 0 }
    for await (const { key, epoch, entry } of this.walk('')) {
      count.total++
      if (this.has(model, key, epoch, entry)) count.done++
    }
    return count
  }

  /** Vectors kept after a place; those whose entry was forgotten by somebody else meanwhile are let go. */
  async pointed(
    { scope, id }: Where,
    model: string,
    after: number,
    limit: number,
  ): Promise<{ vectors: readonly Pointed[]; next: number }> {
    const vectors: Pointed[] = []
    const heads = headsOf(this.store)
    let next = after
    for (const [name, vector] of this.kept) {
      if (
        vector.place <= after ||
        vector.model !== model ||
        vector.key.scope !== scope ||
        (id !== undefined && vector.key.id !== id)
      )
        continue
      if (!isThere(await heads(vector.key), vector)) {
        this.kept.delete(name)
        continue
      }
      vectors.push(vector)
      next = vector.place
      if (vectors.length === limit) break
    }
    return { vectors, next }
  }

  forget(key: Key, ids: readonly string[]): void {
    for (const id of ids) this.kept.delete(nameOf(key, id))
  }

  clear(): void {
    this.kept.clear()
  }

  private has(model: string, key: Key, epoch: number, { id, at }: Entry): boolean {
    const vector = this.kept.get(nameOf(key, id))
    return vector !== undefined && vector.model === model && vector.epoch === epoch && vector.at === at
  }

  /** Every entry that says something, by session in order of their keys. */
  private async *walk(from: string): AsyncGenerator<Step> {
    const [begun = '', reached = '0', known = '0'] = from.split(' ')
    if (begun !== '') yield* this.session(parseStoredKey(begun), Number(reached), Number(known))
    for (let after = begun; ; ) {
      const listed = await this.store.list({ after, limit: piece })
      for (const { key } of listed) {
        yield* this.session(key, 0, 0)
        after = formatKey(key)
      }
      if (listed.length < piece) return
    }
  }

  private async *session(key: Key, after: number, known: number): AsyncGenerator<Step> {
    // the head first: what is read after the session was begun anew then has too old an epoch, and no vector is kept for it
    const { epoch, derived } = await this.store.head(key, 0)
    const step = (entry: Entry, reached: number, place: number): Step => ({
      key,
      epoch,
      entry,
      next: `${formatKey(key)} ${reached} ${place}`,
    })
    let reached = after
    for (let more = true; more; ) {
      const messages = await this.store.page(key, { after: reached, limit: piece })
      for (const message of messages) {
        reached = message.sequence
        if (!isBlank(message.content)) yield step(message, reached, known)
      }
      more = messages.length === piece
    }
    for (const [place, entry] of derived.entries())
      if (place >= known && !isBlank(textOf(entry))) yield step(entry, reached, place + 1)
  }
}

/** Entries by where they live; undefined for what is gone. */
export function entriesOf(store: Opened, places: readonly Place[]): Promise<readonly (Entry | undefined)[]> {
  const heads = headsOf(store)
  const read = async ({ key, id }: Place): Promise<Entry | undefined> => {
    const sequence = sequenceOf(id)
    const [message] =
      sequence === undefined ? [] : await store.page(key, { after: sequence - 1, before: sequence + 1, limit: 1 })
    return message ?? (await heads(key)).derived.find((entry) => entry.id === id)
  }
  return Promise.all(places.map(read))
}

/** Reads each head once. */
function headsOf(store: Opened): (key: Key) => Promise<Head> {
  const heads = new Map<string, Promise<Head>>()
  return (key) => {
    const name = formatKey(key)
    const head = heads.get(name) ?? store.head(key, 0)
    heads.set(name, head)
    return head
  }
}

function isThere({ epoch, last, gaps, derived }: Head, vector: Kept): boolean {
  if (epoch !== vector.epoch) return false
  const sequence = sequenceOf(vector.id)
  if (sequence !== undefined && vector.kind === 'message')
    return sequence <= last && countBetween(gaps, sequence, sequence) === 1
  return derived.some(({ id, at }: { id: string; at: Millis }) => id === vector.id && at === vector.at)
}

const nameOf = (key: Key, id: string): string => `${formatKey(key)} ${id}`
