import type { IncomingMessage, ServerResponse } from 'node:http'
import { admit } from '../auth/admit.ts'
import { visitorOf } from '../auth/limits.ts'
import { problemAt } from '../modelRoutes.ts'
import type { Turn } from '../observability/turn.ts'
import type { House } from '../serverContext.ts'
import { Client } from './client.ts'
import { type Exchange, type Handlers, send } from './exchange.ts'
import { checkHost, checkOrigin, corsHeaders, isPreflight, preflightHeaders } from './hosts.ts'
import { problemOf, Refusal, traceOf } from './problem.ts'
import { Router } from './routes.ts'

/** What anybody may ask: it tells nothing of what was said, and whoever watches over the server has no key. */
const open: ReadonlySet<string> = new Set(['GET /healthz', 'GET /readyz'])

/** Answers requests: who is let in, who answers, and what is told when that fails. */
export function answering(
  house: House,
  handlers: Handlers,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const router = new Router(handlers)
  return async (request, response) => {
    const began = performance.now()
    const id = requestIdOf(request)
    const client = new Client(response)
    client.tell('x-request-id', id)
    let leave = (): void => undefined
    response.on('close', () => {
      leave()
      if (!response.writableFinished) client.hangUp()
    })
    let route = ''
    let told: Turn | undefined
    try {
      if (checkDoors(house, request, client)) return
      const { name, path, handler, params } = router.find(request.method ?? '', pathOf(request))
      route = path
      const isOpen = open.has(name)
      const credential = isOpen ? undefined : admit(house.credentials, request.headers, house.clock())
      if (!isOpen && house.limits.isLimited)
        leave = house.limits.enter(visitorOf(credential, request.socket.remoteAddress), house.clock())
      const incoming = { method: request.method ?? '', route, headers: request.headers }
      await house.tracing.request(incoming, async (traced) => {
        const query = queryOf(request.url ?? '')
        const onTurn = (turn: Turn): void => {
          told = turn
          traced.turn(turn)
          house.metrics.turn(turn)
          house.tallies.heard(turn)
        }
        const exchange: Exchange = { house, id, request, params, query, credential, began, traced, onTurn, client }
        await handler(exchange)
        if (told === undefined) traced.answered(response.statusCode)
      })
    } catch (error) {
      if (!client.signal.aborted) fail(house, id, request, client, error)
    } finally {
      const { method = '' } = request
      house.log.request({
        id,
        method,
        route,
        status: response.statusCode,
        millis: performance.now() - began,
        turn: told,
      })
    }
  }
}

/** Turns away who comes by the wrong name or from a foreign page; answers a browser that asks what it may ask. */
function checkDoors(house: House, request: IncomingMessage, client: Client): boolean {
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

function fail(house: House, id: string, request: IncomingMessage, client: Client, error: unknown): void {
  const { status, error: problem } = problemOf(error)
  if (status === 500) house.onFault(id, traceOf(error))
  // After half an answer there is no way left to say that it failed, except to break off.
  if (client.hasBegun) return void client.breakOff()
  client.untell('x-threadkeep-receipt')
  const headers = error instanceof Refusal ? { ...error.headers } : {}
  if (error instanceof Refusal && status === 429)
    house.metrics.limited(error.code === 'rate_limit_exceeded' ? 'rate' : 'concurrency')
  // What will not change by itself is not worth the retries that clients make of their own accord.
  if (status === 429 && headers['retry-after'] === undefined) headers['x-should-retry'] = 'false'
  // There may be no end to what follows, and nobody reads it.
  if (status === 413 || status === 408) headers.connection = 'close'
  send(client.response, status, problemAt(pathOf(request), problem), headers)
}

const pathOf = ({ url = '' }: IncomingMessage): string => (url.includes('?') ? url.slice(0, url.indexOf('?')) : url)
const none = new URLSearchParams()
const queryOf = (url: string): URLSearchParams =>
  url.includes('?') ? new URLSearchParams(url.slice(url.indexOf('?') + 1)) : none

function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && /^[\w.:-]{1,128}$/.test(given) ? given : `req_${crypto.randomUUID()}`
}
