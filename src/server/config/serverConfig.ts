import { readFileSync } from 'node:fs'
import type { Millis } from '../../domain/entry.ts'
import { createUnknownStoreError, MemoryError } from '../../domain/error.ts'
import type { Embedder } from '../../domain/ports.ts'
import type { RetryPolicy } from '../../domain/retry.ts'
import type { OnSessionEnd } from '../../lifecycle/endEvent.ts'
import type { Timeouts } from '../../providers/deadline.ts'
import { createEmbedder } from '../../providers/namedEmbedder.ts'
import { buildEndpointUrl } from '../../providers/url.ts'
import { parseSqliteUrl } from '../../stores/open.ts'
import { isRedisUrl, parseRedisUrl, redisUrlForms } from '../../stores/redis/url.ts'
import { parseJson } from '../../text/json.ts'
import type { RateLimits } from '../auth/rateLimiter.ts'
import { parseHostPolicy } from '../http/hostPolicy.ts'
import type { ProfileConfig } from '../memoryRegistry.ts'
import type { LogLevel } from '../observability/log.ts'
import { type PriceTable, parsePrices } from '../observability/prices.ts'
import type { HistoryMode } from '../turn/sessionActivity.ts'
import type { ContextWindows } from '../upstreams/contextWindows.ts'
import type { ForwardSetting } from '../upstreams/pool.ts'
import type { UpstreamOptions } from '../upstreams/upstream.ts'
import { createWebhook } from '../webhooks/webhook.ts'
import { type McpConfig, resolveMcpConfig } from './mcpConfig.ts'
import { type Config, invalidField } from './schema.ts'
import { type ConfigSource, needsDurableStore, type Settings } from './settings.ts'

