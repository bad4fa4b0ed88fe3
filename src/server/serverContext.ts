import type { Clock, Tokenizer } from '../domain/ports.ts'
import type { Files } from '../files/files.ts'
import type { Credentials } from './auth/credentials.ts'
import type { Doors } from './http/hosts.ts'
import type { Limits } from './auth/limits.ts'
import type { McpRoom } from './mcp.ts'
import type { Memories } from './memoryRegistry.ts'
import type { Room } from './turn/turn.ts'
import type { Log } from './observability/log.ts'
import type { Metrics } from './observability/metrics.ts'
import type { State } from './observability/ready.ts'
import type { Tracing } from './observability/spans.ts'
import type { Tallies } from './observability/tally.ts'

/** Everything a server answers with. */
export type House = Omit<Room, 'report'> & {
  readonly memories: Memories
  /** Counts what clients send, whatever becomes of it. */
  readonly tokenizer: Tokenizer
  readonly files: Files
  /** Handing over; undefined where that is not offered. */
  readonly mcp: McpRoom | undefined
  readonly credentials: Credentials | undefined
  /** The scope of sessions that are named without one, where no key tells it. */
  readonly defaultScope: string | undefined
  readonly doors: Doors
  readonly limits: Limits
  readonly largest: { readonly body: number; readonly file: number }
  readonly metrics: Metrics
  readonly tallies: Tallies
  readonly tracing: Tracing
  readonly log: Log
  readonly clock: Clock
  /** How everything is doing. */
  readonly state: () => Promise<State>
  /** Hears of faults that no client is told of; never holds what was said. */
  readonly onFault: (requestId: string, trace: string) => void
}
