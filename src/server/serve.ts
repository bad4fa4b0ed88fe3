import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Millis } from '../domain/entry.ts'
import { KeyedMutex } from '../domain/keyed.ts'
import type { Clock, TokenBuckets } from '../domain/ports.ts'
import type { RetryPolicy } from '../domain/retry.ts'
import { FileService } from '../files/files.ts'
import { internalsOf, type Memory } from '../memory.ts'
import type { Timeouts } from '../providers/deadline.ts'
import { apiRoutes } from './api/apiRoutes.ts'
import type { Credentials } from './auth/credentials.ts'
import { RateLimiter, type RateLimits } from './auth/rateLimiter.ts'
import { defaultRetries, defaults, defaultTimeouts } from './config/defaults.ts'
import { parseHostPolicy } from './http/hostPolicy.ts'
import { describeFault } from './http/httpError.ts'
import { inspectorReader } from './inspector/assets.ts'
import { SessionEvents } from './inspector/sessionEvents.ts'
import { createMcpEndpoint, type OpenMcp } from './mcpEndpoint.ts'
import { MemoryRegistry } from './memoryRegistry.ts'
import { modelRoutes } from './modelRoutes.ts'
import { HealthReader } from './observability/healthReader.ts'
import { type Log, silentLog } from './observability/log.ts'
import { Metrics } from './observability/metrics.ts'
import { OptimizerStatusReader } from './observability/optimizerStatus.ts'
import type { PriceTable } from './observability/prices.ts'
import { publishedPrices } from './observability/publishedPrices.ts'
import { noopTracing, type Tracing } from './observability/tracing.ts'
import { UsageSeries } from './observability/usageSeries.ts'
import { UsageStats } from './observability/usageStats.ts'
import { createHttpServer } from './requestHandler.ts'
import type { ServerContext } from './serverContext.ts'
import { type HistoryMode, SessionActivity } from './turn/sessionActivity.ts'
import { TurnMeter } from './turn/turnMeter.ts'
import { recordUpkeepCall } from './upkeepAccounting.ts'
import type { Backend } from './upstreams/backend.ts'
import type { ContextWindows } from './upstreams/contextWindows.ts'
import { createOfflineBackend } from './upstreams/offlineBackend.ts'
import { createUpstreamPool, type ForwardSetting } from './upstreams/pool.ts'
import type { SessionModels } from './upstreams/sessionModels.ts'
import { createDefaultUpstream, type UpstreamOptions } from './upstreams/upstream.ts'

export type ServeOptions = {
  /** One memory for everything, or a registry with one per profile. */
  readonly memory: Memory | MemoryRegistry
  /** Default `127.0.0.1`. */
  readonly host?: string | undefined
  /** Default 4848; 0 takes a free port. */
  readonly port?: number | undefined
  /** Host names of the server besides the loopback ones. */
  readonly allowedHosts?: readonly string[] | undefined
  /** Origins of web pages that may use the server. */
  readonly allowedOrigins?: readonly string[] | undefined
  /**
   * Upstreams, or the base URL of one that speaks OpenAI's protocol. Without any, the built-in offline model answers.
   */
  readonly upstream?: string | readonly UpstreamOptions[] | undefined
  /** Key for the upstream when a client sends none. */
  readonly apiKey?: string | undefined
  /** Keys of clients; without them everybody may use the server. */
  readonly credentials?: Credentials | undefined
  /** Scope of sessions that are named without one. */
  readonly defaultScope?: string | undefined
  readonly rateLimits?: RateLimits | undefined
  /** Counters of rate limits that several servers share. Default: each server limits on its own. */
  readonly tokenBuckets?: TokenBuckets | undefined
  /** Maximum size of a request body in bytes. */
  readonly maxBodyBytes?: number | undefined
  /** Maximum size of a file in bytes. */
  readonly maxFileBytes?: number | undefined
  /** Maximum size of a forwarded request body in bytes. */
  readonly maxForwardBytes?: number | undefined
  /**
   * Names of the upstreams that receive requests for unknown endpoints, or false for none. Default: all, except that
   * keys of some tenants cannot reach endpoints that show the whole account.
   */
  readonly forward?: ForwardSetting | undefined
  /** Upkeep models by session: the ones `memory` was opened with. */
  readonly upkeepModels?: SessionModels | undefined
  /** Kind of all clients: `full` ones resend their conversation, `thin` ones do not. Default: told per request. */
  readonly history?: HistoryMode | undefined
  /** Context windows of models in tokens, by name or pattern, beside the published ones. */
  readonly contextWindows?: ContextWindows | undefined
  readonly timeouts?: Partial<Timeouts> | undefined
  readonly retries?: Partial<RetryPolicy> | undefined
  readonly prices?: PriceTable | undefined
  readonly log?: Log | undefined
  readonly tracing?: Tracing | undefined
  readonly clock?: Clock | undefined
  /** Opens the MCP endpoint with its first request; without it, `/mcp` answers 404. */
  readonly mcp?: OpenMcp | undefined
  /** Folder of the built inspector page; without it, browsers get a start page. */
  readonly inspectorFolder?: string | undefined
  /** Changes of the stores; without it, event streams carry no events. */
  readonly sessionEvents?: SessionEvents | undefined
  /** Interval of the sweep for expired sessions. */
  readonly sweepIntervalMs?: Millis | undefined
  /**
   * Time between the start of a shutdown, when `/readyz` answers 503, and the end of listening: a load balancer that
   * polls stops sending requests meanwhile. Default 0.
   */
  readonly drainMs?: Millis | undefined
  /** Reports internal faults. The trace never contains message text. */
  readonly onFault?: ((requestId: string, trace: string) => void) | undefined
}

