import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { findSecrets } from '../text/secrets.ts'
import { authenticate } from './auth/identity.ts'
import { rateLimitKey } from './auth/rateLimiter.ts'
import { forwardRoute } from './forward.ts'
import { ClientConnection } from './http/client.ts'
import { checkHost, checkOrigin, corsHeaders, isPreflight, preflightHeaders } from './http/hostPolicy.ts'
import { describeFault, errorHeaders, HttpError, isServerFault, toErrorResponse } from './http/httpError.ts'
import { checkOwnHeaders } from './http/ownHeaders.ts'
import { type Handlers, sendJson } from './http/requestContext.ts'
import { pathOf, queryStringOf, Router } from './http/router.ts'
import { formatError } from './modelRoutes.ts'
import type { TurnRecord } from './observability/usageStats.ts'
import type { ServerContext } from './serverContext.ts'

/** Routes without authentication: they reveal nothing that was said, and probes have no key. */
const publicRoutes: ReadonlySet<string> = new Set([
  'GET /',
  'GET /assets/{asset}',
  'GET /healthz',
  'GET /readyz',
  'GET /docs',
])

/** Creates the HTTP server with its timeouts. */
export function createHttpServer(context: ServerContext, handlers: Handlers, isDraining: () => boolean): Server {
  const handle = createRequestHandler(context, handlers)
  const timeouts = { headersTimeout: 30_000, requestTimeout: 300_000, keepAliveTimeout: 65_000 }
  const server = createServer(timeouts, (request, response) => {
    // The client connects again for its next request, to another server if there is one.
    if (isDraining()) response.shouldKeepAlive = false
    response.on('close', () => {
      if (!server.listening) server.closeIdleConnections()
    })
    handle(request, response).catch((error: unknown) => {
      // A request whose error response fails must not end the process.
      context.onFault('answer', describeFault(error))
      response.destroy()
    })
  })
  return server
}

/** Creates the listener for all requests: host and origin checks, routing, authentication, rate limits, errors, log. */
function createRequestHandler(
  server: ServerContext,
  handlers: Handlers,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const router = new Router(handlers, forwardRoute)
  return async (request, response) => {
    const startedAt = performance.now()
    const id = readRequestId(request)
    const client = new ClientConnection(response)
    client.setHeader('x-request-id', id)
    let releaseLimit = (): void => undefined
    response.on('close', () => {
      releaseLimit()
      if (!response.writableFinished) client.markDisconnected()
    })
    let route = ''
    let turn: TurnRecord | undefined
    try {
      if (checkHostAndOrigin(server, request, client)) return
      const { name, path, handler, params } = router.find(request.method ?? '', pathOf(request))
      route = path
      const isPublic = publicRoutes.has(name)
      const credential = isPublic ? undefined : authenticate(server.credentials, request.headers, server.clock())
      if (!isPublic && server.limits.isLimited)
        releaseLimit = await acquireLimit(server, response, rateLimitKey(credential, request.socket.remoteAddress))
      checkOwnHeaders(request.headers)
      const incoming = { method: request.method ?? '', route, headers: request.headers }
      await server.tracing.traceRequest(incoming, async (trace) => {
        const query = queryOf(request)
        const onTurn = (record: TurnRecord): void => {
          turn = record
          trace.setTurn(record)
          server.metrics.recordTurn(record)
          server.usageStats.recordTurn(record)
          server.usageSeries.recordTurn(record, server.clock())
        }
        await handler({ server, id, request, params, query, credential, startedAt, trace, onTurn, client })
        if (turn === undefined) trace.setStatus(response.statusCode)
      })
    } catch (error) {
      if (!client.signal.aborted) sendError(server, id, request, client, error)
    } finally {
      const { method = '' } = request
      const durationMs = performance.now() - startedAt
      server.log.request({ id, method, route, status: response.statusCode, durationMs, turn })
    }
  }
}

/** Counts a request against the rate limits, until its end. */
async function acquireLimit(server: ServerContext, response: ServerResponse, client: string): Promise<() => void> {
  const release = await server.limits.acquireShared(client, server.clock())
  // The client may have disconnected while shared counters were asked.
  if (response.closed) release()
  return release
}

/** Refuses unknown hosts and origins. Answers CORS preflight requests and returns true for them. */
function checkHostAndOrigin(server: ServerContext, request: IncomingMessage, client: ClientConnection): boolean {
  const { method = '', headers } = request
  checkHost(headers.host, server.hostPolicy)
  const origin = checkOrigin(method, headers, server.hostPolicy)
  if (origin === undefined) return false
  if (isPreflight(method, headers)) {
    client.sendHeaders(204, preflightHeaders(origin, headers))
    client.end()
    return true
  }
  for (const [name, value] of Object.entries(corsHeaders(origin))) client.setHeader(name, value)
  return false
}

function sendError(
  server: ServerContext,
  id: string,
  request: IncomingMessage,
  client: ClientConnection,
  error: unknown,
): void {
  const { status, error: problem } = toErrorResponse(error)
  if (isServerFault(error)) server.onFault(id, describeFault(error))
  // After the headers, closing the connection is the only way to report a failure.
  if (client.headersSent) return void client.destroy()
  client.removeHeader('x-threadkeep-receipt')
  const headers = errorHeaders(error)
  if (error instanceof HttpError && status === 429)
    server.metrics.recordRefusal(error.code === 'rate_limit_exceeded' ? 'rate' : 'concurrency')
  // The SDKs retry 429 by default; a limit without retry-after does not pass by waiting.
  if (status === 429 && headers['retry-after'] === undefined) headers['x-should-retry'] = 'false'
  // The rest of the body stays unread, so the connection cannot be reused.
  if (status === 413 || status === 408) headers.connection = 'close'
  sendJson(client.response, status, formatError(request, problem), headers)
}

const emptyQuery = new URLSearchParams()
const queryOf = (request: IncomingMessage): URLSearchParams => {
  const query = queryStringOf(request)
  return query === '' ? emptyQuery : new URLSearchParams(query)
}

/** The id is in logs and receipts, so one that looks like a secret is replaced like a malformed one. */
function readRequestId(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  const isUsable = typeof given === 'string' && /^[\w.:-]{1,128}$/.test(given) && findSecrets(given).length === 0
  return isUsable ? given : `req_${crypto.randomUUID()}`
}