/** The validated configuration of a server, with all secrets resolved. */
export type ServerConfig = {
  readonly listen: {
    readonly host: string
    readonly port: number
    readonly allowedHosts: readonly string[]
    readonly allowedOrigins: readonly string[]
  }
  readonly store: string
  readonly storeKey: string | undefined
  /** URL of the Redis store for sessions of RAM-only profiles; undefined when they are in the RAM of this process. */
  readonly sessions: string | undefined
  /** Maximum size of all sessions in RAM, in bytes. */
  readonly ramBytes: number | undefined
  readonly profiles: ProfileConfig
  readonly upstreams: readonly UpstreamOptions[]
  /** Names of the upstreams for unknown endpoints, or false for none; undefined when nothing is configured. */
  readonly forward: ForwardSetting | undefined
  /** Kind of all clients; undefined to tell it per request. */
  readonly history: HistoryMode | undefined
  readonly contextWindows: ContextWindows
  /** `builtin`, `off`, or the name of a model; undefined uses the model of each client. */
  readonly upkeep: string | undefined
  readonly embedder: Embedder | undefined
  readonly defaultScope: string | undefined
  /** Path of the key file; `isExpected` when it must exist. */
  readonly keys: { readonly file: string; readonly isExpected: boolean }
  readonly rateLimits: RateLimits
  /** Maximum sizes in bytes. */
  readonly maxBytes: { readonly body: number; readonly file: number; readonly forward: number }
  readonly timeouts: Timeouts
  readonly retries: RetryPolicy
  /** Called when a session ends. */
  readonly onSessionEnd: OnSessionEnd | undefined
  readonly prices: PriceTable | undefined
  readonly logLevel: LogLevel
  /** Interval of the sweep for expired sessions. */
  readonly sweepInterval: Millis
  /** Time before a stopping server refuses connections, and time for its running requests to finish. */
  readonly shutdown: { readonly delay: Millis; readonly grace: Millis }
  /** Configuration of `/mcp`. */
  readonly mcp: McpConfig
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Resolves settings: reads secrets from the environment and checks combinations of fields.
 *
 * @throws {MemoryError} `bad-option` that names the invalid field.
 */
export function resolveServerConfig({ config, values, profiles }: Settings, environment: Environment): ServerConfig {
  const { keys, limits, retries, timeouts } = config
  const { host, port, allowedHosts: names, allowedOrigins: origins } = config.listen
  checkStore(config.store, profiles, values)
  parseHostPolicy({ listenAddress: host, hosts: names, origins })
  const file = parseSqliteUrl(config.store)
  const upstreams = resolveUpstreams(config.upstreams, environment)
  return {
    listen: { host, port, allowedHosts: names, allowedOrigins: origins },
    store: file === undefined ? config.store : `sqlite:${file}`,
    storeKey: config.storeKey,
    sessions: resolveSessions(config.sessions, profiles),
    ramBytes: limits.ramBytes,
    profiles,
    upstreams,
    forward: resolveForward(config.forward, upstreams),
    history: config.history === 'auto' ? undefined : config.history,
    contextWindows: config.contextWindows,
    upkeep: config.upkeep,
    embedder: config.embedder === undefined ? undefined : createEmbedder(config.embedder, environment),
    defaultScope: config.defaultScope,
    // A configured file must exist: a typo in its path must not disable authentication.
    keys: { file: keys.file, isExpected: keys.required ?? values.get('keys.file')?.from !== 'default' },
    rateLimits: {
      requestsPerMinute: limits.requestsPerMinute,
      concurrency: limits.concurrency,
      totalConcurrency: limits.totalConcurrency,
    },
    maxBytes: { body: limits.bodyBytes, file: limits.fileBytes, forward: limits.forwardBytes },
    timeouts: { firstByte: timeouts.firstByte, idle: timeouts.idle, total: timeouts.total },
    retries: { tries: retries.attempts, baseDelay: retries.baseDelay, maxDelay: retries.maxDelay },
    onSessionEnd: resolveWebhook(config.webhook, environment),
    prices: resolvePrices(config.prices),
    logLevel: config.log.level,
    sweepInterval: config.sweepInterval,
    shutdown: { delay: config.shutdown.delay ?? 0, grace: config.shutdown.grace },
    mcp: resolveMcpConfig(config),
  }
}

/** Refuses a file for a server that stores everything in RAM: it would stay empty. */
function checkStore(store: string, profiles: ProfileConfig, values: ConfigSource): void {
  if (store === 'ram:' || needsDurableStore(profiles, values)) return
  const { name } = profiles.session ?? profiles.scope
  throw new MemoryError(
    'bad-option',
    `Profile ${name} is RAM-only and refuses a durable store. Omit store, or choose a durable profile such as thread.`,
    { param: 'store' },
  )
}

/** Checks the URL of the store of sessions. Refuses one that no profile would use. */
function resolveSessions(sessions: boolean | string, profiles: ProfileConfig): string | undefined {
  if (typeof sessions === 'boolean' || sessions === 'ram:') return undefined
  if (!isRedisUrl(sessions)) throw createUnknownStoreError(sessions, `ram:, ${redisUrlForms}`, 'sessions')
  parseRedisUrl(sessions)
  const { scope, session = scope, templates } = profiles
  const used = [session, ...Object.values(templates).map(({ profile }) => profile)]
  if (used.some(({ durability }) => durability === 'ram')) return sessions
  throw new MemoryError(
    'bad-option',
    `Profile ${session.name} keeps its sessions in the store and not in Redis. Omit sessions, or choose a RAM-only profile such as support.`,
    { param: 'sessions' },
  )
}

function resolveUpstreams(
  configured: NonNullable<Config['upstreams']>,
  environment: Environment,
): readonly UpstreamOptions[] {
  const upstreams = configured.map((options, index) => {
    const { base, protocol = 'openai', keyEnv, models, rename } = options
    const [name, field] = [options.name ?? hostOf(base), `upstreams[${index}]`]
    checkBaseUrl(base, name === flagUpstreamName ? flagUpstreamName : `${field}.base`)
    const key = resolveSecret(field, 'key', { value: options.key, variable: keyEnv }, environment)
    return { name, base, protocol, key, models, rename }
  })
  const duplicate = upstreams.findIndex(
    ({ name }, index) => upstreams.findIndex((other) => other.name === name) !== index,
  )
  if (duplicate >= 0)
    throw invalidField(
      `upstreams[${duplicate}].name`,
      upstreams[duplicate]?.name,
      'different from the names of the others',
    )
  return upstreams
}

function resolveForward(forward: Config['forward'], upstreams: readonly UpstreamOptions[]): ForwardSetting | undefined {
  if (forward === undefined || forward === false) return forward
  const names = typeof forward === 'string' ? [forward] : forward
  const known = upstreams.map(({ name }) => name)
  const unknown = names.find((name) => !known.includes(name))
  if (unknown === undefined) return names
  const rule = known.length === 0 ? 'omitted, because there are no upstreams' : `one of ${known.join(', ')}, or false`
  throw invalidField('forward', unknown, rule)
}

/** Name of the upstream that a flag or variable sets. Errors name it instead of a field of the file. */
const flagUpstreamName = 'upstream'

function checkBaseUrl(base: string, param: string): void {
  try {
    buildEndpointUrl(base, '')
  } catch (cause) {
    const rule = 'an http:// or https:// address without a user name and password, such as http://localhost:11434/v1'
    throw new MemoryError('bad-option', `${param} must be ${rule}.`, { param, cause })
  }
}

const hostOf = (base: string): string => (URL.canParse(base) ? new URL(base).host : base)

function resolveWebhook(webhook: Config['webhook'], environment: Environment): OnSessionEnd | undefined {
  if (webhook === undefined) return undefined
  const { url, secret: value, secretEnv: variable } = webhook
  const secret = resolveSecret('webhook', 'secret', { value, variable }, environment)
  if (secret !== undefined) return createWebhook({ url, secret })
  throw invalidField('webhook.secretEnv', undefined, 'the name of the variable that holds the signing secret')
}

type SecretSource = { readonly value: string | undefined; readonly variable: string | undefined }

/** Returns a configured secret, or the value of the variable that holds it, which must be set. */
function resolveSecret(
  parent: string,
  field: 'key' | 'secret',
  { value, variable }: SecretSource,
  environment: Environment,
): string | undefined {
  if (variable === undefined) return value
  if (value !== undefined) throw invalidField(`${parent}.${field}`, value, `omitted when ${field}Env is set`)
  const secret = environment[variable]?.trim()
  if (secret !== undefined && secret !== '') return secret
  throw invalidField(`${parent}.${field}Env`, variable, 'the name of a variable that is set')
}

function resolvePrices(prices: Config['prices']): PriceTable | undefined {
  if (prices === undefined) return undefined
  return parsePrices(typeof prices === 'string' ? parseJson(readPriceFile(prices)) : prices)
}

function readPriceFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const message = `prices is ${JSON.stringify(file)}, which cannot be opened. Check the path and permissions.`
    throw new MemoryError('bad-option', message, { param: 'prices', cause })
  }
}
