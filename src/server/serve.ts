import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pauseFor } from 'node:timers/promises'
import { isSession } from '../domain/admission.ts'
import type { Millis } from '../domain/entry.ts'
import type { Clock } from '../domain/ports.ts'
import { Files, type FilesParts } from '../files/files.ts'
import { isBounded } from '../lifecycle/limits.ts'
import type { Memory } from '../memory.ts'
import { resting } from './api/rest.ts'
import type { Credentials } from './auth/credentials.ts'
import { type Allowance, Limits } from './auth/limits.ts'
import { defaults } from './config/defaults.ts'
import { doorsOf } from './http/hostPolicy.ts'
import { traceOf } from './http/httpError.ts'
import { mcpRoom, type OpenMcp } from './mcp.ts'
import { Memories } from './memoryRegistry.ts'
import { talking } from './modelRoutes.ts'
import { type Log, quiet } from './observability/log.ts'
import { Metrics, type Readings } from './observability/metrics.ts'
import { publishedPrices } from './observability/prices/published.ts'
import type { PriceTable } from './observability/prices.ts'
import type { State } from './observability/ready.ts'
import { type Tracing, untraced } from './observability/spans.ts'
import { Tallies } from './observability/tally.ts'
import { createRequestHandler } from './requestHandler.ts'
import type { House } from './serverContext.ts'
import { KeyedMutex } from './turn/sessionLocks.ts'
import type { Backend } from './upstreams/backend.ts'
import { soleUpstream } from './upstreams/choice.ts'
import { offlineBackend } from './upstreams/offline/offline.ts'
import { type Persistence, poolBackend } from './upstreams/pool.ts'
import type { SessionModels } from './upstreams/sessionModels.ts'
import type { Patience, UpstreamOptions } from './upstreams/upstream.ts'

