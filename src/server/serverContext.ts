import type { KeyedMutex } from '../domain/keyed.ts'
import type { Clock, Tokenizer } from '../domain/ports.ts'
import type { FileService } from '../files/files.ts'
import type { Credentials } from './auth/credentials.ts'
import type { RateLimiter } from './auth/rateLimiter.ts'
import type { HostPolicy } from './http/hostPolicy.ts'
import type { Inspector } from './inspector/assets.ts'
import type { SessionEvents } from './inspector/sessionEvents.ts'
import type { McpEndpoint } from './mcpEndpoint.ts'
import type { MemoryRegistry } from './memoryRegistry.ts'
import type { Log } from './observability/log.ts'
import type { Metrics } from './observability/metrics.ts'
import type { OptimizerStatusReader } from './observability/optimizerStatus.ts'
import type { PriceTable } from './observability/prices.ts'
import type { ServerHealth } from './observability/readiness.ts'
import type { Tracing } from './observability/tracing.ts'
import type { UsageSeries } from './observability/usageSeries.ts'
import type { UsageStats } from './observability/usageStats.ts'
import type { HistoryMode, SessionActivity } from './turn/sessionActivity.ts'
import type { TurnMeter } from './turn/turnMeter.ts'
import type { Backend } from './upstreams/backend.ts'
import type { ContextWindows } from './upstreams/contextWindows.ts'
import type { SessionModels } from './upstreams/sessionModels.ts'

/** Indexes a file that a message to a tenant contains. */
export type IndexFile = (
  scope: string,
  file: { readonly name: string; readonly type: string; readonly bytes: Uint8Array },
) => Promise<unknown>

/** Dependencies shared by all request handlers. */
export type ServerContext = {
  readonly memories: MemoryRegistry
  readonly backend: Backend
  /** One turn of a session is ingested at a time, so that two requests with the same messages store them once. */
  readonly sessionLocks: KeyedMutex
  /** Running turns and clients of each session. */
  readonly activity: SessionActivity
  /** Measures turns against the prompts before them. */
  readonly meter: TurnMeter
  /** Kind of client, if the configuration forces one. */
  readonly history: HistoryMode | undefined
  /** Configured context windows of models. */
  readonly contextWindows: ContextWindows
  /** Model for the upkeep of each session: the one its client uses. */
  readonly upkeepModels: SessionModels | undefined
  readonly prices: PriceTable
  readonly indexFile: IndexFile | undefined
  /** Counts the tokens of client requests. */
  readonly tokenizer: Tokenizer
  readonly files: FileService
  /** Undefined when MCP is off. */
  readonly mcp: McpEndpoint | undefined
  /** Undefined when the server requires no keys. */
  readonly credentials: Credentials | undefined
  /** Scope of sessions that are named without one, when no key determines it. */
  readonly defaultScope: string | undefined
  readonly hostPolicy: HostPolicy
  readonly limits: RateLimiter
  /** Maximum sizes in bytes. */
  readonly maxBytes: { readonly body: number; readonly file: number; readonly forward: number }
  /** True when the operator lets keys of some tenants use endpoints that show the whole account of the upstream. */
  readonly sharesUpstreamAccount: boolean
  readonly metrics: Metrics
  readonly usageStats: UsageStats
  readonly usageSeries: UsageSeries
  readonly tracing: Tracing
  readonly log: Log
  readonly clock: Clock
  /** Health of the store, the upstreams and upkeep. */
  readonly readState: () => Promise<ServerHealth>
  readonly optimizerStatus: OptimizerStatusReader
  /** Reports internal faults. The trace never contains message text. */
  readonly onFault: (requestId: string, trace: string) => void
  /** The built inspector page; undefined if there is none. */
  readonly readInspector: () => Promise<Inspector | undefined>
  /** Changes of sessions, for event streams. */
  readonly sessionEvents: SessionEvents
}
