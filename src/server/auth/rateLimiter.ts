import { isIPv6 } from 'node:net'
import type { Millis } from '../../domain/entry.ts'
import { checkOption } from '../../domain/error.ts'
import { getOrCompute } from '../../domain/keyed.ts'
import { LruCache } from '../../domain/lruCache.ts'
import type { TokenBuckets } from '../../domain/ports.ts'
import { rejectOnAbort } from '../../upkeep/modelCall.ts'
import { HttpError } from '../http/httpError.ts'
import type { Credential } from './credential.ts'

/** Limits on requests; an omitted field means no limit. */
export type RateLimits = {
  /** Requests per minute of one client; also the size of its burst. */
  readonly requestsPerMinute?: number | undefined
  /** Concurrent requests of one client. */
  readonly concurrency?: number | undefined
  /** Concurrent requests of all clients. */
  readonly totalConcurrency?: number | undefined
}

/** Counters that several servers share; without them, each server limits the rate on its own. */
export type SharedLimits = {
  readonly buckets: TokenBuckets
  /** Creates a signal that aborts after a delay. Default: `AbortSignal.timeout`. */
  readonly timeoutSignal?: (after: Millis) => AbortSignal
  /** Called when the shared counters fail, at most once a minute. */
  readonly onFault: (error: unknown) => void
}

/** Token bucket of one client as of `updatedAt`, and its number of running requests. */
type RateLimitBucket = { tokens: number; updatedAt: Millis; running: number }

const minuteMs: Millis = 60_000
/** A request waits this long for shared counters, then the server's own ones decide: for it and those after it. */
const sharedTimeoutMs: Millis = 1_000
const sharedPauseMs: Millis = 10_000
/** The least recently used buckets beyond this number are dropped. */
const maxBuckets = 10_000

/**
 * Limits the rate and concurrency of requests.
 *
 * @example
 * const release = limiter.acquire(rateLimitKey(credential, request.socket.remoteAddress), now)
 * try { … } finally { release() }
 */
export class RateLimiter {
  private readonly limits: RateLimits
  /** False when nothing is limited: then clients need not be identified or counted. */
  readonly isLimited: boolean
  /** Without a limit of its own: a bucket with running requests is never dropped. */
  private readonly buckets = new LruCache<string, RateLimitBucket>()
  private running = 0
  private readonly shared: SharedLimits | undefined
  private failedAt: Millis = Number.NEGATIVE_INFINITY
  private reportedAt: Millis = Number.NEGATIVE_INFINITY

  constructor(limits: RateLimits, shared?: SharedLimits) {
    this.shared = limits.requestsPerMinute === undefined ? undefined : shared
    for (const [name, limit] of Object.entries(limits))
      checkOption(
        name,
        limit,
        limit === undefined || (Number.isInteger(limit) && limit > 0),
        'a whole number, 1 or more',
      )
    this.limits = limits
    this.isLimited = Object.values(limits).some((limit) => limit !== undefined)
  }

  /** Number of stored buckets. */
  get size(): number {
    return this.buckets.size
  }

  /**
   * Admits a request by the server's own counters and returns the function to call when it ends.
   *
   * @throws {HttpError} 429 with `retry-after` when a limit is reached.
   */
  acquire(client: string, now: Millis): () => void {
    if (!this.isLimited) return releaseNothing
    const bucket = this.checkConcurrency(client, now)
    takeToken(bucket, this.limits.requestsPerMinute)
    return this.start(bucket)
  }

  /**
   * Admits a request by the shared counters, if there are any. Concurrent requests are counted per server.
   *
   * @throws {HttpError} as `acquire`.
   */
  async acquireShared(client: string, now: Millis): Promise<() => void> {
    const sinceFailure = now - this.failedAt
    const isPaused = sinceFailure >= 0 && sinceFailure < sharedPauseMs
    if (this.shared === undefined || isPaused) return this.acquire(client, now)
    const bucket = this.checkConcurrency(client, now)
    const release = this.start(bucket)
    try {
      await this.takeShared(this.shared, client, bucket, now)
      return release
    } catch (error) {
      release()
      throw error
    }
  }

