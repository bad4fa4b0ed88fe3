import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Millis } from '../domain/entry.ts'
import type { Memory } from '../memory.ts'
import { readJson } from './body.ts'
import { healthOf } from './health.ts'
import { Lanes } from './lanes.ts'
import { offlineBackend } from './offline.ts'
import { problemOf, traceOf } from './problem.ts'
import { type Client, relayJson } from './relay.ts'
import { routeOf } from './routes.ts'
import type { SessionModels } from './sessionModels.ts'
import { type Room, takeTurn } from './turn.ts'
import { type Patience, upstreamBackend } from './upstream.ts'

export type ServeOptions = {
  readonly memory: Memory
  readonly host?: string | undefined
  /** 0 takes a free one. */
  readonly port?: number | undefined
  /** The base address of a model server that speaks OpenAI's protocol; without it the built-in offline model answers. */
  readonly upstream?: string | undefined
  /** The key for the upstream when a client sends none of its own. */
  readonly apiKey?: string | undefined
  /** The most bytes a request may have. */
  readonly largestBody?: number | undefined
  /** Who does the upkeep of each session: the same that `memory` was opened with. */
  readonly models?: SessionModels | undefined
  readonly patience?: Partial<Patience> | undefined
  /** Hears of faults that no client is told of; never holds what was said. */
  readonly onFault?: ((requestId: string, trace: string) => void) | undefined
}

export type Serving = AsyncDisposable & {
  /** Such as `http://127.0.0.1:4848`. */
  readonly url: string
  /** Who answers: the upstream's address or the name of the built-in model. */
  readonly answers: string
  /** Takes no more requests, lets those under way finish within `grace`, then ends them. */
  close(grace?: Millis): Promise<void>
}

const longestWait: Patience = { first: 600_000, idle: 120_000 }

/**
 * Serves memory behind OpenAI's protocol.
 *
 * @example
 * await using serving = await serve({ memory: await openMemory(), port: 4848 })
 */
export async function serve(options: ServeOptions): Promise<Serving> {
  const { memory, upstream, apiKey } = options
  const patience = { ...longestWait, ...options.patience }
  const backend = upstream === undefined ? offlineBackend(memory.tokenizer) : upstreamBackend({ base: upstream, apiKey, patience })
  const house: House = {
    memory,
    backend,
    models: options.models,
    lanes: new Lanes(),
    largestBody: options.largestBody ?? 33_554_432,
    onFault: options.onFault ?? (() => undefined),
  }
  const server = createServer({ headersTimeout: 30_000, requestTimeout: 300_000, keepAliveTimeout: 65_000 }, (request, response) => {
    response.once('close', () => server.listening || server.closeIdleConnections())
    void answer(house, request, response)
  })
  // A client that neither sends nor reads for longer than the upstream may stay silent is gone.
  server.timeout = Math.max(patience.first, patience.idle) + 30_000
  server.listen(options.port ?? 4848, options.host ?? '127.0.0.1')
  await once(server, 'listening')
  let closed: Promise<void> | undefined
  const sweeping = setInterval(() => void memory.sweep().catch((error: unknown) => house.onFault('sweep', traceOf(error))), 60_000).unref()
  const close = (grace: Millis = 30_000): Promise<void> => {
    clearInterval(sweeping)
    closed ??= shut(server, grace).then(() => backend.close())
    return closed
  }
  return { url: urlOf(server), answers: backend.name, close, [Symbol.asyncDispose]: () => close() }
}

type House = Omit<Room, 'report'> & { readonly largestBody: number; readonly onFault: NonNullable<ServeOptions['onFault']> }

async function answer(house: House, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const id = requestIdOf(request)
  response.setHeader('x-request-id', id)
  const hungUp = new AbortController()
  response.once('close', () => response.writableFinished || hungUp.abort())
  const report = (error: unknown): void => house.onFault(id, traceOf(error))
  try {
    await dispatch({ ...house, report }, house.largestBody, request, { response, signal: hungUp.signal })
  } catch (error) {
    if (hungUp.signal.aborted) return
    if (problemOf(error).status === 500) report(error)
    fail(response, error)
  }
}

async function dispatch(room: Room, largestBody: number, request: IncomingMessage, client: Client): Promise<void> {
  const route = routeOf(request.method ?? '', request.url ?? '')
  if (route.to === 'health') return send(client.response, 200, healthOf(room.memory))
  if (route.to === 'optimizer') return send(client.response, 200, await room.memory.upkeep.optimizer(route.where))
  if (route.to === 'models') return relayJson(await room.backend.models(request.headers, client.signal), client)
  await takeTurn(room, route.key, await readJson(request, largestBody), request.headers, client)
}

function fail(response: ServerResponse, error: unknown): void {
  // After half an answer there is no way left to say that it failed, except to break off.
  if (response.headersSent) return void response.destroy()
  const { status, ...problem } = problemOf(error)
  // What will not change by itself is not worth the retries that clients make of their own accord.
  if (status === 429) response.setHeader('x-should-retry', 'false')
  // There may be no end to what follows, and nobody reads it.
  if (status === 413) response.setHeader('connection', 'close')
  send(response, status, problem)
}

function send(response: ServerResponse, status: number, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value))
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
}

function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && /^[\w.:-]{1,128}$/.test(given) ? given : `req_${crypto.randomUUID()}`
}

function urlOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

async function shut(server: Server, grace: Millis): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  const end = setTimeout(() => server.closeAllConnections(), grace)
  await closed
  clearTimeout(end)
}
