import { hash } from 'node:crypto'
import { type DestinationStream, pino } from 'pino'
import type { Millis } from '../../domain/entry.ts'
import type { Clock } from '../../domain/ports.ts'
import { findSecrets, normalizeSecrets } from '../../text/secrets.ts'
import type { TurnRecord } from './usageStats.ts'

/** Minimum level of written lines; `silent` writes none. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'
export const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent']

/**
 * A finished request. `route` is the template of its path, such as `/v1/{key}/chat/completions`, never the path itself.
 */
export type RequestLogEntry = {
  readonly id: string
  readonly method: string
  readonly route: string
  readonly status: number
  readonly durationMs: Millis
  readonly turn?: TurnRecord | undefined
}

/** The server's log: one JSON line per request and fault, with ids and numbers and no message text. */
export interface Log {
  request(entry: RequestLogEntry): void
  /** Logs an internal error that clients do not see; `trace` comes from `describeFault`. */
  fault(id: string, trace: string): void
  /** Logs an event of the server itself, such as its start. */
  event(event: string, details?: Readonly<Record<string, string | number | boolean>>): void
}

export type LogOptions = {
  /** Default `info`. */
  readonly level?: LogLevel | undefined
  /** Default: standard output. */
  readonly destination?: DestinationStream | undefined
  readonly clock?: Clock | undefined
  readonly pseudonym?: Pseudonymize | undefined
}

/**
 * Opens the log.
 *
 * @example
 * const log = openLog({ level: 'info' })
 * log.event('listening', { port: 4848 })
 */
export function openLog({
  level = 'info',
  destination,
  clock = Date.now,
  pseudonym = createPseudonymizer(),
}: LogOptions = {}): Log {
  const options = {
    level,
    // Omits the process id and the host name.
    base: null,
    timestamp: () => `,"time":"${new Date(clock()).toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    messageKey: 'event',
  }
  const logger = destination === undefined ? pino(options) : pino(options, destination)
  return {
    request: (entry) => logger[levelOf(entry)](formatRequest(entry, pseudonym), 'request'),
    fault: (id, trace) => logger.error({ id, trace: normalizeSecrets(trace) }, 'fault'),
    event: (event, details = {}) =>
      logger.info(
        Object.fromEntries(
          Object.entries(details).map(([name, value]) => [
            name,
            typeof value === 'string' ? normalizeSecrets(value) : value,
          ]),
        ),
        event,
      ),
  }
}

/** Writes nothing. */
export const silentLog: Log = { request: () => undefined, fault: () => undefined, event: () => undefined }

function levelOf({ status, turn }: RequestLogEntry): 'info' | 'warn' | 'error' {
  if (status >= 500) return 'error'
  return status >= 400 || (turn?.degraded.length ?? 0) > 0 ? 'warn' : 'info'
}

/** Lists every field explicitly, so that a new field of a turn is never logged by accident. */
function formatRequest(
  { id, method, route, status, durationMs, turn }: RequestLogEntry,
  pseudonym: Pseudonymize,
): Readonly<Record<string, unknown>> {
  const request = { id, method, route, status, millis: durationMs }
  if (turn === undefined) return request
  const { key, protocol, model, upstream, profile, isStreaming, tokens, retries, isAborted, isStored, degraded } = turn
  return {
    ...request,
    ...(key === undefined ? {} : { session: pseudonym(key) }),
    protocol,
    model: modelName(model),
    upstream,
    profile,
    streamed: isStreaming,
    memoryMillis: turn.durationMs.memory,
    ...(turn.durationMs.firstByte === undefined ? {} : { firstMillis: turn.durationMs.firstByte }),
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
    aborted: isAborted,
    stored: isStored,
    degraded: degraded.map(({ code, message }) => ({ code, message })),
  }
}

/**
 * The name of a model, or `other` for text that does not look like one: clients could send message text or keys there.
 *
 * @example
 * modelName('openai/gpt-5.4-mini') // 'openai/gpt-5.4-mini'
 */
export const modelName = (model: string): string =>
  /^[\w.:@/+-]{1,128}$/.test(model) && findSecrets(model).length === 0 ? model : 'other'

/** The name of a scope, or `other` for a secret: scopes are traced before such a name is refused. */
export const scopeName = (scope: string): string => (findSecrets(scope).length === 0 ? scope : 'other')

/** Replaces the key of a session in logs and traces. */
export type Pseudonymize = (key: string) => string

/**
 * Creates a keyed hash for session keys: the lines of one session can be correlated, but not attributed. A plain hash
 * would not do, because ids such as phone numbers are few enough to try all of them. Pseudonyms change with each start
 * unless `secret` is given.
 */
export function createPseudonymizer(secret: string = crypto.randomUUID()): Pseudonymize {
  const prefix = hash('sha256', secret, 'hex')
  // An HMAC takes many times as long; length extension is no threat to a truncated hash.
  return (key) => hash('sha256', prefix + key, 'base64url').slice(0, 16)
}
