import type { SdkErrorCode } from '@modelcontextprotocol/client'
import { checkOption, MemoryError } from '../../domain/error.ts'
import type { ContextProviders } from '../../handoff/settings.ts'
import { clip } from '../../text/clip.ts'
import type { LogLevel } from '../tools/tool.ts'
import type { ProviderConnection } from './connection.ts'
import {
  type Occasion,
  type ProviderConfig,
  providerLimits,
  type QueryVariables,
  queryProvider,
  rejectOnAbort,
} from './query.ts'

export type { ProviderConfig } from './query.ts'

/** Answer of a provider. Its text is untrusted data. */
export type ProviderAnswer = { readonly from: string; readonly text: string }
type Degradation = { readonly step: string; readonly why: string }
export type ProviderResults = {
  readonly provided: readonly ProviderAnswer[]
  readonly degraded: readonly Degradation[]
}
export type ProvidersOptions = { readonly log: (level: LogLevel, message: string) => void }

const defaultTimeoutMs = 5_000

/**
 * Other MCP servers that are queried for context when a session is saved or restored. They are queried in parallel. One
 * that hangs, crashes or answers nonsense is reported in `degraded` and restarted the next time.
 *
 * @example
 * const providers = new Providers({ tickets: { command: 'tickets-mcp', tool: 'search', arguments: { query: '{text}' } } }, { log })
 * const { provided, degraded } = await providers.gather('restore', { workspace: 'default', session: 'session_1', text: 'Fix the login' })
 */
export class Providers implements ContextProviders {
  readonly #configs: readonly (readonly [name: string, config: ProviderConfig])[]
  readonly #log: ProvidersOptions['log']
  /** Connections to running processes. URLs are connected to for each query. */
  readonly #connections = new Map<string, Promise<ProviderConnection>>()
  readonly #closing = new Set<Promise<void>>()

  constructor(configs: Readonly<Record<string, ProviderConfig>>, { log }: ProvidersOptions) {
    this.#configs = Object.entries(configs)
    this.#log = log
    for (const [name, config] of this.#configs) {
      checkOption(
        `providers.${name}`,
        Object.keys(config),
        (config.tool === undefined) !== (config.resource === undefined),
        'given either a tool or a resource',
      )
      checkOption(`providers.${name}.timeout`, config.timeout, (config.timeout ?? 1) > 0, 'a time in milliseconds')
    }
  }

