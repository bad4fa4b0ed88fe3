import {
  type Entry,
  type EntryAddress,
  getEntryText,
  isBlank,
  type Millis,
  parseMessageId,
} from '../../domain/entry.ts'
import { formatKey, type Key, parseStoredKey } from '../../domain/key.ts'
import type { EntryVector, SearchTarget, Store, StoredVector, UnembeddedPage } from '../../domain/ports.ts'
import { countExisting, type SessionHead } from '../../domain/session.ts'
import type { IndexedVector } from '../../search/vectorIndex.ts'

/** Read methods of a store whose entries are decrypted. */
export type DecryptedStore = Pick<Store, 'readHead' | 'readMessages' | 'list'>

type VectorRow = IndexedVector & { readonly model: string; readonly epoch: number; readonly position: number }
/** An entry, and the cursor that continues after it: key, last sequence number, number of derived entries seen. */
type WalkStep = { readonly key: Key; readonly epoch: number; readonly entry: Entry; readonly next: string }

const pageSize = 1_000

/**
 * Vectors in the memory of this process, newest last. They are never given to the inner store: a vector reveals nearly
 * as much as its text, and a store can only compare vectors that it can read.
 */
export class EncryptedStoreVectors {
  private readonly store: DecryptedStore
  private readonly vectors = new Map<string, VectorRow>()
  private lastPosition = 0

  constructor(store: DecryptedStore) {
    this.store = store
  }

  async unembedded(model: string, after: string, limit: number): Promise<UnembeddedPage> {
    const entries: UnembeddedPage['entries'][number][] = []
    for await (const { key, epoch, entry, next } of this.walk(after)) {
      if (this.hasVector(model, key, epoch, entry)) continue
      entries.push({ key, id: entry.id, epoch, text: getEntryText(entry) })
      if (entries.length >= limit) return { entries, next }
    }
    return { entries, next: undefined }
  }

  async embed(model: string, vectors: readonly EntryVector[]): Promise<number> {
    const entries = await readEntries(this.store, vectors)
    const readHead = createHeadReader(this.store)
    let stored = 0
    for (const [at, { key, id, epoch, text, values }] of vectors.entries()) {
      const entry = entries[at]
      if (entry === undefined || getEntryText(entry) !== text || (await readHead(key)).epoch !== epoch) continue
      const name = vectorKey(key, id)
      this.vectors.delete(name)
      this.vectors.set(name, {
        key,
        id,
        kind: entry.kind,
        at: entry.at,
        model,
        epoch,
        position: ++this.lastPosition,
        values: Float32Array.from(values),
      })
      stored++
    }
    return stored
  }

  readVector(key: Key, id: string): StoredVector | undefined {
    const vector = this.vectors.get(vectorKey(key, id))
    return vector && { model: vector.model, values: Float32Array.from(vector.values) }
  }

  getVector(key: Key, id: string, model: string): Float32Array | undefined {
    const vector = this.vectors.get(vectorKey(key, id))
    return vector?.model === model ? vector.values : undefined
  }

  async embedded(model: string): Promise<{ done: number; total: number }> {
    const count = { done: 0, total: 0 }
    for await (const { key, epoch, entry } of this.walk('')) {
      count.total++
      if (this.hasVector(model, key, epoch, entry)) count.done++
    }
    return count
  }

  /** Lists vectors after a position. Deletes those whose entry another process has erased meanwhile. */
  async listVectors(
    { scope, id }: SearchTarget,
    model: string,
    after: number,
    limit: number,
  ): Promise<{ vectors: readonly IndexedVector[]; next: number }> {
    const vectors: IndexedVector[] = []
    const readHead = createHeadReader(this.store)
    let next = after
    for (const [name, vector] of this.vectors) {
      if (
        vector.position <= after ||
        vector.model !== model ||
        vector.key.scope !== scope ||
        (id !== undefined && vector.key.id !== id)
      )
        continue
      if (!isCurrent(await readHead(vector.key), vector)) {
        this.vectors.delete(name)
        continue
      }
      vectors.push(vector)
      next = vector.position
      if (vectors.length === limit) break
    }
    return { vectors, next }
  }

