import type { IncomingMessage, ServerResponse } from 'node:http'
import { admit } from './auth/identity.ts'
import { visitorOf } from './auth/rateLimiter.ts'
import { Client } from './http/client.ts'
import { checkHost, checkOrigin, corsHeaders, isPreflight, preflightHeaders } from './http/hostPolicy.ts'
import { problemOf, Refusal, traceOf } from './http/httpError.ts'
import { type Exchange, type Handlers, send } from './http/requestContext.ts'
import { Router } from './http/router.ts'
import { problemAt } from './modelRoutes.ts'
import type { Turn } from './observability/turnRecord.ts'
import type { House } from './serverContext.ts'

/** Routes without authentication: they reveal nothing that was said, and probes have no key. */
const publicRoutes: ReadonlySet<string> = new Set(['GET /healthz', 'GET /readyz'])

/** Creates the listener for all requests: host and origin checks, routing, authentication, rate limits, errors, log. */
export function createRequestHandler(
  house: House,
  handlers: Handlers,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const router = new Router(handlers)
  return async (request, response) => {
    const began = performance.now()
    const id = readRequestId(request)
    const client = new Client(response)
    client.tell('x-request-id', id)
    let releaseLimit = (): void => undefined
    response.on('close', () => {
      releaseLimit()
      if (!response.writableFinished) client.hangUp()
    })
    let route = ''
    let turn: Turn | undefined
    try {
      if (checkHostAndOrigin(house, request, client)) return
      const { name, path, handler, params } = router.find(request.method ?? '', pathOf(request))
      route = path
      const isPublic = publicRoutes.has(name)
      const credential = isPublic ? undefined : admit(house.credentials, request.headers, house.clock())
      if (!isPublic && house.limits.isLimited)
        releaseLimit = house.limits.enter(visitorOf(credential, request.socket.remoteAddress), house.clock())
      const incoming = { method: request.method ?? '', route, headers: request.headers }
      await house.tracing.request(incoming, async (traced) => {
        const query = queryOf(request.url ?? '')
        const onTurn = (record: Turn): void => {
          turn = record
          traced.turn(record)
          house.metrics.turn(record)
          house.tallies.heard(record)
        }
        const exchange: Exchange = { house, id, request, params, query, credential, began, traced, onTurn, client }
        await handler(exchange)
        if (turn === undefined) traced.answered(response.statusCode)
      })
    } catch (error) {
      if (!client.signal.aborted) sendError(house, id, request, client, error)
    } finally {
      const { method = '' } = request
      house.log.request({ id, method, route, status: response.statusCode, millis: performance.now() - began, turn })
    }
  }
}

/** Refuses unknown hosts and origins. Answers CORS preflight requests and returns true for them. */
function checkHostAndOrigin(house: House, request: IncomingMessage, client: Client): boolean {
  const { method = '', headers } = request
  checkHost(headers.host, house.doors)
  const origin = checkOrigin(method, headers, house.doors)
  if (origin === undefined) return false
  if (isPreflight(method, headers)) {
    client.begin(204, preflightHeaders(origin, headers))
    client.end()
    return true
  }
  for (const [name, value] of Object.entries(corsHeaders(origin))) client.tell(name, value)
  return false
}

function sendError(house: House, id: string, request: IncomingMessage, client: Client, error: unknown): void {
  const { status, error: problem } = problemOf(error)
  if (status === 500) house.onFault(id, traceOf(error))
  // After the headers, closing the connection is the only way to report a failure.
  if (client.hasBegun) return void client.breakOff()
  client.untell('x-threadkeep-receipt')
  const headers = error instanceof Refusal ? { ...error.headers } : {}
  if (error instanceof Refusal && status === 429)
    house.metrics.limited(error.code === 'rate_limit_exceeded' ? 'rate' : 'concurrency')
  // The SDKs retry 429 by default; a limit without retry-after does not pass by waiting.
  if (status === 429 && headers['retry-after'] === undefined) headers['x-should-retry'] = 'false'
  // The rest of the body stays unread, so the connection cannot be reused.
  if (status === 413 || status === 408) headers.connection = 'close'
  send(client.response, status, problemAt(pathOf(request), problem), headers)
}

const pathOf = ({ url = '' }: IncomingMessage): string => (url.includes('?') ? url.slice(0, url.indexOf('?')) : url)
const emptyQuery = new URLSearchParams()
const queryOf = (url: string): URLSearchParams =>
  url.includes('?') ? new URLSearchParams(url.slice(url.indexOf('?') + 1)) : emptyQuery

function readRequestId(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && /^[\w.:-]{1,128}$/.test(given) ? given : `req_${crypto.randomUUID()}`
}
