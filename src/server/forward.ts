import type { IncomingMessage } from 'node:http'
import { type Readable, Transform } from 'node:stream'
import { shortenText } from '../domain/error.ts'
import { type Key, parseKey } from '../domain/key.ts'
import { type Credential, isLimitedToTenants } from './auth/credential.ts'
import { resolveKey } from './auth/identity.ts'
import { detectProtocol } from './auth/upstreamHeaders.ts'
import type { ClientConnection } from './http/client.ts'
import { HttpError } from './http/httpError.ts'
import { type Handler, type RequestContext, sendJson } from './http/requestContext.ts'
import { type Fallback, pathOf, queryStringOf } from './http/router.ts'
import { readHeader } from './turn/turn.ts'
import { forEachChunk, type UpstreamResponse } from './upstreams/backend.ts'

/** Path of a request under `/v1`, split into the session key and the endpoint. */
type ForwardPath = {
  readonly key: Key | undefined
  /** Path of the endpoint below the version, such as `files/file-1/content`; empty for `/v1` itself. */
  readonly endpoint: string
}

/** TRACE is missing: its response would show the upstream's key to the client. */
const forwardableMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Route for all paths under `/v1` that no other route has. */
export const forwardRoute: Fallback<Handler> = {
  path: '/v1/{endpoint}',
  handler: forwardRequest,
  toOwnPath: (path) => {
    const { key, endpoint } = parseForwardPath(path)
    return `${key === undefined ? '/v1' : '/v1/key'}/${decodeFully(endpoint).replace(/\/$/, '')}`
  },
  accepts: (method, path) => forwardableMethods.has(method) && /^\/v1(?:\/|$)/.test(path),
}

/** Forwards a request to the upstream for unknown endpoints and relays its response; both are streamed. */
async function forwardRequest(context: RequestContext): Promise<void> {
  return forwardAs(context, { isOwn: false, relay: relayResponse })
}

/**
 * Forwards a request and hands the response to `relay`. `isOwn` says that it concerns data of the client's own session,
 * so that a key of some tenants may send it.
 */
export async function forwardAs(
  context: RequestContext,
  {
    isOwn,
    relay,
  }: {
    readonly isOwn: boolean
    readonly relay: (response: UpstreamResponse, client: ClientConnection) => Promise<void>
  },
): Promise<void> {
  const { server, request, client, credential } = context
  const { method = '' } = request
  const { key, endpoint } = parseForwardPath(pathOf(request))
  resolveKey({ path: key, header: readHeader(request.headers, 'x-threadkeep-key'), credential })
  // Clients test their base URL, which may end with a tenant's name, before they use it.
  if (endpoint === '' || (method === 'HEAD' && !endpoint.includes('/'))) return handleProbe(context)
  if (!isOwn && credential !== undefined && !server.sharesUpstreamAccount)
    checkAccountAccess(credential, method, endpoint)
  const headers = { ...request.headers, ...context.trace.headers }
  const body = openBody(request, server.maxBytes.forward)
  try {
    const response = await server.backend.forward({
      method,
      path: endpoint,
      protocol: isAnthropicEndpoint(endpoint) ? 'anthropic' : detectProtocol(headers),
      headers,
      query: queryStringOf(request),
      withholdClientKey: credential !== undefined,
      body,
      signal: client.signal,
    })
    await relay(response, client)
  } finally {
    // Nobody else reads a body that was refused or that was answered before its end.
    body?.destroy()
  }
}

/** Answers a request that only tests whether the server is there. */
export async function handleProbe({ client }: RequestContext): Promise<void> {
  sendJson(client.response, 200, { status: 'ok' })
}

/** True for endpoints of Anthropic's protocol, such as `messages/batches`. */
const isAnthropicEndpoint = (endpoint: string): boolean => /^messages(?:\/|$)/.test(endpoint)

/** True for a request under `/v1` whose errors have Anthropic's shape. OpenAI's endpoints keep theirs. */
export function expectsAnthropicErrors(path: string, headers: IncomingMessage['headers']): boolean {
  if (!path.startsWith('/v1/') || openaiEndpoint.test(path)) return false
  return anthropicPath.test(path) || detectProtocol(headers) === 'anthropic'
}

const openaiEndpoint = /\/(?:chat\/completions|responses|embeddings)$|\/conversations(?:\/|$)/
const anthropicPath = /^\/v1(?:\/[^/]+(?:\/v1)?)?\/messages(?:\/|$)/

/**
 * Parses a path under `/v1`. Its first segment is a key if it contains a colon or precedes `/v1`: endpoints have
 * neither. The session of such a key never reaches the upstream.
 *
 * @throws {HttpError} 400 for a path that could leave the base path of an upstream.
 *
 * @example
 * parseForwardPath('/v1/acme:ann/v1/files') // key acme:ann, endpoint files
 */
