import type { Tokens } from './entry.ts'
import type { AiSdkInstruction, AiSdkMessage, AnthropicMessage, ChatMessage, OpenAIMessage } from './sdkMessages.ts'

export type { AnthropicBlock, AnthropicMessage, ChatMessage, ChatToolCall } from './sdkMessages.ts'

/** Treatment of an entry: shown in full, shown shortened, covered by a summary that is shown, or left out. */
export type Verdict = 'whole' | 'shortened' | 'covered' | 'dropped'

/** Origin of an entry from outside the session. */
export type Origin = 'scope' | 'person' | 'files'

/** One line of the ledger: a run of entries with the same treatment. */
export type LedgerLine = {
  readonly band: string
  /** Ids of the first and last entry; null for the line that accounts for headings and provider overhead. */
  readonly entries: readonly [first: string, last: string] | null
  /** Number of the session's entries in the run. */
  readonly count: number
  readonly verdict: Verdict
  readonly tokens: Tokens
  readonly why: string
  /** Set only for entries from outside the session, whose ids may equal ids within it. */
  readonly from?: Origin
}

/** Step that failed, with the reason and the fallback that was used. */
export type Degradation = { readonly step: string; readonly why: string }

/** A step that fell back: a stable code for programs and a sentence for people. */
export type DegradationNotice = { readonly code: string; readonly message: string }

/** Account of one context: ids and numbers, never text. */
export type Ledger = {
  readonly profile: string
  readonly tokenizer: string
  /** Precision of the token counts. */
  readonly counted: 'exact' | 'bounded' | 'estimated'
  readonly budget: Tokens
  /** Sum of the lines; never less than the exact count of `messages` or of `text`. */
  readonly spent: Tokens
  /** Cost of the complete history. */
  readonly history: Tokens
  /** True when `history` has reached the profile's `upkeepAt` share. */
  readonly due: boolean
  /** Beginning of the prompt that the next turn repeats byte for byte, unless a compaction happens in between. */
  readonly cacheable: { readonly messages: number; readonly tokens: Tokens }
  readonly lines: readonly LedgerLine[]
  /** Ids of the scope knowledge that is shown; it counts as used once the reply is stored. */
  readonly knowledge: readonly string[]
  readonly degraded: readonly (Degradation & DegradationNotice)[]
}

/**
 * Context for any model: as a list of messages in OpenAI's format, and as one text; each of the two fits the budget on
 * its own. Contents are text: media are placeholders such as `[image]`.
 */
export type Context = { readonly messages: ChatMessage[]; readonly text: string; readonly ledger: Ledger }
/** Context for OpenAI's API, with the original form of messages that text cannot express, such as images by URL. */
export type OpenAIContext = Omit<Context, 'messages'> & { readonly messages: OpenAIMessage[] }
/** Context for Anthropic's API, which takes the system text beside the messages. */
export type AnthropicContext = Omit<Context, 'messages'> & {
  readonly system: string
  readonly messages: AnthropicMessage[]
}
/** Context for the AI SDK, which takes the system messages beside the others. */
export type AiSdkContext = Omit<Context, 'messages'> & {
  readonly instructions: AiSdkInstruction[]
  readonly messages: AiSdkMessage[]
}

/** Format of a context: for the packages `openai`, `@anthropic-ai/sdk` or `ai`. */
export type Provider = 'openai' | 'anthropic' | 'ai-sdk'
