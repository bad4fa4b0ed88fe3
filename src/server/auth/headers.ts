import type { IncomingHttpHeaders } from 'node:http'
import { MemoryError } from '../../domain/error.ts'

export type Protocol = 'openai' | 'anthropic'

/** A model server and the key that was given for it. The key goes to this origin and to no other. */
export type Upstream = { readonly origin: string; readonly protocol: Protocol; readonly key?: string | undefined }

/** What of a client's headers is passed on; others may concern this server only or give something away. */
const forwarded: Readonly<Record<Protocol, readonly string[]>> = {
  openai: ['accept', 'openai-beta', 'traceparent', 'tracestate', 'user-agent', 'x-client-request-id'],
  anthropic: [
    'accept',
    'anthropic-beta',
    'anthropic-dangerous-direct-browser-access',
    'anthropic-version',
    'traceparent',
    'tracestate',
    'user-agent',
    'x-app',
  ],
}

/** What belongs to a client's own key: the account it is for. Beside another key it would choose whose account pays. */
const account: Readonly<Record<Protocol, readonly string[]>> = {
  openai: ['openai-organization', 'openai-project'],
  anthropic: [],
}

/** What is passed back of the upstream's. The account that a key belongs to is nobody's business. */
const returned: Readonly<Record<Protocol, RegExp>> = {
  openai:
    /^(?:content-type|retry-after|retry-after-ms|x-should-retry|openai-(?!organization$|project$)[a-z-]{1,64}|x-ratelimit-[a-z-]{1,64})$/,
  anthropic:
    /^(?:content-type|retry-after|retry-after-ms|x-should-retry|request-id|anthropic-(?!organization-id$)[a-z-]{1,64})$/,
}

/** The protocol of a client where the address does not tell: Anthropic's clients have headers of their own for a key and a version. */
export const spokenBy = (client: IncomingHttpHeaders): Protocol =>
  client['x-api-key'] !== undefined || client['anthropic-version'] !== undefined ? 'anthropic' : 'openai'

/**
 * The headers of a request to a model server: what the protocol it is asked in needs of the client's, and a key. Throws if
 * the address is not the one that the key was given for.
 *
 * @example
 * requestHeaders({ origin: 'https://api.openai.com', protocol: 'openai', key: 'sk-…' }, url, request.headers, true)
 */
export function requestHeaders(
  upstream: Upstream,
  url: Pick<URL, 'origin'>,
  client: IncomingHttpHeaders,
  hasCredentials: boolean,
  spoken = upstream.protocol,
): Record<string, string> {
  if (url.origin !== upstream.origin) {
    throw new MemoryError(
      'bad-option',
      `The key for ${upstream.origin} is not sent to ${url.origin}. Give each model server its own key.`,
      {
        param: 'upstream',
      },
    )
  }
  // What is passed on piece by piece must be readable piece by piece.
  const headers: Record<string, string> = { 'accept-encoding': 'identity' }
  if (spoken === 'anthropic') headers['anthropic-version'] = '2023-06-01'
  return Object.assign(chosen(client, forwarded[spoken], headers), keyHeaders(upstream, client, hasCredentials, spoken))
}

/**
 * The key a model server is asked with. Where clients bring Threadkeep keys, it is the configured one and never the
 * client's; elsewhere the client's own, else the configured one. A Threadkeep key is never sent to anybody.
 */
export function keyHeaders(
  upstream: Upstream,
  client: IncomingHttpHeaders,
  hasCredentials: boolean,
  spoken = upstream.protocol,
): Record<string, string> {
  const own = ownKeyHeaders(upstream.protocol, client, hasCredentials, spoken)
  if (own !== undefined) return own
  if (upstream.key === undefined) return {}
  return upstream.protocol === 'anthropic' ? { 'x-api-key': upstream.key } : { authorization: `Bearer ${upstream.key}` }
}

/** The client's own key as a server of this protocol is asked with it, and the account it is for; `undefined` if it has none to be used. */
export function ownKeyHeaders(
  protocol: Protocol,
  client: IncomingHttpHeaders,
  hasCredentials: boolean,
  spoken = protocol,
): Record<string, string> | undefined {
  const own = hasCredentials ? {} : clientKeys(protocol, client, spoken)
  return Object.keys(own).length === 0 ? undefined : chosen(client, account[protocol], own)
}

/** The headers of an answer that a client gets to see. */
export function returnedHeaders(
  spoken: Protocol,
  given: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const found: Record<string, string> = {}
  for (const name in given)
    if (given[name] !== undefined && returned[spoken].test(name)) found[name] = String(given[name])
  return found
}

/** Whoever asks a server of OpenAI's kind in Anthropic's protocol may bring its key in Anthropic's header; elsewhere that key is Anthropic's alone. */
function clientKeys(protocol: Protocol, client: IncomingHttpHeaders, spoken: Protocol): Record<string, string> {
  if (protocol === 'anthropic') return chosen(client, ['authorization', 'x-api-key'])
  const own = chosen(client, ['api-key', 'authorization'])
  if (spoken === 'openai' || own.authorization !== undefined || own['api-key'] !== undefined) return own
  const { 'x-api-key': key } = chosen(client, ['x-api-key'])
  return key === undefined ? own : { authorization: `Bearer ${key}` }
}

/** Adds the headers of these names to those that were found before. */
function chosen(
  client: IncomingHttpHeaders,
  names: readonly string[],
  found: Record<string, string> = {},
): Record<string, string> {
  for (const name of names) {
    const value = client[name]
    if (typeof value === 'string' && value !== '' && !holdsKey(value)) found[name] = value
  }
  return found
}

/** Also a mistyped key of ours is ours, wherever it was put. */
const holdsKey = (value: string): boolean => value.includes('_') && /\btk_/i.test(value)
