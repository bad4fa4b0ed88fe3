import type { Millis, Tokens } from '../../domain/entry.ts'

/** How a client speaks: OpenAI's chat completions or responses, or Anthropic's messages. */
export type Protocol = 'chat' | 'responses' | 'messages'

/** What is known of one answered request, in ids and numbers: metrics, logs and spans are made of this and of nothing else. */
export type Turn = {
  /** The session it belongs to; none when the request passed through without memory. */
  readonly key?: string
  readonly scope?: string
  readonly protocol: Protocol
  /** As the client wrote it, which may be anything: see `modelName`. */
  readonly model: string
  readonly upstream: string
  readonly profile: string
  readonly status: number
  readonly streamed: boolean
  /** `memory` is what memory itself took of the total, `first` when the first byte went out. */
  readonly millis: { readonly total: Millis; readonly memory: Millis; readonly first?: Millis }
  /** What the model was shown, what the whole history would have cost and the difference; then what the upstream reports. */
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
  readonly aborted: boolean
  readonly stored: boolean
  /** How many messages were stored. */
  readonly appended: number
  /** Model servers that were asked before the one that answered. */
  readonly passedOver: readonly string[]
  readonly degraded: readonly string[]
}

/** Whether a reply came; one that did not has cost nothing and saved nothing. */
export const isAnswered = ({ status, aborted }: Turn): boolean => status < 400 && !aborted

/**
 * The name of a model if it looks like one, otherwise `other`: a client may write anything there, also what was said.
 *
 * @example
 * modelName('openai/gpt-5.4-mini') // 'openai/gpt-5.4-mini'
 */
export const modelName = (model: string): string => (/^[\w.:@/+-]{1,128}$/.test(model) ? model : 'other')
