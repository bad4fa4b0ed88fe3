import { MemoryError } from '../domain/error.ts'
import { getOrCompute } from '../domain/keyed.ts'
import { LruCache } from '../domain/lruCache.ts'
import type { Embedder } from '../domain/ports.ts'

/** Memory for cached vectors of one embedder: about 10,000 vectors of 384 numbers. */
const maxCachedBytes = 16_777_216

const caches = new WeakMap<Embedder, EmbeddingCache>()

/** Returns the cache of an embedder, which all memories with that embedder share. */
export const cacheOf = (embedder: Embedder): EmbeddingCache =>
  getOrCompute(caches, embedder, () => new EmbeddingCache(embedder))

/**
 * Calls an embedder for texts it has not embedded yet. Texts are known by their hash; one that is being embedded for
 * another caller is waited for instead of sent again.
 */
export class EmbeddingCache {
  private readonly embedder: Embedder
  private readonly vectors = new LruCache<string, Float32Array>({ maxTotalSize: maxCachedBytes })
  private inFlight = new Map<string, Promise<ReadonlyMap<string, Float32Array>>>()
  private dimensions: number | undefined

  constructor(embedder: Embedder) {
    this.embedder = embedder
  }

  /** Returns the vectors of the texts in their order. Rejects on abort, even if the embedder ignores the signal. */
  async embed(texts: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[]> {
    const hashes = await Promise.all(texts.map(hashText))
    const found = new Map<string, Float32Array>()
    for (;;) {
      signal.throwIfAborted()
      const missing = new Map<string, string>()
      for (const [index, hash] of hashes.entries()) {
        const vector = found.get(hash) ?? this.vectors.get(hash)
        if (vector === undefined) missing.set(hash, texts[index] as string)
        else found.set(hash, vector)
      }
      if (missing.size === 0) return hashes.map((hash) => found.get(hash) as Float32Array)
      const shared = [...new Set([...missing.keys()].flatMap((hash) => this.inFlight.get(hash) ?? []))]
      // Another caller may abort its call; the texts are then sent again by this one.
      const results =
        shared.length === 0
          ? [await this.send(missing, signal)]
          : (await withAbort(Promise.allSettled(shared), signal)).flatMap((result) => getValue(result) ?? [])
      for (const vectors of results) for (const [hash, vector] of vectors) found.set(hash, vector)
    }
  }

  /** Drops all vectors, also those on their way, because their texts may have been forgotten. */
  clear(): void {
    this.vectors.clear()
    this.inFlight = new Map()
  }

  private async send(
    texts: ReadonlyMap<string, string>,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Float32Array>> {
    const { inFlight } = this
    const call = withAbort(this.callEmbedder([...texts.values()], signal), signal).then(
      (vectors) => new Map([...texts.keys()].map((hash, index) => [hash, vectors[index] as Float32Array])),
    )
    for (const hash of texts.keys()) inFlight.set(hash, call)
    try {
      const vectors = await call
      // A cleared cache stays free of texts that were sent before.
      if (inFlight === this.inFlight)
        for (const [hash, vector] of vectors) this.vectors.set(hash, vector, vector.byteLength)
      return vectors
    } finally {
      for (const hash of texts.keys()) inFlight.delete(hash)
    }
  }

  private async callEmbedder(texts: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[]> {
    const { embedder } = this
    const vectors = await embedder.embed(texts, signal)
    if (vectors.length !== texts.length)
      throw unusable(embedder, `returned ${vectors.length} vectors for ${texts.length} texts`)
    for (const { length } of vectors) {
      this.dimensions ??= length
      if (length !== this.dimensions)
        throw unusable(embedder, `returned a vector of ${length} numbers after vectors of ${this.dimensions}`)
    }
    return vectors
  }
}

const unusable = ({ name }: Embedder, problem: string): MemoryError =>
  new MemoryError('upstream', `Embedder ${name} ${problem}. Check that its model has not changed.`)

const getValue = <T>(result: PromiseSettledResult<T>): T | undefined =>
  result.status === 'fulfilled' ? result.value : undefined

/** Rejects with the signal's reason as soon as it aborts. */
function withAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort)
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

async function hashText(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return String.fromCharCode(...new Uint8Array(digest))
}