export function parseForwardPath(path: string): ForwardPath {
  const segments = path
    .slice('/v1'.length)
    .split('/')
    .filter((segment) => segment !== '')
  for (const segment of segments) checkSegment(segment)
  const [first = '', second] = segments
  const hasKey = first !== 'v1' && (decodeFully(first).includes(':') || second === 'v1')
  const rest = hasKey ? segments.slice(1) : segments
  const endpoint = (rest[0] === 'v1' ? rest.slice(1) : rest).join('/')
  const trailingSlash = endpoint !== '' && path.endsWith('/') ? '/' : ''
  return { key: hasKey ? parseKey(decodeOnce(first)) : undefined, endpoint: endpoint + trailingSlash }
}

/** The characters of a path segment in RFC 3986. */
const segmentPattern = /^(?:[\w.~!$&'()*+,;=:@-]|%[0-9a-f]{2})+$/i

/** Refuses dot segments and control characters in any encoding: an upstream may decode a path more than once. */
function checkSegment(segment: string): void {
  const decoded = decodeFully(segment)
  const isSafe =
    segmentPattern.test(segment) &&
    // Some servers drop everything after a semicolon.
    !decoded.split(/[/\\]/).some((part) => /^\.{1,2}(?:;|$)/.test(part)) &&
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are refused
    !/[\x00-\x1f\x7f]/.test(decoded)
  if (!isSafe) throw invalidSegment(segment)
}

function invalidSegment(segment: string): HttpError {
  const message = `The path segment ${JSON.stringify(shortenText(segment, 80))} is not allowed. Use plain names and ids.`
  return new HttpError(400, 'invalid_path', message)
}

const decodeOnce = (text: string): string =>
  text.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))

/** More layers of encoding have no use, and decoding thousands of them takes long. */
const maxEncodings = 4

function decodeFully(text: string): string {
  let decoded = text
  for (let count = 0; count <= maxEncodings; count++) {
    const next = decodeOnce(decoded)
    if (next === decoded) return decoded
    decoded = next
  }
  throw invalidSegment(text)
}

/** Endpoints that store nothing at the upstream. */
const statelessEndpoint = /^(?:audio|images|moderations|completions|rerank|responses\/input_tokens)(?:\/|$)/

/**
 * Throws 403 when a key of some tenants would reach data of others: everything that an upstream stores belongs to the
 * operator's account, not to a tenant.
 */
function checkAccountAccess(credential: Credential, method: string, endpoint: string): void {
  if (!isLimitedToTenants(credential)) return
  if (method === 'POST' && statelessEndpoint.test(decodeFully(endpoint))) return
  throw new HttpError(
    403,
    'account_endpoint',
    "This endpoint shows the data of all tenants at the upstream, and this key is limited to some. The operator can allow it by setting forward to the upstream's name.",
  )
}

/** The body as a stream that fails above the limit; undefined for a request without a body. */
function openBody(request: IncomingMessage, maxBytes: number): Readable | undefined {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
  if (encoding === undefined && Number(length ?? 0) === 0) return undefined
  if (Number(length ?? 0) > maxBytes) throw bodyTooLarge(maxBytes)
  const body = limitSize(maxBytes)
  // Destroying the request would close the client's connection before it has the response, so the rest is discarded.
  body.once('close', () => request.unpipe(body).resume())
  request.once('close', () => {
    if (!request.readableEnded) body.destroy(clientDisconnected())
  })
  return request.pipe(body)
}

/** Creates a stream that fails when more than `maxBytes` pass through it. */
function limitSize(maxBytes: number): Transform {
  let size = 0
  const limited = new Transform({
    transform: (chunk: Buffer, _, done) => {
      size += chunk.length
      if (size > maxBytes) done(bodyTooLarge(maxBytes))
      else done(null, chunk)
    },
  })
  // The connection pool reports errors while it sends the body; later ones concern nobody.
  return limited.on('error', () => undefined)
}

const clientDisconnected = (): HttpError =>
  new HttpError(400, 'client_disconnected', 'The client disconnected before the end of the body.')

const bodyTooLarge = (maxBytes: number): HttpError =>
  new HttpError(413, 'body_too_large', `The body is larger than ${maxBytes} bytes.`)

/** Headers that keep a file of the upstream from running as a page of this server in a browser. */
const sandboxHeaders = { 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' }

export async function relayResponse(response: UpstreamResponse, client: ClientConnection): Promise<void> {
  client.sendHeaders(response.status, { ...response.headers, ...sandboxHeaders })
  client.response.flushHeaders()
  await forEachChunk(response.body, (bytes) => (client.write(bytes) ? undefined : client.drained()))
  client.end()
}
