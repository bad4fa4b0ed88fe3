import { isIPv6 } from 'node:net'
import type { Millis } from '../../domain/entry.ts'
import { check } from '../../domain/error.ts'
import { Refusal } from '../http/httpError.ts'
import type { Credential } from './credential.ts'

/** How much one visitor may ask, and all together; what is left out has no limit. */
export type Allowance = {
  /** Requests per minute of each visitor; so many may also come at once. */
  readonly perMinute?: number | undefined
  /** Requests of each visitor under way at the same time. */
  readonly abreast?: number | undefined
  /** Requests of everybody under way at the same time. */
  readonly total?: number | undefined
}

/** What a visitor has left as of `at`, and how many of its requests are under way. */
type Visitor = { tokens: number; at: Millis; inside: number }

const minute: Millis = 60_000
/** So many visitors are remembered; whoever was away the longest is forgotten first. */
const most = 10_000

/**
 * Counts requests and turns away those that are too many.
 *
 * @example
 * const leave = limits.enter(visitorOf(credential, request.socket.remoteAddress), now)
 * try { … } finally { leave() }
 */
export class Limits {
  private readonly allowance: Allowance
  /** Where nothing is limited, nobody needs to be counted, nor asked who he is. */
  readonly isLimited: boolean
  /** In the order of their newest requests. */
  private readonly visitors = new Map<string, Visitor>()
  private inside = 0

  constructor(allowance: Allowance) {
    for (const [name, limit] of Object.entries(allowance))
      check(name, limit, limit === undefined || (Number.isInteger(limit) && limit > 0), 'a whole number, 1 or more')
    this.allowance = allowance
    this.isLimited = Object.values(allowance).some((limit) => limit !== undefined)
  }

  /** How many visitors are remembered. */
  get size(): number {
    return this.visitors.size
  }

  /** Lets a request in, or refuses it with the time after which to come again. Whoever was let in must leave. */
  enter(name: string, now: Millis): () => void {
    if (!this.isLimited) return walkOut
    const {
      perMinute = Number.POSITIVE_INFINITY,
      abreast = Number.POSITIVE_INFINITY,
      total = Number.POSITIVE_INFINITY,
    } = this.allowance
    if (this.inside >= total) throw tooMany('server_busy', 'This server has too many requests under way.', 1)
    const visitor = this.visitorOf(name, now)
    if (visitor.inside >= abreast)
      throw tooMany('too_many_concurrent_requests', `At most ${abreast} requests may be under way at the same time.`, 1)
    if (visitor.tokens < 1)
      throw tooMany(
        'rate_limit_exceeded',
        `At most ${perMinute} requests per minute are allowed.`,
        (1 - visitor.tokens) * (60 / perMinute),
      )
    visitor.tokens--
    visitor.inside++
    this.inside++
    return this.leaving(visitor)
  }

  private leaving(visitor: Visitor): () => void {
    let isInside = true
    return () => {
      if (!isInside) return
      isInside = false
      visitor.inside--
      this.inside--
    }
  }

  private visitorOf(name: string, now: Millis): Visitor {
    const { perMinute = Number.POSITIVE_INFINITY } = this.allowance
    const visitor = this.visitors.get(name) ?? { tokens: perMinute, at: now, inside: 0 }
    const elapsed = Math.max(0, now - visitor.at)
    visitor.tokens =
      elapsed === 0 ? visitor.tokens : Math.min(perMinute, visitor.tokens + (elapsed / minute) * perMinute)
    visitor.at = now
    this.visitors.delete(name)
    this.visitors.set(name, visitor)
    this.forget(now)
    return visitor
  }

  /**
   * Forgets who has all its requests left again, which changes nothing, and beyond the limit whoever was away the longest.
   * Looks at two while one comes in: so the list shrinks by itself, and nobody waits for it.
   */
  private forget(now: Millis): void {
    for (let looked = 0; looked < 2; looked++) {
      const [oldest] = this.visitors
      if (oldest === undefined) return
      const [name, visitor] = oldest
      const isFull = now - visitor.at >= minute
      if (visitor.inside === 0 && !isFull && this.visitors.size <= most) return
      this.visitors.delete(name)
      // Who is still inside goes to the end of the line, so as not to stand before those who have left.
      if (visitor.inside > 0) this.visitors.set(name, visitor)
    }
  }
}

const walkOut = (): void => undefined

/** Who is counted: the holder of a key, else an address. Whoever has an IPv6 address has a whole network of them (/64). */
export function visitorOf(credential: Credential | undefined, address: string | undefined): string {
  if (credential !== undefined) return `key ${credential.id}`
  if (address?.includes(':') !== true) return `address ${address ?? ''}`
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
  return `address ${isIPv6(plain) ? networkOf(plain) : plain}`
}

function networkOf(address: string): string {
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const filled =
    tail === undefined
      ? left
      : [...left, ...Array.from({ length: 8 - left.length - right.length }, () => '0'), ...right]
  return filled
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}

function tooMany(code: string, message: string, seconds: number): Refusal {
  const wait = Math.max(1, Math.ceil(seconds))
  return new Refusal(429, code, `${message} Try again in ${wait === 1 ? 'a second' : `${wait} seconds`}.`, null, {
    headers: { 'retry-after': String(wait), 'x-should-retry': 'true' },
  })
}
