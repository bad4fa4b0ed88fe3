import { checkOptions } from '../domain/checkOptions.ts'
import { type Entry, getEntryText, isBlank, type Millis } from '../domain/entry.ts'
import { anyFunction, checkOption, integerAtLeast, MemoryError, positiveNumber } from '../domain/error.ts'
import type { Key, Scope } from '../domain/key.ts'
import type { Degradation } from '../domain/ledger.ts'
import type { Clock, Embedder, SearchIndex, UnembeddedPage, Vector } from '../domain/ports.ts'
import { backoffDelay } from '../domain/retry.ts'
import { cacheOf, type EmbeddingCache } from './embeddingCache.ts'

/** Entries with a vector, and entries that should have one. */
export type EmbeddingCounts = { readonly done: number; readonly total: number }

/** Progress of embedding. `fault` is the latest failure, until a later attempt succeeds. */
export type EmbeddingProgress = EmbeddingCounts & { readonly model: string; readonly fault?: string }

/** Sums the progress of the sessions' store and the scopes' store, which use one embedder; undefined without one. */
export const sumProgress = ([first, second]: readonly EmbeddingProgress[]): EmbeddingProgress | undefined =>
  first && second ? { ...first, done: first.done + second.done, total: first.total + second.total } : first

/** Vector of a question; without one, `degraded` says why, unless the question is blank. */
export type QueryEmbedding = { readonly vector?: Vector; readonly degraded?: readonly Degradation[] }

/** Waits; rejects when the signal aborts. A `background` wait does not keep the process alive. */
export type Sleep = (ms: Millis, signal: AbortSignal, options?: { readonly background?: boolean }) => Promise<void>

/** Options of `createEmbeddingQueue`. */
export type EmbeddingQueueOptions = {
  /** Timer; without one, questions have no time limit and failures are retried with the next entry. */
  readonly sleep?: Sleep | undefined
  /** Current time; without one, an embedder that fails is asked again for every question. */
  readonly clock?: Clock | undefined
  /** Time limit of a question; default 2,000. */
  readonly queryTimeoutMs?: Millis | undefined
  /** Maximum number of entries that wait in memory; default 1,024. Others are read from the store later. */
  readonly maxPending?: number | undefined
}

type PendingEntry = UnembeddedPage['entries'][number]

/** Creates the queue that embeds the entries of a store. */
export type CreateEmbeddingQueue = (
  store: SearchIndex,
  embedder: Embedder,
  options?: EmbeddingQueueOptions,
) => EmbeddingQueue

/** Creates an embedding queue. In a browser, pass it to `openMemory` as `embedding`, beside `embedder`. */
export const createEmbeddingQueue: CreateEmbeddingQueue = (store, embedder, options = {}) =>
  new EmbeddingQueue(store, embedder, options)

/** Share of an embedder that names none. */
const defaultWeight = 0.2
const defaultQueryTimeoutMs: Millis = 2_000
const defaultMaxPending = 1_024
/** Characters of all entries that wait in memory. */
const maxPendingChars = 4_000_000
/** Texts per call of the embedder, and their characters: OpenAI accepts 300,000 tokens per call. */
const batchSize = 64
const maxBatchChars = 200_000
const retryBaseDelayMs: Millis = 1_000
const maxRetryDelayMs: Millis = 300_000
/** Longest time in which a failing embedder is not asked about questions. */
const maxQueryPauseMs: Millis = 30_000
/** Statuses with which a server refuses the texts themselves, so that sending them again is pointless. */
const refusals: ReadonlySet<number | undefined> = new Set([400, 413, 422])

/**
 * Embeds entries in the background: new ones as they are stored, and all others after the embedder changed or failed.
 * Entries without a vector are still found by their words. Waits in memory are bounded: what exceeds them, and
 * everything after a failure, is read from the store again.
 */
export class EmbeddingQueue {
  private readonly index: SearchIndex
  private readonly embedder: Embedder
  private readonly options: EmbeddingQueueOptions
  private readonly cache: EmbeddingCache
  private readonly stopped = new AbortController()
  private pending: PendingEntry[] = []
  private pendingChars = 0
  /** True when the store may have entries without a vector that are not in `pending`. */
  private isBehind = false
  private isWaitingForRetry = false
  private entryFailures = 0
  private queryFailures = 0
  private queryPausedUntil: Millis = 0
  private entryFault: string | undefined
  private refusalFault: string | undefined
  private queryFault: string | undefined
  private work: Promise<void> | undefined