  /**
   * Queries the providers configured for the occasion; answers are in configuration order. Throws `aborted` on abort.
   */
  async gather(on: Occasion, variables: QueryVariables, signal?: AbortSignal): Promise<ProviderResults> {
    const queried = this.#configs.filter(([, config]) => (config.on ?? ['save', 'restore']).includes(on))
    const results = await Promise.all(queried.map(([name, config]) => this.#query(name, config, variables, signal)))
    if (signal?.aborted)
      throw new MemoryError('aborted', 'The request was aborted by the caller.', { cause: signal.reason })
    return {
      provided: results.flatMap((result) => ('text' in result && result.text !== '' ? [result] : [])),
      degraded: results.flatMap((result) => ('why' in result ? [result] : [])),
    }
  }

  /** Ends all started processes and waits for their exit. */
  async close(): Promise<void> {
    for (const [name, connection] of [...this.#connections]) this.#disconnect(name, connection, false)
    await Promise.all(this.#closing)
  }

  async #query(
    name: string,
    config: ProviderConfig,
    variables: QueryVariables,
    signal: AbortSignal | undefined,
  ): Promise<ProviderAnswer | Degradation> {
    const timeout = AbortSignal.timeout(config.timeout ?? defaultTimeoutMs)
    const stop = signal === undefined ? timeout : AbortSignal.any([signal, timeout])
    const isOneShot = 'url' in config
    // A process is shared: it keeps starting even if the caller that started it aborts.
    const connection = this.#connect(name, config, isOneShot ? stop : timeout)
    try {
      const text = await rejectOnAbort(
        stop,
        connection.then(({ client }) => queryProvider(client, config, variables, stop)),
      )
      if (isOneShot) this.#disconnect(name, connection, false)
      return { from: name, text }
    } catch (error) {
      const isAborted = signal?.aborted === true && !timeout.aborted
      if (isOneShot || !isAborted) this.#disconnect(name, connection, true)
      const why = failureReason(error, timeout.aborted, config)
      if (!isAborted) this.#log('warning', `Context provider ${name} is skipped: ${why}.`)
      return { step: `provider ${name}`, why }
    }
  }

  #connect(name: string, config: ProviderConfig, stop: AbortSignal): Promise<ProviderConnection> {
    const existing = this.#connections.get(name)
    if (existing !== undefined) return existing
    // Loaded with the first query: most servers have no providers and never need the SDK client.
    const connection = import('./connection.ts').then(({ connectProvider }) => connectProvider(config, stop))
    if ('command' in config) this.#connections.set(name, connection)
    // The caller may have aborted before the failure.
    connection.catch(() => this.#remove(name, connection))
    return connection
  }

  #remove(name: string, connection: Promise<ProviderConnection>): void {
    if (this.#connections.get(name) === connection) this.#connections.delete(name)
  }

  /** Closes a connection in the background; only `close` waits for it. */
  #disconnect(name: string, connection: Promise<ProviderConnection>, kill: boolean): void {
    this.#remove(name, connection)
    const closing = connection.then(({ close }) => close(kill)).catch(() => undefined)
    this.#closing.add(closing)
    void closing.then(() => this.#closing.delete(closing))
  }
}

const connectionClosed: `${SdkErrorCode.ConnectionClosed}` = 'CONNECTION_CLOSED'

/** Describes why a provider failed, for the operator. Configured values, which may be secrets, are masked. */
function failureReason(error: unknown, isTimeout: boolean, config: ProviderConfig): string {
  if (isTimeout) return 'timeout'
  const code = error instanceof MemoryError ? undefined : systemCodeOf(error)
  // The request may be written before or after the pipe of an ended program is closed.
  if (code === 'EPIPE' || (error instanceof Error && 'code' in error && error.code === connectionClosed))
    return `it exited, or sent more than ${providerLimits.maxMessageBytes} bytes, before it answered`
  if (code === 'ENOENT' || code === 'EACCES') return `it cannot be started (${code})`
  if (code !== undefined) return `it cannot be reached (${code})`
  return error instanceof Error ? clip(maskSecrets(error.message, config), 200, '…') : 'unknown error'
}

/** Collapses whitespace and control characters, so that a secret is also found across lines. */
const toSingleLine = (text: string): string => text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()

function maskSecrets(text: string, config: ProviderConfig): string {
  const secrets = secretsOf(config).filter((secret) => secret.length >= minSecretChars)
  return secrets
    .sort((one, other) => other.length - one.length)
    .reduce((masked, secret) => masked.replaceAll(secret, '…'), toSingleLine(text))
}

/** Shorter values are not secrets, and may be part of any word. */
const minSecretChars = 6

/** Lists all configured values that may be or contain a secret. */
function secretsOf(config: ProviderConfig): readonly string[] {
  if ('command' in config) return [...Object.values(config.env ?? {}), ...(config.args ?? [])].map(toSingleLine)
  const values = [config.url, ...Object.values(config.headers ?? {})]
  return values.flatMap((text) => [toSingleLine(text), ...text.split(/[\s/:@?&=#]+/)])
}

/** Finds a system or undici error code in the chain of causes. */
function systemCodeOf(error: unknown): string | undefined {
  for (let current = error; current instanceof Error; current = current.cause)
    if ('code' in current && typeof current.code === 'string' && /^E[A-Z]+$|^UND_/.test(current.code))
      return current.code
  return undefined
}
