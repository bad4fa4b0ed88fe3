import { isIPv6 } from 'node:net'
import type { Millis } from '../../domain/entry.ts'
import { checkOption } from '../../domain/error.ts'
import { getOrCompute } from '../../domain/keyed.ts'
import { LruCache } from '../../domain/lruCache.ts'
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

/** Token bucket of one client as of `updatedAt`, and its number of running requests. */
type RateLimitBucket = { tokens: number; updatedAt: Millis; running: number }

const minuteMs: Millis = 60_000
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

  constructor(limits: RateLimits) {
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
   * Admits a request and returns the function to call when it ends.
   *
   * @throws {HttpError} 429 with `retry-after` when a limit is reached.
   */
  acquire(client: string, now: Millis): () => void {
    if (!this.isLimited) return releaseNothing
    const {
      requestsPerMinute = Number.POSITIVE_INFINITY,
      concurrency = Number.POSITIVE_INFINITY,
      totalConcurrency = Number.POSITIVE_INFINITY,
    } = this.limits
    if (this.running >= totalConcurrency)
      throw tooManyRequests('server_busy', 'This server has too many requests in progress.', 1)
    const bucket = this.refillBucket(client, now)
    if (bucket.running >= concurrency) {
      const message = `At most ${concurrency} concurrent requests are allowed.`
      throw tooManyRequests('too_many_concurrent_requests', message, 1)
    }
    if (bucket.tokens < 1) {
      const message = `At most ${requestsPerMinute} requests per minute are allowed.`
      throw tooManyRequests('rate_limit_exceeded', message, (1 - bucket.tokens) * (60 / requestsPerMinute))
    }
    bucket.tokens--
    bucket.running++
    this.running++
    return this.releaseOnce(bucket)
  }

  private releaseOnce(bucket: RateLimitBucket): () => void {
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

const releaseNothing = (): void => undefined

/**
 * The name under which a client is counted: its key, else its address. An IPv6 client is counted by its /64 network.
 */
export function rateLimitKey(credential: Credential | undefined, address: string | undefined): string {
  if (credential !== undefined) return `key ${credential.id}`
  if (address?.includes(':') !== true) return `address ${address ?? ''}`
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
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