export type RunningServer = AsyncDisposable & {
  /** Such as `http://127.0.0.1:4848`. */
  readonly url: string
  /** Address of the upstream, or name of the built-in model. */
  readonly backend: string
  /**
   * Reports itself as not ready, stops accepting requests after `drainMs`, waits up to `grace` for running ones
   * (default 30 s), then closes their connections.
   */
  close(grace?: Millis): Promise<void>
}

/**
 * Serves memory behind the protocols of OpenAI and Anthropic.
 *
 * @example
 * await using server = await serve({ memory: await openMemory(), port: 4848 })
 */
export async function serve(options: ServeOptions): Promise<RunningServer> {
  const timeouts = { ...defaultTimeouts, ...options.timeouts }
  const memories = options.memory instanceof MemoryRegistry ? options.memory : MemoryRegistry.resolve(options.memory)
  const draining = { now: false }
  const context = createServerContext(options, memories, createBackend(options, memories, timeouts), draining)
  if (options.upkeepModels !== undefined)
    options.upkeepModels.onCall = (key, call) => recordUpkeepCall(context, key, call)
  const server = createHttpServer(context, { ...modelRoutes, ...apiRoutes }, () => draining.now)
  // A client that neither sends nor reads for longer than an upstream may stay silent is gone.
  server.timeout = Math.max(timeouts.firstByte, timeouts.idle) + 30_000
  server.listen(options.port ?? 4848, options.host ?? '127.0.0.1')
  await once(server, 'listening')
  const sweep = (): void => {
    const tasks = [context.files.sweep(), ...memories.all().map((memory) => memory.sweep())]
    for (const task of tasks) task.catch((error: unknown) => context.onFault('sweep', describeFault(error)))
  }
  sweep()
  const sweepTimer = setInterval(sweep, options.sweepIntervalMs ?? defaults.sweepInterval).unref()
  let closed: Promise<void> | undefined
  const close = (grace: Millis = 30_000): Promise<void> => {
    draining.now = true
    clearInterval(sweepTimer)
    context.mcp?.drain()
    context.sessionEvents.close()
    closed ??= shutDown(server, options.drainMs ?? 0, grace).then(async () => {
      await context.mcp?.close()
      await context.files.close()
      await context.backend.close()
    })
    return closed
  }
  return { url: urlOf(server), backend: context.backend.name, close, [Symbol.asyncDispose]: () => close() }
}

function createBackend(
  { upstream, apiKey, retries, forward }: ServeOptions,
  memories: MemoryRegistry,
  timeouts: Timeouts,
): Backend {
  if (upstream === undefined || upstream.length === 0) return createOfflineBackend(memories.sessions.tokenizer)
  const upstreams = typeof upstream === 'string' ? [createDefaultUpstream(upstream, apiKey)] : upstream
  const pause = async (time: Millis, signal: AbortSignal): Promise<void> => delay(time, undefined, { signal })
  return createUpstreamPool({
    upstreams,
    timeouts,
    retryPolicy: { ...defaultRetries, ...retries },
    forward,
    sleep: pause,
  })
}

function createServerContext(
  options: ServeOptions,
  memories: MemoryRegistry,
  backend: Backend,
  draining: { readonly now: boolean },
): ServerContext {
  const { clock = Date.now, onFault = () => undefined } = options
  const health = new HealthReader(memories, backend)
  const files = new FileService({
    ...internalsOf(memories.scopes),
    clock,
    ...(options.maxFileBytes !== undefined && { limits: { maxFileBytes: options.maxFileBytes } }),
  })
  return {
    memories,
    backend,
    files,
    mcp: options.mcp && createMcpEndpoint(options.mcp),
    readState: () => health.readState(draining.now),
    optimizerStatus: new OptimizerStatusReader(memories),
    clock,
    indexFile: (scope, file) => files.addInBackground(scope, file),
    upkeepModels: options.upkeepModels,
    tokenizer: memories.sessions.tokenizer,
    credentials: options.credentials,
    defaultScope: options.defaultScope,
    hostPolicy: parseHostPolicy({
      listenAddress: options.host ?? '127.0.0.1',
      hosts: options.allowedHosts ?? [],
      origins: options.allowedOrigins ?? [],
    }),
    limits: new RateLimiter(
      options.rateLimits ?? {},
      options.tokenBuckets && {
        buckets: options.tokenBuckets,
        onFault: (error) => onFault('limits', `Each server limits the rate on its own. ${describeFault(error)}`),
      },
    ),
    maxBytes: {
      body: options.maxBodyBytes ?? defaults.limits.bodyBytes,
      file: options.maxFileBytes ?? defaults.limits.fileBytes,
      forward: options.maxForwardBytes ?? defaults.limits.forwardBytes,
    },
    sharesUpstreamAccount: options.forward !== undefined || (options.upstream ?? []).length === 0,
    prices: options.prices ?? publishedPrices,
    sessionLocks: new KeyedMutex(),
    activity: new SessionActivity(),
    meter: new TurnMeter(),
    history: options.history,
    contextWindows: options.contextWindows ?? {},
    metrics: new Metrics({ readGauges: () => health.readGauges() }),
    usageStats: new UsageStats(),
    usageSeries: new UsageSeries(),
    tracing: options.tracing ?? noopTracing,
    log: options.log ?? silentLog,
    onFault,
    readInspector: inspectorReader(options.inspectorFolder),
    sessionEvents: options.sessionEvents ?? new SessionEvents(),
  }
}

function urlOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

async function shutDown(server: Server, drainMs: Millis, grace: Millis): Promise<void> {
  const closed = once(server, 'close')
  if (drainMs > 0) await delay(drainMs)
  server.close()
  const timer = setTimeout(() => server.closeAllConnections(), grace)
  await closed
  clearTimeout(timer)
}