  constructor(index: SearchIndex, embedder: Embedder, options: EmbeddingQueueOptions = {}) {
    checkOptions<EmbeddingQueueOptions>('createEmbeddingQueue', options, {
      sleep: anyFunction,
      clock: anyFunction,
      queryTimeoutMs: positiveNumber,
      maxPending: integerAtLeast(0),
    })
    const { weight = defaultWeight } = embedder
    checkOption('embedder.weight', weight, weight >= 0 && weight <= 1, 'a number from 0 to 1')
    this.index = index
    this.embedder = embedder
    this.options = options
    this.cache = cacheOf(embedder)
  }

  /** Queues entries that were just stored. */
  enqueue(key: Key, epoch: number, entries: readonly Entry[]): void {
    const { maxPending = defaultMaxPending } = this.options
    for (const entry of entries) {
      const text = getEntryText(entry)
      this.isBehind ||= this.pending.length >= maxPending || this.pendingChars + text.length > maxPendingChars
      if (this.isBehind) break
      this.pending.push({ key, id: entry.id, epoch, text })
      this.pendingChars += text.length
    }
    this.start()
  }

  /** Queues all entries without a vector of this embedder. */
  catchUp(): void {
    this.isBehind = true
    this.start()
  }

  /**
   * Drops the queued entries of a scope in which something is about to be forgotten, and all cached vectors: forgotten
   * texts must not reach the embedder, and nothing of them stays.
   */
  drop(scope: Scope): void {
    this.setPending(this.pending.filter(({ key }) => key.scope !== scope))
    this.cache.clear()
  }

  /**
   * Embeds a question within the time limit. Does not throw: without a vector, search works by words. A replay ranks by
   * words, so the question of a trace is not embedded.
   */
  async embedQuery(text: string, traced = false): Promise<QueryEmbedding> {
    if (isBlank(text)) return {}
    if (traced) return byWords('a trace is ranked without the embedder')
    const now = this.options.clock?.() ?? Number.POSITIVE_INFINITY
    if (now < this.queryPausedUntil) return byWords(`${describe(this.embedder)} failed a moment ago`)
    try {
      const [values] = await this.embedInTime(text)
      this.queryFailures = 0
      this.queryFault = undefined
      const { name: model, weight = defaultWeight } = this.embedder
      return values === undefined ? {} : { vector: { model, values, weight } }
    } catch (error) {
      this.queryFault = messageOf(error)
      if (!isRefusal(error)) this.pauseQueries()
      return byWords(describeFault(this.embedder, error))
    }
  }

  async progress(): Promise<EmbeddingProgress> {
    return this.describe(await this.count())
  }

  /** Counts the entries that have a vector and those that should. Takes as long as the store is large. */
  count(): Promise<EmbeddingCounts> {
    return this.index.countVectors(this.embedder.name)
  }

  /** Describes the progress by counts and the latest faults. */
  describe({ done, total }: EmbeddingCounts): EmbeddingProgress {
    const fault = (done < total ? (this.entryFault ?? this.refusalFault) : undefined) ?? this.queryFault
    return { model: this.embedder.name, done, total, ...(fault !== undefined && { fault }) }
  }

  /** Resolves when the queue is empty, or when the latest attempt failed. */
  async drain(): Promise<void> {
    while (this.work !== undefined) await this.work
  }

  async stop(): Promise<void> {
    this.stopped.abort(new MemoryError('aborted', 'The memory was closed while texts were being embedded.'))
    this.setPending([])
    await this.drain()
  }

  private async embedInTime(text: string): Promise<readonly Float32Array[]> {
    const { sleep, queryTimeoutMs = defaultQueryTimeoutMs } = this.options
    const [limit, timer] = [new AbortController(), new AbortController()]
    const expire = (): void =>
      limit.abort(
        new MemoryError('timeout', `${describe(this.embedder)} did not answer a question within ${queryTimeoutMs} ms`),
      )
    sleep?.(queryTimeoutMs, timer.signal).then(expire, () => undefined)
    try {
      return await this.cache.embed([text], AbortSignal.any([this.stopped.signal, limit.signal]))
    } finally {
      timer.abort()
    }
  }

  /** Spares the next contexts the wait for an embedder that does not answer. */
  private pauseQueries(): void {
    const { clock } = this.options
    this.queryFailures++
    const pause = Math.min(backoffDelay(this.queryFailures, retryBaseDelayMs), maxQueryPauseMs)
    if (clock !== undefined) this.queryPausedUntil = clock() + pause
  }

