import { createHmac } from 'node:crypto'
import type { Millis } from '../../domain/entry.ts'
import { check, MemoryError } from '../../domain/error.ts'
import type { Clock } from '../../domain/ports.ts'
import type { OnSessionEnd } from '../../lifecycle/endEvent.ts'
import { shownAddress } from '../../providers/url.ts'
import { isLoopback } from '../http/hostPolicy.ts'

export type WebhookOptions = {
  /** Where ends are sent: `https:`, or `http:` on this machine. */
  readonly url: string
  /** What they are signed with: `whsec_` and base64, as the Standard Webhooks libraries take it, or any other text as it is. */
  readonly secret: string
  readonly fetch?: typeof globalThis.fetch
  /** How long an answer may take; ten seconds when left out. */
  readonly timeout?: Millis
  readonly clock?: Clock
}

/**
 * Tells another program of sessions that end, by a POST that is signed as in Standard Webhooks. Anything but a 2xx is
 * taken as not heard, and is sent again by whoever calls this.
 *
 * @example
 * openMemory({ profile: 'support', onSessionEnd: webhook({ url: 'https://example.com/ended', secret: process.env.WEBHOOK_SECRET ?? '' }) })
 */
export function webhook(options: WebhookOptions): OnSessionEnd {
  const { secret, fetch = globalThis.fetch, timeout = 10_000, clock = Date.now } = options
  const url = addressOf(options.url)
  const key = keyOf(secret)
  return async (session, data, { id, reason }) => {
    const body = JSON.stringify({ type: 'session.ended', id, key: session, reason, data })
    const seconds = Math.floor(clock() / 1_000)
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': `${seconds}`,
      'webhook-signature': signature(key, id, seconds, body),
    }
    // Not followed: what was said would go to an address nobody named.
    const request = { method: 'POST', headers, body, redirect: 'manual', signal: AbortSignal.timeout(timeout) } as const
    const answer = await fetch(url, request).catch((cause: unknown) => {
      throw new MemoryError('upstream', `${shownAddress(url)} cannot be reached. Check the address of the webhook.`, {
        cause,
      })
    })
    // Nobody reads it, and unread it would keep the connection.
    await answer.body?.cancel()
    if (answer.ok) return
    throw new MemoryError('upstream', `${shownAddress(url)} answered ${answer.status} instead of 2xx.`, {
      status: answer.status,
    })
  }
}

/** What proves who sent a body: the same as the Standard Webhooks libraries make of it. */
export const signature = (key: Uint8Array, id: string, seconds: number, body: string): string =>
  `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`

function addressOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  // Not repeated: it may hold a key.
  check(
    'url',
    url === undefined ? '…' : shownAddress(url),
    url !== undefined && isSafe && url.username === '' && url.password === '',
    'an https: address, or http: on this machine',
  )
  return url as URL
}

/** The key behind a secret. */
export function keyOf(secret: string): Buffer {
  const [, encoded] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret) ?? []
  const key = encoded === undefined ? Buffer.from(secret) : Buffer.from(encoded, 'base64')
  check(
    'secret',
    '…',
    key.length > 0 && (encoded !== undefined || !secret.startsWith('whsec_')),
    'whsec_ and base64, or any other text',
  )
  return key
}
