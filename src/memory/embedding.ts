import { type Entry, getEntryText, isBlank } from '../domain/entry.ts'
import type { Key, Scope } from '../domain/key.ts'
import type { Embedder, SearchIndex, UnembeddedPage } from '../domain/ports.ts'

/** Progress of embedding. `fault` is the latest failure, until a later attempt succeeds. */
export type EmbeddingProgress = {
  readonly model: string
  readonly done: number
  readonly total: number
  readonly fault?: string
}

type PendingEntry = UnembeddedPage['entries'][number]

/** Creates the queue that embeds the entries of a store. */
export type CreateEmbeddingQueue = (store: SearchIndex, embedder: Embedder) => EmbeddingQueue

/** Creates an embedding queue. In a browser, pass it to `openMemory` as `embedding`, beside `embedder`. */
export const createEmbeddingQueue: CreateEmbeddingQueue = (store, embedder) => new EmbeddingQueue(store, embedder)

/** Texts per call of the embedder. */
const batchSize = 64

/**
 * Embeds entries in the background: new ones as they are stored, and all others after the embedder changed or failed.
 * Entries without a vector are still found by their words; the next start tries again.
 */
export class EmbeddingQueue {
  private readonly index: SearchIndex
  private readonly embedder: Embedder
  private pending: PendingEntry[] = []
  private readonly stopped = new AbortController()
  private entryFault: string | undefined
  private queryFault: string | undefined
  private work: Promise<void> | undefined
  private latest: Promise<void> | undefined

  constructor(index: SearchIndex, embedder: Embedder) {
    this.index = index
    this.embedder = embedder
  }

  /** Queues entries that were just stored. */
  enqueue(key: Key, epoch: number, entries: readonly Entry[]): void {
    for (const entry of entries) this.pending.push({ key, id: entry.id, epoch, text: getEntryText(entry) })
    this.start(async () => undefined)
  }

  /** Queues all entries without a vector of this embedder. */
  catchUp(): void {
    this.start(async () => {
      for (let after: string | undefined = ''; after !== undefined && !this.stopped.signal.aborted; ) {
        const { entries, next } = await this.index.listUnembedded(this.embedder.name, after, batchSize)
        await this.embed(entries)
        after = next
      }
    })
  }

  /**
   * Drops the queued entries of a scope in which something is about to be forgotten; they must not reach the embedder.
   */
  drop(scope: Scope): void {
    this.pending = this.pending.filter(({ key }) => key.scope !== scope)
  }

  /** Embeds a question; undefined for blank text or when the embedder fails. */
  async embedQuery(text: string): Promise<Float32Array | undefined> {
    if (isBlank(text)) return undefined
    try {
      const [vector] = await this.callEmbedder([text])
      this.queryFault = undefined
      return vector
    } catch (error) {
      this.queryFault = messageOf(error)
      return undefined
    }
  }

  async progress(): Promise<EmbeddingProgress> {
    const { done, total } = await this.index.countVectors(this.embedder.name)
    const fault = (done < total ? this.entryFault : undefined) ?? this.queryFault
    return { model: this.embedder.name, done, total, ...(fault !== undefined && { fault }) }
  }

  /** Resolves when the queue is empty. */
  async drain(): Promise<void> {
    while (this.work !== undefined) await this.work
  }

  async stop(): Promise<void> {
    this.stopped.abort()
    this.pending = []
    await this.drain()
  }

  private start(first: () => Promise<void>): void {
    const work = (this.work ?? Promise.resolve()).then(() => this.run(first))
    this.work = work.then(() => {
      if (this.latest === work) this.work = undefined
    })
    this.latest = work
  }

  private async run(first: () => Promise<void>): Promise<void> {
    try {
      await first()
      while (this.pending.length > 0) await this.embed(this.pending.splice(0, batchSize))
    } catch (error) {
      this.entryFault = messageOf(error)
    }
  }

  private async embed(batch: readonly PendingEntry[]): Promise<void> {
    const entries = batch.filter(({ text }) => !isBlank(text))
    if (entries.length === 0 || this.stopped.signal.aborted) return
    const vectors = await this.callEmbedder(entries.map(({ text }) => text))
    await this.index.storeVectors(
      this.embedder.name,
      entries.flatMap((entry, index) => (vectors[index] === undefined ? [] : [{ ...entry, values: vectors[index] }])),
    )
  }

  /** Rejects on stop, even when the embedder ignores its signal. */
  private callEmbedder(texts: readonly string[]): Promise<readonly Float32Array[]> {
    const { signal } = this.stopped
    return new Promise((resolve, reject) => {
      const stop = (): void => reject(signal.reason)
      signal.addEventListener('abort', stop)
      this.embedder
        .embed(texts, signal)
        .then(resolve, reject)
        .finally(() => signal.removeEventListener('abort', stop))
    })
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