  private setPending(pending: PendingEntry[]): void {
    this.pending = pending
    this.pendingChars = countChars(pending)
  }

  private start(): void {
    if (this.isWaitingForRetry || this.stopped.signal.aborted) return
    this.work ??= Promise.resolve().then(() => this.run())
  }

  private async run(): Promise<void> {
    try {
      while ((this.pending.length > 0 || this.isBehind) && !this.stopped.signal.aborted)
        await (this.pending.length > 0 ? this.embedPending() : this.embedStored())
      this.entryFault = undefined
      this.entryFailures = 0
    } catch (error) {
      this.entryFault = messageOf(error)
      this.isBehind = true
      this.setPending([])
      this.scheduleRetry()
    }
    this.work = undefined
  }

  /** Embeds all entries without a vector, and new entries before older ones. */
  private async embedStored(): Promise<void> {
    this.isBehind = false
    this.refusalFault = undefined
    for (let after: string | undefined = ''; after !== undefined && !this.stopped.signal.aborted; ) {
      const page: UnembeddedPage = await this.index.listUnembedded(this.embedder.name, after, batchSize)
      const entries = [...page.entries]
      while (entries.length > 0) await this.embed(takeBatch(entries))
      after = page.next
      await this.embedPending()
    }
  }

  private async embedPending(): Promise<void> {
    while (this.pending.length > 0 && !this.stopped.signal.aborted) {
      const batch = takeBatch(this.pending)
      this.pendingChars -= countChars(batch)
      await this.embed(batch)
    }
  }

  private scheduleRetry(): void {
    const { sleep } = this.options
    if (sleep === undefined || this.stopped.signal.aborted) return
    this.entryFailures++
    this.isWaitingForRetry = true
    const delay = Math.min(backoffDelay(this.entryFailures, retryBaseDelayMs), maxRetryDelayMs)
    sleep(delay, this.stopped.signal, { background: true }).then(
      () => {
        this.isWaitingForRetry = false
        this.start()
      },
      () => undefined,
    )
  }

  /** Embeds a batch. When it is refused, finds the texts at fault by halving and leaves them without a vector. */
  private async embed(batch: readonly PendingEntry[]): Promise<void> {
    const entries = batch.filter(({ text }) => !isBlank(text))
    if (entries.length === 0 || this.stopped.signal.aborted) return
    try {
      const vectors = await this.cache.embed(
        entries.map(({ text }) => text),
        this.stopped.signal,
      )
      const stored = entries.map((entry, index) => ({ ...entry, values: vectors[index] as Float32Array }))
      await this.index.storeVectors(this.embedder.name, stored)
    } catch (error) {
      if (!isRefusal(error)) throw error
      if (entries.length === 1) {
        this.refusalFault = messageOf(error)
        return
      }
      const middle = entries.length >> 1
      await this.embed(entries.slice(0, middle))
      await this.embed(entries.slice(middle))
    }
  }
}

/** Removes the first entries that fit one call of the embedder; at least one. */
function takeBatch(entries: PendingEntry[]): readonly PendingEntry[] {
  let count = 0
  for (let chars = 0; count < Math.min(batchSize, entries.length); count++) {
    chars += entries[count]?.text.length ?? 0
    if (chars > maxBatchChars && count > 0) break
  }
  return entries.splice(0, count)
}

const countChars = (entries: readonly PendingEntry[]): number => entries.reduce((sum, { text }) => sum + text.length, 0)

const isRefusal = (error: unknown): boolean => error instanceof MemoryError && refusals.has(error.status ?? 0)

const byWords = (fault: string): QueryEmbedding => ({
  degraded: [{ step: 'recall', why: `${fault}; older messages were found by their words only` }],
})

const describe = ({ name }: Embedder): string => `the embedder ${name}`

/**
 * Describes a failure in a ledger, which clients can read: without addresses and remedies. The message of a foreign
 * error may quote the text, so it is left out.
 */
function describeFault(embedder: Embedder, error: unknown): string {
  const name = describe(embedder)
  if (!(error instanceof MemoryError)) return `${name} failed`
  const reason = error.message.replaceAll(/https?:\/\/\S+/g, 'its server').replace(/\.(?: .*)?$/s, '')
  return reason.startsWith(name) ? reason : `${name} failed: ${reason}`
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
