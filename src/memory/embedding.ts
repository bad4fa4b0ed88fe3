import { type Entry, isBlank, textOf } from '../domain/entry.ts'
import type { Key, Scope } from '../domain/key.ts'
import type { Embedder, Index, Unembedded } from '../domain/ports.ts'

/** How far the vectors of an index have come; `fault` tells why some could not be made, until a later attempt makes them. */
export type EmbeddingProgress = {
  readonly model: string
  readonly done: number
  readonly total: number
  readonly fault?: string
}

type Wanted = Unembedded['entries'][number]

/** Makes vectors for what a store keeps. */
export type MakeEmbedding = (store: Index, embedder: Embedder) => Embedding

/** Vectors with an embedder. In a browser, pass this as `embedding` beside the embedder. */
export const embeddingWith: MakeEmbedding = (store, embedder) => new Embedding(store, embedder)

/** So many texts are given to an embedder at once. */
const batch = 64

/**
 * Gives entries their vectors in the background: what is new as it comes, and after the embedder has changed, or was
 * away, everything else. A failure leaves words to be found by their words; the next opening tries again.
 */
export class Embedding {
  private readonly index: Index
  private readonly embedder: Embedder
  private waiting: Wanted[] = []
  private readonly stopped = new AbortController()
  /** Why entries have no vector, and why the last question had none. */
  private missed: string | undefined
  private unasked: string | undefined
  private work: Promise<void> | undefined
  private latest: Promise<void> | undefined

  constructor(index: Index, embedder: Embedder) {
    this.index = index
    this.embedder = embedder
  }

  /** Takes in what was just stored, and returns at once. */
  heard(key: Key, epoch: number, entries: readonly Entry[]): void {
    for (const entry of entries) this.waiting.push({ key, id: entry.id, epoch, text: textOf(entry) })
    this.start(async () => undefined)
  }

  /** Begins with everything that has no vector of this embedder yet, and returns at once. */
  catchUp(): void {
    this.start(async () => {
      for (let after: string | undefined = ''; after !== undefined && !this.stopped.signal.aborted; ) {
        const { entries, next } = await this.index.unembedded(this.embedder.name, after, batch)
        await this.embed(entries)
        after = next
      }
    })
  }

  /** Gives up what is waiting of a scope, in which something is about to be forgotten: it must not leave this process any more. */
  drop(scope: Scope): void {
    this.waiting = this.waiting.filter(({ key }) => key.scope !== scope)
  }

  /** The vector of a question; undefined if there is nothing to ask, or the embedder fails. */
  async vector(text: string): Promise<Float32Array | undefined> {
    if (isBlank(text)) return undefined
    try {
      const [vector] = await this.made([text])
      this.unasked = undefined
      return vector
    } catch (error) {
      this.unasked = said(error)
      return undefined
    }
  }

  async progress(): Promise<EmbeddingProgress> {
    const { done, total } = await this.index.embedded(this.embedder.name)
    const fault = (done < total ? this.missed : undefined) ?? this.unasked
    return { model: this.embedder.name, done, total, ...(fault === undefined ? {} : { fault }) }
  }

  /** Resolves when there is nothing left to do for now. */
  async settled(): Promise<void> {
    while (this.work !== undefined) await this.work
  }

  async stop(): Promise<void> {
    this.stopped.abort()
    this.waiting = []
    await this.settled()
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
      while (this.waiting.length > 0) await this.embed(this.waiting.splice(0, batch))
    } catch (error) {
      this.missed = said(error)
    }
  }

  private async embed(wanted: readonly Wanted[]): Promise<void> {
    const entries = wanted.filter(({ text }) => !isBlank(text))
    if (entries.length === 0 || this.stopped.signal.aborted) return
    const vectors = await this.made(entries.map(({ text }) => text))
    await this.index.embed(
      this.embedder.name,
      entries.flatMap((entry, at) => (vectors[at] === undefined ? [] : [{ ...entry, values: vectors[at] }])),
    )
  }

  /** What the embedder makes of texts; when this is stopped, an embedder that does not notice is not waited for. */
  private made(texts: readonly string[]): Promise<readonly Float32Array[]> {
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

const said = (error: unknown): string => (error instanceof Error ? error.message : String(error))