  delete(key: Key, ids: readonly string[]): void {
    for (const id of ids) this.vectors.delete(vectorKey(key, id))
  }

  clear(): void {
    this.vectors.clear()
  }

  private hasVector(model: string, key: Key, epoch: number, { id, at }: Entry): boolean {
    const vector = this.vectors.get(vectorKey(key, id))
    return vector !== undefined && vector.model === model && vector.epoch === epoch && vector.at === at
  }

  /** Iterates over all entries with text, by session key, from a cursor. */
  private async *walk(cursor: string): AsyncGenerator<WalkStep> {
    const [firstKey = '', sequence = '0', derivedSeen = '0'] = cursor.split(' ')
    if (firstKey !== '') yield* this.walkSession(parseStoredKey(firstKey), Number(sequence), Number(derivedSeen))
    for (let after = firstKey; ; ) {
      const listed = await this.store.list({ after, limit: pageSize })
      for (const { key } of listed) {
        yield* this.walkSession(key, 0, 0)
        after = formatKey(key)
      }
      if (listed.length < pageSize) return
    }
  }

  private async *walkSession(key: Key, after: number, derivedSeen: number): AsyncGenerator<WalkStep> {
    // Reads the head first: if the session is erased and created again meanwhile, its entries get an old epoch and no
    // vector is stored.
    const { epoch, derived } = await this.store.readHead(key, 0)
    const step = (entry: Entry, sequence: number, seen: number): WalkStep => ({
      key,
      epoch,
      entry,
      next: `${formatKey(key)} ${sequence} ${seen}`,
    })
    let sequence = after
    for (let more = true; more; ) {
      const messages = await this.store.readMessages(key, { after: sequence, limit: pageSize })
      for (const message of messages) {
        sequence = message.sequence
        if (!isBlank(message.content)) yield step(message, sequence, derivedSeen)
      }
      more = messages.length === pageSize
    }
    for (const [index, entry] of derived.entries())
      if (index >= derivedSeen && !isBlank(getEntryText(entry))) yield step(entry, sequence, index + 1)
  }
}

/** Reads entries by location; undefined for entries that no longer exist. */
export function readEntries(
  store: DecryptedStore,
  locations: readonly EntryAddress[],
): Promise<readonly (Entry | undefined)[]> {
  const readHead = createHeadReader(store)
  const read = async ({ key, id }: EntryAddress): Promise<Entry | undefined> => {
    const sequence = parseMessageId(id)
    const [message] =
      sequence === undefined
        ? []
        : await store.readMessages(key, { after: sequence - 1, before: sequence + 1, limit: 1 })
    return message ?? (await readHead(key)).derived.find((entry) => entry.id === id)
  }
  return Promise.all(locations.map(read))
}

/** Returns a function that reads each head at most once. */
function createHeadReader(store: DecryptedStore): (key: Key) => Promise<SessionHead> {
  const heads = new Map<string, Promise<SessionHead>>()
  return (key) => {
    const name = formatKey(key)
    const head = heads.get(name) ?? store.readHead(key, 0)
    heads.set(name, head)
    return head
  }
}

function isCurrent({ epoch, lastSequence, gaps, derived }: SessionHead, vector: VectorRow): boolean {
  if (epoch !== vector.epoch) return false
  const sequence = parseMessageId(vector.id)
  if (sequence !== undefined && vector.kind === 'message')
    return sequence <= lastSequence && countExisting(gaps, sequence, sequence) === 1
  return derived.some(({ id, at }: { id: string; at: Millis }) => id === vector.id && at === vector.at)
}

const vectorKey = (key: Key, id: string): string => `${formatKey(key)} ${id}`
