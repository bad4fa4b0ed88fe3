import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { isSession } from '../domain/admission.ts'
import type { Millis } from '../domain/entry.ts'
import type { Clock } from '../domain/ports.ts'
import { Files } from '../files/files.ts'
import { isBounded } from '../lifecycle/limits.ts'
import { internalsOf, type Memory } from '../memory.ts'
import { resting } from './api/apiRoutes.ts'
import type { Credentials } from './auth/credentials.ts'
import { type Allowance, Limits } from './auth/rateLimiter.ts'
import { defaultRetries, defaults, defaultTimeouts } from './config/defaults.ts'
import { doorsOf } from './http/hostPolicy.ts'
import { traceOf } from './http/httpError.ts'
import { mcpRoom, type OpenMcp } from './mcpEndpoint.ts'
import { Memories } from './memoryRegistry.ts'
import { modelRoutes } from './modelRoutes.ts'
import { type Log, quiet } from './observability/log.ts'
import { Metrics, type Readings } from './observability/metrics.ts'
import type { PriceTable } from './observability/prices.ts'
import { publishedPrices } from './observability/publishedPrices.ts'
import type { State } from './observability/readiness.ts'
import { type Tracing, untraced } from './observability/tracing.ts'
import { Tallies } from './observability/usageStats.ts'
import { createRequestHandler } from './requestHandler.ts'
import type { House } from './serverContext.ts'
import { KeyedMutex } from './turn/sessionLocks.ts'
import type { Backend } from './upstreams/backend.ts'
import { offlineBackend } from './upstreams/offlineBackend.ts'
import { type Persistence, poolBackend } from './upstreams/pool.ts'
import type { SessionModels } from './upstreams/sessionModels.ts'
import type { Patience, UpstreamOptions } from './upstreams/upstream.ts'
import { soleUpstream } from './upstreams/upstream.ts'

export type ServeOptions = {
  /** One memory for everything, or a registry with one per profile. */
  readonly memory: Memory | Memories
  /** Default `127.0.0.1`. */
  readonly host?: string | undefined
  /** Default 4848; 0 takes a free port. */
  readonly port?: number | undefined
  /** Host names of the server besides the loopback ones. */
  readonly names?: readonly string[] | undefined
  /** Origins of web pages that may use the server. */
  readonly origins?: readonly string[] | undefined
  /** Upstreams, or the base URL of one that speaks OpenAI's protocol. Without any, the built-in offline model answers. */
  readonly upstream?: string | readonly UpstreamOptions[] | undefined
  /** Key for the upstream when a client sends none. */
  readonly apiKey?: string | undefined
  /** Keys of clients; without them everybody may use the server. */
  readonly credentials?: Credentials | undefined
  /** Scope of sessions that are named without one. */
  readonly defaultScope?: string | undefined
  readonly allowance?: Allowance | undefined
  /** Maximum size of a request body in bytes. */
  readonly largestBody?: number | undefined
  /** Maximum size of a file in bytes. */
  readonly largestFile?: number | undefined
  /** Upkeep models by session: the ones `memory` was opened with. */
  readonly models?: SessionModels | undefined
  readonly patience?: Partial<Patience> | undefined
  readonly persistence?: Partial<Persistence> | undefined
  readonly prices?: PriceTable | undefined
  readonly log?: Log | undefined
  readonly tracing?: Tracing | undefined
  readonly clock?: Clock | undefined
  /** Opens the MCP endpoint with its first request; without it, `/mcp` answers 404. */
  readonly mcp?: OpenMcp | undefined
  /** Interval of the sweep for expired sessions. */
  readonly sweepEvery?: Millis | undefined
  /** Reports internal faults. The trace never contains message text. */
  readonly onFault?: ((requestId: string, trace: string) => void) | undefined
}

export type Serving = AsyncDisposable & {
  /** Such as `http://127.0.0.1:4848`. */
  readonly url: string
  /** Address of the upstream, or name of the built-in model. */
  readonly answers: string
  /** Stops accepting requests, waits up to `grace` for running ones (default 30 s), then closes their connections. */
  close(grace?: Millis): Promise<void>
}

/**
 * Serves memory behind the protocols of OpenAI and Anthropic.
 *
 * @example
 * await using server = await serve({ memory: await openMemory(), port: 4848 })
 */
export async function serve(options: ServeOptions): Promise<Serving> {
  const patience = { ...defaultTimeouts, ...options.patience }
  const memories = options.memory instanceof Memories ? options.memory : Memories.of(options.memory)
  const draining = { now: false }
  const context = createServerContext(options, memories, createBackend(options, memories, patience), draining)
  const server = createHttpServer(context)
  // A client that neither sends nor reads for longer than an upstream may stay silent is gone.
  server.timeout = Math.max(patience.first, patience.idle) + 30_000
  server.listen(options.port ?? 4848, options.host ?? '127.0.0.1')
  await once(server, 'listening')
  const sweep = (): void => {
    const tasks = [context.files.sweep(), ...memories.all().map((memory) => memory.sweep())]
    for (const task of tasks) task.catch((error: unknown) => context.onFault('sweep', traceOf(error)))
  }
  sweep()
  const sweepTimer = setInterval(sweep, options.sweepEvery ?? defaults.sweepInterval).unref()
  let closed: Promise<void> | undefined
  const close = (grace: Millis = 30_000): Promise<void> => {
    draining.now = true
    clearInterval(sweepTimer)
    context.mcp?.drain()
    closed ??= shutDown(server, grace).then(async () => {
      await context.mcp?.close()
      await context.files.close()
      await context.backend.close()
    })
    return closed
  }
  return { url: urlOf(server), answers: context.backend.name, close, [Symbol.asyncDispose]: () => close() }
}

