import type { IncomingHttpHeaders } from 'node:http'
import { MemoryError } from '../../domain/error.ts'

/** The API family of an upstream or a client. */
export type UpstreamProtocol = 'openai' | 'anthropic'

/** An upstream and its configured key. The key is sent to this origin only. */
export type UpstreamIdentity = {
  readonly origin: string
  readonly protocol: UpstreamProtocol
  readonly key?: string | undefined
}

/** Client headers that are forwarded. All others may concern this server only or leak information. */
const forwardedHeaders: Readonly<Record<UpstreamProtocol, readonly string[]>> = {
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

/** Headers that select the account of the client's own key. With another key they would select who pays. */
const accountHeaders: Readonly<Record<UpstreamProtocol, readonly string[]>> = {
  openai: ['openai-organization', 'openai-project'],
  anthropic: [],
}

/** Upstream headers that are returned to the client; those that name the account of a key are not. */
const returnedHeaderPattern: Readonly<Record<UpstreamProtocol, RegExp>> = {
  openai:
    /^(?:content-type|retry-after|retry-after-ms|x-should-retry|openai-(?!organization$|project$)[a-z-]{1,64}|x-ratelimit-[a-z-]{1,64})$/,
  anthropic:
    /^(?:content-type|retry-after|retry-after-ms|x-should-retry|request-id|anthropic-(?!organization-id$)[a-z-]{1,64})$/,
}

/** The protocol of a client when the path does not determine it: Anthropic's clients send headers of their own. */
export const detectProtocol = (client: IncomingHttpHeaders): UpstreamProtocol =>
  client['x-api-key'] !== undefined || client['anthropic-version'] !== undefined ? 'anthropic' : 'openai'

/**
 * Builds the headers of a request to an upstream: the forwarded client headers and a key.
 *
 * @param hasCredentials true when the client authenticated with a Threadkeep key
 * @param clientProtocol protocol of the request; default: the upstream's
 * @throws {MemoryError} `bad-option` when the URL is not at the upstream's origin.
 *
 * @example
 * buildRequestHeaders({ origin: 'https://api.openai.com', protocol: 'openai', key: 'sk-…' }, url, request.headers, true)
 */
export function buildRequestHeaders(
  upstream: UpstreamIdentity,
  url: Pick<URL, 'origin'>,
  client: IncomingHttpHeaders,
  hasCredentials: boolean,
  clientProtocol = upstream.protocol,
): Record<string, string> {
  if (url.origin !== upstream.origin) {
    const message = `The key for ${upstream.origin} is not sent to ${url.origin}. Configure a key for each upstream.`
    throw new MemoryError('bad-option', message, { param: 'upstream' })
  }
  // Streams are parsed chunk by chunk, which compression would prevent.
  const headers: Record<string, string> = { 'accept-encoding': 'identity' }
  if (clientProtocol === 'anthropic') headers['anthropic-version'] = '2023-06-01'
  return Object.assign(
    pickHeaders(client, forwardedHeaders[clientProtocol], headers),
    keyHeaders(upstream, client, hasCredentials, clientProtocol),
  )
}

/**
 * Headers with the upstream's key. With Threadkeep keys, the configured key is used and never the client's; without
 * them, the client's own key comes first. A Threadkeep key is never sent to an upstream.
 */
export function keyHeaders(
  upstream: UpstreamIdentity,
  client: IncomingHttpHeaders,
  hasCredentials: boolean,
  clientProtocol = upstream.protocol,
): Record<string, string> {
  const own = buildClientKeyHeaders(upstream.protocol, client, hasCredentials, clientProtocol)
  if (own !== undefined) return own
  if (upstream.key === undefined) return {}
  return upstream.protocol === 'anthropic' ? { 'x-api-key': upstream.key } : { authorization: `Bearer ${upstream.key}` }
}

/**
 * Headers with the client's own key and account, in the form of the upstream's protocol; undefined without such a key.
 */
export function buildClientKeyHeaders(
  protocol: UpstreamProtocol,
  client: IncomingHttpHeaders,
  hasCredentials: boolean,
  clientProtocol = protocol,
): Record<string, string> | undefined {
  const own = hasCredentials ? {} : clientKeyHeaders(protocol, client, clientProtocol)
  return Object.keys(own).length === 0 ? undefined : pickHeaders(client, accountHeaders[protocol], own)
}

/** The upstream's response headers that the client receives. */
export function pickResponseHeaders(
  clientProtocol: UpstreamProtocol,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const returned: Record<string, string> = {}
  for (const name in headers)
    if (headers[name] !== undefined && returnedHeaderPattern[clientProtocol].test(name))
      returned[name] = String(headers[name])
  return returned
}

/** Converts `x-api-key` to a bearer token when an Anthropic client uses an OpenAI-compatible upstream. */
function clientKeyHeaders(
  protocol: UpstreamProtocol,
  client: IncomingHttpHeaders,
  clientProtocol: UpstreamProtocol,
): Record<string, string> {
  if (protocol === 'anthropic') return pickHeaders(client, ['authorization', 'x-api-key'])
  const own = pickHeaders(client, ['api-key', 'authorization'])
  if (clientProtocol === 'openai' || own.authorization !== undefined || own['api-key'] !== undefined) return own
  const { 'x-api-key': key } = pickHeaders(client, ['x-api-key'])
  return key === undefined ? own : { authorization: `Bearer ${key}` }
}

/** Copies the named headers into `target`, except values that contain a Threadkeep key. */
function pickHeaders(
  client: IncomingHttpHeaders,
  names: readonly string[],
  target: Record<string, string> = {},
): Record<string, string> {
  for (const name of names) {
    const value = client[name]
    if (typeof value === 'string' && value !== '' && !containsThreadkeepKey(value)) target[name] = value
  }
  return target
}

/** Also matches mistyped keys, wherever they are in the value. */
const containsThreadkeepKey = (value: string): boolean => value.includes('_') && /\btk_/i.test(value)
