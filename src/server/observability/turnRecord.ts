import { hash } from 'node:crypto'
import type { Millis, Tokens } from '../../domain/entry.ts'

/** Protocol of a request: OpenAI's chat completions or responses, or Anthropic's messages. */
export type ProtocolName = 'chat' | 'responses' | 'messages'

/**
 * The ids and numbers of one model request. Metrics, logs and traces are built from this alone, never from message
 * text.
 */
export type TurnRecord = {
  /** The session; undefined when the request was relayed without memory. */
  readonly key?: string
  readonly scope?: string
  readonly protocol: ProtocolName
  /** As the client sent it: any text. See `modelName`. */
  readonly model: string
  readonly upstream: string
  readonly profile: string
  readonly status: number
  readonly isStreaming: boolean
  /** Durations: the whole request, the part spent in memory, and the time to the first byte of the reply. */
  readonly durationMs: { readonly total: Millis; readonly memory: Millis; readonly firstByte?: Millis }
  /** Our own counts (prompt sent, full history, their difference, stable prefix), then those the upstream reports. */
  readonly tokens: {
    readonly shown: Tokens
    readonly history: Tokens
    readonly saved: Tokens
    readonly cacheable: Tokens
    readonly prompt?: Tokens
    readonly completion?: Tokens
    readonly cached?: Tokens
  }
  readonly retries: number
  readonly isAborted: boolean
  readonly isStored: boolean
  /** Number of messages stored. */
  readonly appendedMessages: number
  /** Upstreams that failed before the one that replied. */
  readonly failedUpstreams: readonly string[]
  readonly degraded: readonly string[]
}

/** True when the client received a reply. */
export const isAnswered = ({ status, isAborted }: TurnRecord): boolean => status < 400 && !isAborted

/**
 * The name of a model, or `other` for text that does not look like one: a client could send message text there.
 *
 * @example
 * modelName('openai/gpt-5.4-mini') // 'openai/gpt-5.4-mini'
 */
export const modelName = (model: string): string => (/^[\w.:@/+-]{1,128}$/.test(model) ? model : 'other')

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