export type ServeOptions = {
  /** One memory for everything, or one for each way of remembering. */
  readonly memory: Memory | Memories
  readonly host?: string | undefined
  /** 0 takes a free one. */
  readonly port?: number | undefined
  /** Names the server is known by besides those of its own machine, and origins of web pages that may ask it. */
  readonly names?: readonly string[] | undefined
  readonly origins?: readonly string[] | undefined
  /** Model servers, or the base address of one that speaks OpenAI's protocol; without any the built-in offline model answers. */
  readonly upstream?: string | readonly UpstreamOptions[] | undefined
  /** The key for the upstream when a client sends none of its own. */
  readonly apiKey?: string | undefined
  /** Who may ask; everybody, when left out. */
  readonly credentials?: Credentials | undefined
  readonly defaultScope?: string | undefined
  readonly allowance?: Allowance | undefined
  /** The most bytes a request, and a file, may have. */
  readonly largestBody?: number | undefined
  readonly largestFile?: number | undefined
  /** Who does the upkeep of each session: the same that `memory` was opened with. */
  readonly models?: SessionModels | undefined
  readonly patience?: Partial<Patience> | undefined
  readonly persistence?: Partial<Persistence> | undefined
  readonly prices?: PriceTable | undefined
  readonly log?: Log | undefined
  readonly tracing?: Tracing | undefined
  readonly clock?: Clock | undefined
  /** Opens what answers at `/mcp`, when that is first asked for; nothing does when left out. */
  readonly mcp?: OpenMcp | undefined
  /** How often sessions are looked through for those that are over. */
  readonly sweepEvery?: Millis | undefined
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

/**
 * Serves memory behind the protocols of OpenAI and Anthropic.
 *
 * @example
 * await using serving = await serve({ memory: await openMemory(), port: 4848 })
 */
export async function serve(options: ServeOptions): Promise<Serving> {
  const patience = { ...defaults.timeouts, ...options.patience }
  const memories = options.memory instanceof Memories ? options.memory : Memories.of(options.memory)
  const draining = { now: false }
  const house = houseOf(options, memories, backendOf(options, memories, patience), draining)
  const handle = createRequestHandler(house, { ...talking, ...resting })
  const server = createServer(
    { headersTimeout: 30_000, requestTimeout: 300_000, keepAliveTimeout: 65_000 },
    (request, response) => {
      response.on('close', onAnswered)
      handle(request, response).catch((error: unknown) => {
        // One request that cannot even be told what is wrong must not take the others with it.
        house.onFault('answer', traceOf(error))
        response.destroy()
      })
    },
  )
  const onAnswered = (): void => {
    if (!server.listening) server.closeIdleConnections()
  }
  // A client that neither sends nor reads for longer than the upstream may stay silent is gone.
  server.timeout = Math.max(patience.first, patience.idle) + 30_000
  server.listen(options.port ?? 4848, options.host ?? '127.0.0.1')
  await once(server, 'listening')
  const sweep = (): void => {
    const tidying = [house.files.sweep(), ...memories.all().map((memory) => memory.sweep())]
    for (const work of tidying) work.catch((error: unknown) => house.onFault('sweep', traceOf(error)))
  }
  sweep()
  const sweeping = setInterval(sweep, options.sweepEvery ?? defaults.sweepEvery).unref()
  let closed: Promise<void> | undefined
  const close = (grace: Millis = 30_000): Promise<void> => {
    draining.now = true
    clearInterval(sweeping)
    house.mcp?.drain()
    closed ??= shut(server, grace).then(async () => {
      await house.mcp?.close()
      await house.files.close()
      await house.backend.close()
    })
    return closed
  }
  return { url: urlOf(server), answers: house.backend.name, close, [Symbol.asyncDispose]: () => close() }
}

function backendOf({ upstream, apiKey, persistence }: ServeOptions, memories: Memories, patience: Patience): Backend {
  if (upstream === undefined || upstream.length === 0) return offlineBackend(memories.sessions.tokenizer)
  const upstreams = typeof upstream === 'string' ? [soleUpstream(upstream, apiKey)] : upstream
  const pause = async (time: Millis, signal: AbortSignal): Promise<void> => pauseFor(time, undefined, { signal })
  return poolBackend({ upstreams, patience, persistence: { ...defaults.retries, ...persistence }, pause })
}

function houseOf(
  options: ServeOptions,
  memories: Memories,
  backend: Backend,
  draining: { readonly now: boolean },
): House {
  const clock = options.clock ?? Date.now
  const { parts } = memories.scopes
  const files = new Files({
    ...parts,
    clock,
    ...(options.largestFile === undefined ? {} : { limits: { bytes: options.largestFile } }),
  } satisfies FilesParts)
  const state = (): Promise<State> => stateOf(memories, backend, draining.now)
  return {
    memories,
    backend,
    files,
    mcp: options.mcp && mcpRoom(options.mcp),
    state,
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
    largest: { body: options.largestBody ?? defaults.limits.body, file: options.largestFile ?? defaults.limits.file },
    prices: options.prices ?? publishedPrices,
    lanes: new KeyedMutex(),
    metrics: new Metrics({ read: () => readingsOf(memories) }),
    tallies: new Tallies(),
    tracing: options.tracing ?? untraced,
    log: options.log ?? quiet,
    onFault: options.onFault ?? (() => undefined),
  }
}

async function stateOf(memories: Memories, backend: Backend, draining: boolean): Promise<State> {
  const upkeep = memories.all().flatMap((memory) => memory.health().degraded)
  const parts = { upstreams: backend.states(), draining, upkeep }
  // A store that can be read is in order: what cannot be written is told with the request that tries.
  try {
    const { bytes, limit, waiting } = await readingsOf(memories)
    return { ...parts, store: 'ok', bytes: { used: bytes, ...(limit === undefined ? {} : { limit }) }, waiting }
  } catch (error) {
    return { ...parts, store: { fault: traceOf(error) }, bytes: { used: 0 }, waiting: 0 }
  }
}

async function readingsOf(memories: Memories): Promise<Readings & { readonly limit: number | undefined }> {
  const all = memories.all()
  const stores = new Set(all.flatMap(({ parts }) => [parts.sessions, parts.store]))
  const health = all.map((memory) => memory.health())
  const bounded = [...stores].flatMap((store) => (isBounded(store) ? [store.bytes] : []))
  return {
    sessions: (await Promise.all([...stores].map((store) => store.list({ limit: Number.MAX_SAFE_INTEGER }))))
      .flat()
      .filter(isSession).length,
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

async function shut(server: Server, grace: Millis): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  const end = setTimeout(() => server.closeAllConnections(), grace)
  await closed
  clearTimeout(end)
}
