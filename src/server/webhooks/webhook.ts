import { createHmac } from 'node:crypto'
import type { Millis } from '../../domain/entry.ts'
import { checkOption, MemoryError } from '../../domain/error.ts'
import { getOrCompute } from '../../domain/keyed.ts'
import { LruCache } from '../../domain/lruCache.ts'
import type { Clock } from '../../domain/ports.ts'
import type { OnSessionEnd } from '../../lifecycle/endEvent.ts'
import { stripQuery } from '../../providers/url.ts'
import { isLoopback } from '../http/hostPolicy.ts'

export type WebhookOptions = {
  /** Receiver of the events: `https:`, or `http:` on this machine. */
  readonly url: string
  /** Signing secret: `whsec_` and base64, as in the Standard Webhooks libraries, or any other text as it is. */
  readonly secret: string
  readonly fetch?: typeof globalThis.fetch
  /** Default 10 seconds. */
  readonly timeout?: Millis
  readonly clock?: Clock
}

/**
 * Creates a callback that sends session ends as a POST signed like Standard Webhooks. The callback rejects unless the
 * receiver answers 2xx; the caller then retries.
 *
 * @throws {MemoryError} `bad-option` for an invalid URL or secret.
 *
 * @example
 * openMemory({ profile: 'support', onSessionEnd: createWebhook({ url: 'https://example.com/ended', secret: process.env.WEBHOOK_SECRET ?? '' }) })
 */
export function createWebhook(options: WebhookOptions): OnSessionEnd {
  const { secret, fetch = globalThis.fetch, timeout = 10_000, clock = Date.now } = options
  const url = parseUrl(options.url)
  const key = parseSecret(secret)
  return async (session, data, { id, reason }) => {
    const body = JSON.stringify({ type: 'session.ended', id, key: session, reason, data })
    const seconds = Math.floor(clock() / 1_000)
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': `${seconds}`,
      'webhook-signature': signPayload(key, id, seconds, body),
    }
    // Redirects are not followed: the data would go to an address that was not configured.
    const request = { method: 'POST', headers, body, redirect: 'manual', signal: AbortSignal.timeout(timeout) } as const
    const response = await fetch(url, request).catch((cause: unknown) => {
      throw new MemoryError('upstream', `${stripQuery(url)} cannot be reached. Check the URL of the webhook.`, {
        cause,
      })
    })
    // An unread body would keep the connection open.
    await response.body?.cancel()
    if (response.ok) return
    throw new MemoryError('upstream', `${stripQuery(url)} answered ${response.status} instead of 2xx.`, {
      status: response.status,
    })
  }
}

/** Signs a payload as the Standard Webhooks libraries do. */
export const signPayload = (key: Uint8Array, id: string, seconds: number, body: string): string =>
  `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isSecure = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  // The error shows the address without credentials and query, which may contain a key.
  checkOption(
    'url',
    url === undefined ? '…' : stripQuery(url),
    url !== undefined && isSecure && url.username === '' && url.password === '',
    'an https: URL without a user name and password, or http: on this machine',
  )
  return url as URL
}

/** The signing key of a secret. */
export function parseSecret(secret: string): Buffer {
  const [, encoded] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret) ?? []
  const key = encoded === undefined ? Buffer.from(secret) : Buffer.from(encoded, 'base64')
  const isSecret = key.length > 0 && (encoded !== undefined || !secret.startsWith('whsec_'))
  checkOption('secret', '…', isSecret, 'whsec_ and base64, or any other text')
  return key
}

const maxRememberedEvents = 10_000

/**
 * Delivers each event once, although several memories share the outbox: a second call with the same event waits for the
 * first. A failed event may be delivered again.
 *
 * @example
 * const onSessionEnd = deliverOnce(createWebhook({ url, secret }))
 */
export function deliverOnce(deliver: OnSessionEnd): OnSessionEnd {
  const deliveries = new LruCache<string, Promise<void>>({ maxEntries: maxRememberedEvents })
  return (session, data, end) => {
    const delivery = getOrCompute(deliveries, end.id, () => Promise.resolve().then(() => deliver(session, data, end)))
    delivery.catch(() => deliveries.delete(end.id))
    return delivery
  }
}
