import type { Clock, Tokenizer } from '../domain/ports.ts'
import type { Files } from '../files/files.ts'
import type { Credentials } from './auth/credentials.ts'
import type { Limits } from './auth/rateLimiter.ts'
import type { Doors } from './http/hostPolicy.ts'
import type { McpRoom } from './mcpEndpoint.ts'
import type { Memories } from './memoryRegistry.ts'
import type { Log } from './observability/log.ts'
import type { Metrics } from './observability/metrics.ts'
import type { PriceTable } from './observability/prices.ts'
import type { State } from './observability/readiness.ts'
import type { Tracing } from './observability/tracing.ts'
import type { Tallies } from './observability/usageStats.ts'
import type { KeyedMutex } from './turn/sessionLocks.ts'
import type { Backend } from './upstreams/backend.ts'
import type { SessionModels } from './upstreams/sessionModels.ts'

/** Indexes a file that a message to a tenant contains. */
export type TakeFile = (
  scope: string,
  file: { readonly name: string; readonly type: string; readonly bytes: Uint8Array },
) => Promise<unknown>

/** Dependencies shared by all request handlers. */
export type House = {
  readonly memories: Memories
  readonly backend: Backend
  /** One turn of a session is ingested at a time, so that two requests with the same messages store them once. */
  readonly lanes: KeyedMutex
  /** Model for the upkeep of each session: the one its client uses. */
  readonly models: SessionModels | undefined
  readonly prices: PriceTable
  readonly takeFile: TakeFile | undefined
  /** Counts the tokens of client requests. */
  readonly tokenizer: Tokenizer
  readonly files: Files
  /** Undefined when MCP is off. */
  readonly mcp: McpRoom | undefined
  /** Undefined when the server requires no keys. */
  readonly credentials: Credentials | undefined
  /** Scope of sessions that are named without one, when no key determines it. */
  readonly defaultScope: string | undefined
  readonly doors: Doors
  readonly limits: Limits
  /** Maximum sizes in bytes. */
  readonly largest: { readonly body: number; readonly file: number }
  readonly metrics: Metrics
  readonly tallies: Tallies
  readonly tracing: Tracing
  readonly log: Log
  readonly clock: Clock
  /** Health of the store, the upstreams and upkeep. */
  readonly state: () => Promise<State>
  /** Reports internal faults. The trace never contains message text. */
  readonly onFault: (requestId: string, trace: string) => void
}
