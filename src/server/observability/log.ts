import { type DestinationStream, pino } from 'pino'
import type { Millis } from '../../domain/entry.ts'
import type { Clock } from '../../domain/ports.ts'
import { type Pseudonym, pseudonyms } from './pseudonym.ts'
import { modelName, type Turn } from './turn.ts'

/** From which weight on lines are written; `silent` writes none. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'
export const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent']

/** A request that is over. `route` is the template of its address, such as `/v1/{key}/chat/completions`, never the address itself. */
export type Handled = {
  readonly id: string
  readonly method: string
  readonly route: string
  readonly status: number
  readonly millis: Millis
  readonly turn?: Turn | undefined
}

/** What the operator reads: one line of JSON for each request and each fault, with ids and numbers and nothing that was said. */
export interface Log {
  request(handled: Handled): void
  /** Something that no client is told of; `trace` tells where it happened, as `traceOf` gives it. */
  fault(id: string, trace: string): void
  /** Something about the server itself, such as that it listens or shuts down. */
  note(event: string, details?: Readonly<Record<string, string | number | boolean>>): void
}

export type LogOptions = {
  readonly level?: LogLevel | undefined
  /** Where lines go; standard output when left out. */
  readonly destination?: DestinationStream | undefined
  readonly clock?: Clock | undefined
  readonly pseudonym?: Pseudonym | undefined
}

/**
 * Opens the log.
 *
 * @example
 * const log = openLog({ level: 'info' })
 * log.note('listening', { port: 4848 })
 */
export function openLog({
  level = 'info',
  destination,
  clock = Date.now,
  pseudonym = pseudonyms(),
}: LogOptions = {}): Log {
  const options = {
    level,
    // Neither the process nor the host is anybody's business.
    base: null,
    timestamp: () => `,"time":"${new Date(clock()).toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    messageKey: 'event',
  }
  const writer = destination === undefined ? pino(options) : pino(options, destination)
  return {
    request: (handled) => writer[weightOf(handled)](lineOf(handled, pseudonym), 'request'),
    fault: (id, trace) => writer.error({ id, trace }, 'fault'),
    note: (event, details = {}) => writer.info(details, event),
  }
}

/** Writes nothing. */
export const quiet: Log = { request: () => undefined, fault: () => undefined, note: () => undefined }

/** What went wrong with the server weighs most, then what went wrong with a request. */
function weightOf({ status, turn }: Handled): 'info' | 'warn' | 'error' {
  if (status >= 500) return 'error'
  return status >= 400 || (turn?.degraded.length ?? 0) > 0 ? 'warn' : 'info'
}

/** Field by field, so that nothing comes along that nobody thought of. */
function lineOf(
  { id, method, route, status, millis, turn }: Handled,
  pseudonym: Pseudonym,
): Readonly<Record<string, unknown>> {
  const request = { id, method, route, status, millis }
  if (turn === undefined) return request
  const { key, protocol, model, upstream, profile, streamed, tokens, retries, aborted, stored, degraded } = turn
  return {
    ...request,
    ...(key === undefined ? {} : { session: pseudonym(key) }),
    protocol,
    model: modelName(model),
    upstream,
    profile,
    streamed,
    memoryMillis: turn.millis.memory,
    ...(turn.millis.first === undefined ? {} : { firstMillis: turn.millis.first }),
    tokens: {
      shown: tokens.shown,
      history: tokens.history,
      saved: tokens.saved,
      cacheable: tokens.cacheable,
      prompt: tokens.prompt,
      completion: tokens.completion,
      cached: tokens.cached,
    },
    retries,
    aborted,
    stored,
    degraded,
  }
}
