import type { Role, Tokens } from './entry.ts'

/** What became of an entry: shown whole, shown shorter, stood for by a summary that is shown, or left out. */
export type Verdict = 'whole' | 'shortened' | 'covered' | 'dropped'

/** Where an entry comes from that is not the session's own. */
export type Origin = 'scope' | 'person' | 'files'

/**
 * One line of the receipt. `entries` are the ids of the first and last entry of a run, `count` how many of the
 * session's entries it holds; a line without entries pays for headings and what the provider adds.
 */
export type Line = {
  readonly band: string
  readonly entries: readonly [first: string, last: string] | null
  readonly count: number
  readonly verdict: Verdict
  readonly tokens: Tokens
  readonly why: string
  /** Only of entries that are not the session's own: the ids of others may be the same as its own. */
  readonly from?: Origin
}

/** Something that did not go as it should and what was done instead. */
export type Degradation = { readonly step: string; readonly why: string }

/** The receipt of a context: ids and numbers, never text. */
export type Ledger = {
  readonly profile: string
  readonly tokenizer: string
  /** Whether the tokens were counted, bounded from above or estimated. */
  readonly counted: 'exact' | 'bounded' | 'estimated'
  readonly budget: Tokens
  /** The sum of the lines; never less than the exact count of `messages` or of `text`. */
  readonly spent: Tokens
  /** What the whole history would cost, and whether that reaches the profile's trigger. */
  readonly history: Tokens
  readonly due: boolean
  /** The part at the beginning that the next turn repeats byte for byte, unless a compaction lies between. */
  readonly cacheable: { readonly messages: number; readonly tokens: Tokens }
  readonly lines: readonly Line[]
  /** Ids of the scope's knowledge that is shown: it counts as used once the reply is stored. */
  readonly knowledge: readonly string[]
  readonly degraded: readonly Degradation[]
}

/** A message as OpenAI's chat API takes it. */
export type ChatMessage =
  | { readonly role: 'system' | 'user'; readonly content: string; readonly name?: string }
  | {
      readonly role: 'assistant'
      readonly content: string | null
      readonly name?: string
      readonly tool_calls?: readonly ChatToolCall[]
    }
  | { readonly role: 'tool'; readonly content: string; readonly tool_call_id: string }
export type ChatToolCall = {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

/** A message as Anthropic's messages API takes it. */
export type AnthropicMessage = {
  readonly role: 'user' | 'assistant'
  readonly content: string | readonly AnthropicBlock[]
}
export type AnthropicBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: Record<string, unknown> }
  | { readonly type: 'tool_result'; readonly tool_use_id: string; readonly content: string }

/** What a model is shown: as a list of messages, and as one text that fits the budget by itself. */
export type Context = { readonly messages: readonly ChatMessage[]; readonly text: string; readonly ledger: Ledger }
/** The same for Anthropic's API, where the system text stands beside the messages. */
export type AnthropicContext = {
  readonly system: string
  readonly messages: readonly AnthropicMessage[]
  readonly text: string
  readonly ledger: Ledger
}

export type Provider = 'openai' | 'anthropic'
export type { Role }