  /** Takes a token from the shared bucket; if that fails, from the server's own one. */
  private async takeShared(
    { buckets, timeoutSignal = (after) => AbortSignal.timeout(after), onFault }: SharedLimits,
    client: string,
    bucket: RateLimitBucket,
    now: Millis,
  ): Promise<void> {
    const { requestsPerMinute = Number.POSITIVE_INFINITY } = this.limits
    const timeout = rejectOnAbort(timeoutSignal(sharedTimeoutMs))
    let waitMs: Millis
    try {
      waitMs = await Promise.race([buckets.take(client, requestsPerMinute), timeout.promise])
    } catch (error) {
      this.failedAt = now
      if (now >= this.reportedAt + minuteMs) {
        this.reportedAt = now
        onFault(error)
      }
      takeToken(bucket, requestsPerMinute)
      return
    } finally {
      timeout.dispose()
    }
    if (waitMs > 0) throw rateExceeded(requestsPerMinute, waitMs / 1_000)
  }

  /** Returns the bucket of a client unless too many requests are in progress. */
  private checkConcurrency(client: string, now: Millis): RateLimitBucket {
    const { concurrency = Number.POSITIVE_INFINITY, totalConcurrency = Number.POSITIVE_INFINITY } = this.limits
    if (this.running >= totalConcurrency)
      throw tooManyRequests('server_busy', 'This server has too many requests in progress.', 1)
    const bucket = this.refillBucket(client, now)
    if (bucket.running >= concurrency) {
      const message = `At most ${concurrency} concurrent requests are allowed.`
      throw tooManyRequests('too_many_concurrent_requests', message, 1)
    }
    return bucket
  }

  /** Counts a running request until the returned function is called. */
  private start(bucket: RateLimitBucket): () => void {
    bucket.running++
    this.running++
    let isRunning = true
    return () => {
      if (!isRunning) return
      isRunning = false
      bucket.running--
      this.running--
    }
  }

  private refillBucket(client: string, now: Millis): RateLimitBucket {
    const { requestsPerMinute = Number.POSITIVE_INFINITY } = this.limits
    const bucket = getOrCompute(this.buckets, client, () => ({
      tokens: requestsPerMinute,
      updatedAt: now,
      running: 0,
    }))
    const elapsed = Math.max(0, now - bucket.updatedAt)
    if (elapsed > 0)
      bucket.tokens = Math.min(requestsPerMinute, bucket.tokens + (elapsed / minuteMs) * requestsPerMinute)
    bucket.updatedAt = now
    this.dropOldBuckets(now)
    return bucket
  }

  /**
   * Drops full buckets, and the least recently used beyond the maximum. Checks two per request, so the work is
   * constant.
   */
  private dropOldBuckets(now: Millis): void {
    for (let checked = 0; checked < 2; checked++) {
      const { oldest } = this.buckets
      if (oldest === undefined) return
      const [client, bucket] = oldest
      const isFull = now - bucket.updatedAt >= minuteMs
      if (bucket.running === 0 && !isFull && this.buckets.size <= maxBuckets) return
      // A bucket with running requests becomes the newest, so that it does not block the check of the others.
      if (bucket.running > 0) this.buckets.set(client, bucket)
      else this.buckets.delete(client)
    }
  }
}

function takeToken(bucket: RateLimitBucket, perMinute = Number.POSITIVE_INFINITY): void {
  if (bucket.tokens < 1) throw rateExceeded(perMinute, (1 - bucket.tokens) * (60 / perMinute))
  bucket.tokens--
}

const rateExceeded = (perMinute: number, seconds: number): HttpError =>
  tooManyRequests('rate_limit_exceeded', `At most ${perMinute} requests per minute are allowed.`, seconds)

const releaseNothing = (): void => undefined

/**
 * The name under which a client is counted: its key, else its address. An IPv6 client is counted by its /64 network.
 */
export function rateLimitKey(credential: Credential | undefined, address: string | undefined): string {
  if (credential !== undefined) return `key ${credential.id}`
  if (address?.includes(':') !== true) return `address ${address ?? ''}`
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*/s, '')
  return `address ${isIPv6(plain) ? networkPrefix(plain) : plain}`
}

/** The first four groups of an IPv6 address. */
function networkPrefix(address: string): string {
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const groups =
    tail === undefined
      ? left
      : [...left, ...Array.from({ length: 8 - left.length - right.length }, () => '0'), ...right]
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}

function tooManyRequests(code: string, message: string, seconds: number): HttpError {
  const wait = Math.max(1, Math.ceil(seconds))
  return new HttpError(429, code, `${message} Try again in ${wait === 1 ? 'a second' : `${wait} seconds`}.`, null, {
    headers: { 'retry-after': String(wait), 'x-should-retry': 'true' },
  })
}