function createHttpServer(context: House): Server {
  const handle = createRequestHandler(context, { ...modelRoutes, ...resting })
  const timeouts = { headersTimeout: 30_000, requestTimeout: 300_000, keepAliveTimeout: 65_000 }
  const server = createServer(timeouts, (request, response) => {
    response.on('close', () => {
      if (!server.listening) server.closeIdleConnections()
    })
    handle(request, response).catch((error: unknown) => {
      // A request whose error response fails must not end the process.
      context.onFault('answer', traceOf(error))
      response.destroy()
    })
  })
  return server
}

function createBackend(
  { upstream, apiKey, persistence }: ServeOptions,
  memories: Memories,
  patience: Patience,
): Backend {
  if (upstream === undefined || upstream.length === 0) return offlineBackend(memories.sessions.tokenizer)
  const upstreams = typeof upstream === 'string' ? [soleUpstream(upstream, apiKey)] : upstream
  const pause = async (time: Millis, signal: AbortSignal): Promise<void> => delay(time, undefined, { signal })
  return poolBackend({ upstreams, patience, persistence: { ...defaultRetries, ...persistence }, pause })
}

function createServerContext(
  options: ServeOptions,
  memories: Memories,
  backend: Backend,
  draining: { readonly now: boolean },
): House {
  const clock = options.clock ?? Date.now
  const files = new Files({
    ...internalsOf(memories.scopes),
    clock,
    ...(options.largestFile !== undefined && { limits: { bytes: options.largestFile } }),
  })
  return {
    memories,
    backend,
    files,
    mcp: options.mcp && mcpRoom(options.mcp),
    state: () => readState(memories, backend, draining.now),
    clock,
    takeFile: (scope, file) => files.begin(scope, file),
    models: options.models,
    tokenizer: memories.sessions.tokenizer,
    credentials: options.credentials,
    defaultScope: options.defaultScope,
    doors: doorsOf({
      listening: options.host ?? '127.0.0.1',
      names: options.names ?? [],
      origins: options.origins ?? [],
    }),
    limits: new Limits(options.allowance ?? {}),
    largest: {
      body: options.largestBody ?? defaults.limits.bodyBytes,
      file: options.largestFile ?? defaults.limits.fileBytes,
    },
    prices: options.prices ?? publishedPrices,
    lanes: new KeyedMutex(),
    metrics: new Metrics({ read: () => readGauges(memories) }),
    tallies: new Tallies(),
    tracing: options.tracing ?? untraced,
    log: options.log ?? quiet,
    onFault: options.onFault ?? (() => undefined),
  }
}

/** Reports the store as healthy when it can be read; write failures are reported by the requests that write. */
async function readState(memories: Memories, backend: Backend, draining: boolean): Promise<State> {
  const upkeep = memories.all().flatMap((memory) => memory.health().degraded)
  const base = { upstreams: backend.states(), draining, upkeep }
  try {
    const { bytes, limit, waiting } = await readGauges(memories)
    return { ...base, store: 'ok', bytes: { used: bytes, ...(limit !== undefined && { limit }) }, waiting }
  } catch (error) {
    return { ...base, store: { fault: traceOf(error) }, bytes: { used: 0 }, waiting: 0 }
  }
}

async function readGauges(memories: Memories): Promise<Readings & { readonly limit: number | undefined }> {
  const all = memories.all()
  const stores = new Set(all.flatMap((memory) => [internalsOf(memory).sessions, internalsOf(memory).store]))
  const health = all.map((memory) => memory.health())
  const bounded = [...stores].flatMap((store) => (isBounded(store) ? [store.bytes] : []))
  const listed = await Promise.all([...stores].map((store) => store.list({ limit: Number.MAX_SAFE_INTEGER })))
  return {
    sessions: listed.flat().filter(isSession).length,
    bytes: bounded.reduce((sum, { used }) => sum + used, 0),
    limit: bounded.find(({ limit }) => limit !== undefined)?.limit,
    waiting: Math.max(0, ...all.map(({ lifecycle }) => lifecycle.waiting)),
    upkeep: {
      done: health.reduce((sum, { done }) => sum + done, 0),
      degraded: health.reduce((sum, { degraded }) => sum + degraded.length, 0),
    },
  }
}

function urlOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

async function shutDown(server: Server, grace: Millis): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  const timer = setTimeout(() => server.closeAllConnections(), grace)
  await closed
  clearTimeout(timer)
}
