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

/**
 * Destination of a client header. `local` headers concern this connection, this server or the web page that sends the
 * request. `key` headers contain the key or the account. `steering` headers can select another address, credential or
 * payer at a gateway, so they are sent only with the client's own key. `body` headers describe the bytes of the body.
 */
type HeaderKind = 'forwarded' | 'local' | 'key' | 'steering' | 'body'

/** Cookies are local: a browser sends those of all other servers at the same host name. */
const localHeader =
  /^(?:connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|host|content-length|accept-encoding|cookie|origin|forwarded|via|location|max-forwards|http2-settings|(?:proxy|sec|access-control|x-threadkeep|x-forwarded|x-original|x-rewrite)-.*|x-real-ip|(?:.*-)?(?:client|connecting)-ip)$/
const keyHeader = /^(?:authorization|x-api-key|api-key|openai-organization|openai-project)$/
const steeringHeader =
  /(?:^|[-_])(?:url|uri|host|hostname|target|upstream|endpoint|proxy|config|provider|apikey|auth|authorization|token|secret|password|credentials?|key|account|organization|project|team|workspace)(?:[-_]|$)/
const bodyHeader = /^(?:content-.*|(?:.*-)?digest)$/

function classifyHeader(name: string): HeaderKind {
  if (localHeader.test(name)) return 'local'
  if (keyHeader.test(name)) return 'key'
  if (bodyHeader.test(name)) return 'body'
  return steeringHeader.test(name) && !name.endsWith('idempotency-key') ? 'steering' : 'forwarded'
}

/** Kinds by header name: clients send the same few names with every request. */
const headerKinds = new Map<string, HeaderKind>()
const maxHeaderKinds = 1_000

function kindOfHeader(name: string): HeaderKind {
  const known = headerKinds.get(name)
  if (known !== undefined) return known
  const kind = classifyHeader(name)
  if (headerKinds.size < maxHeaderKinds) headerKinds.set(name, kind)
  return kind
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

/** `rebuilt` bodies are written by this server; `verbatim` bodies and their replies are relayed without being read. */
export type BodyHandling = 'rebuilt' | 'verbatim'

/**
 * Builds the headers of a request to an upstream: a key, and all client headers except those that concern this
 * connection or this server. With Threadkeep keys, the configured key is used and never the client's; without them, the
 * client's own key comes first. A Threadkeep key is never sent to an upstream.
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
  body: BodyHandling = 'rebuilt',
): Record<string, string> {
  if (url.origin !== upstream.origin) {
    const message = `The key for ${upstream.origin} is not sent to ${url.origin}. Configure a key for each upstream.`
    throw new MemoryError('bad-option', message, { param: 'upstream' })
  }
  // Streams are parsed chunk by chunk, which compression would prevent.
  const headers: Record<string, string> = { 'accept-encoding': 'identity' }
  if (body === 'verbatim') pickHeaders(client, ['accept-encoding'], headers)
  if (clientProtocol === 'anthropic') headers['anthropic-version'] = '2023-06-01'
  const own = buildClientKeyHeaders(upstream.protocol, client, hasCredentials, clientProtocol)
  const isOwnAccount = own !== undefined || (upstream.key === undefined && !hasCredentials)
  const perConnection = connectionHeaders(client.connection)
  const names = Object.keys(client).filter((name) => {
    const kind = kindOfHeader(name)
    if (perConnection?.includes(name) === true) return false
    return kind === 'forwarded' || (kind === 'steering' && isOwnAccount) || (kind === 'body' && body === 'verbatim')
  })
  return Object.assign(pickHeaders(client, names, headers), own ?? configuredKeyHeaders(upstream))
}

/** Names that the Connection header lists: they are meant for this connection only. */
function connectionHeaders(connection: string | undefined): readonly string[] | undefined {
  if (connection === undefined || /^(?:keep-alive|close)$/i.test(connection)) return undefined
  return connection.split(',').map((name) => name.trim().toLowerCase())
}

function configuredKeyHeaders({ protocol, key }: UpstreamIdentity): Record<string, string> {
  if (key === undefined) return {}
  return protocol === 'anthropic' ? { 'x-api-key': key } : { authorization: `Bearer ${key}` }
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

/**
 * Response headers that a client does not receive with a forwarded response: those of the connection, of this server,
 * and those that name the account of a key.
 */
const withheldResponseHeader =
  /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|set-cookie2?|date|location|alt-svc|strict-transport-security|content-security-policy|x-content-type-options|x-request-id|x-threadkeep-.*|access-control-.*|openai-organization|openai-project|anthropic-organization-id)$/

/** The upstream's response headers that the client receives with a forwarded response, which is not read. */
export function pickForwardedResponseHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const perConnection = connectionHeaders(headers.connection === undefined ? undefined : String(headers.connection))
  const returned: Record<string, string> = {}
  for (const name in headers)
    if (headers[name] !== undefined && !withheldResponseHeader.test(name) && perConnection?.includes(name) !== true)
      returned[name] = String(headers[name])
  return returned
}

/**
 * Joins the query of an upstream's base URL and the query of a client. The client's is sent as it is, except parameters
 * that the base URL sets and those that contain a Threadkeep key.
 *
 * @example
 * joinQueries('?api-version=1', 'beta=true') // '?api-version=1&beta=true'
 */
export function joinQueries(base: string, client: string): string {
  if (client === '') return base
  const fixed = new URLSearchParams(base)
  const isSent = (pair: string): boolean => {
    const [[name, value] = ['', '']] = new URLSearchParams(pair)
    return !fixed.has(name) && !containsThreadkeepKey(name) && !containsThreadkeepKey(value)
  }
  const sent = client.split('&').filter(isSent).join('&')
  if (sent === '') return base
  return base === '' || base === '?' ? `?${sent}` : `${base}&${sent}`
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
