/**
 * Messages of a context in the formats of the SDKs, assignable to their types. Parts and blocks that a caller appended
 * come back as they were, also of kinds that are not listed here.
 */

/** Message in the format of OpenAI's Chat Completions API, of which the content is text. */
export type ChatMessage =
  | { readonly role: 'system' | 'user'; readonly content: string; readonly name?: string }
  | {
      readonly role: 'assistant'
      readonly content: string | null
      readonly name?: string
      readonly tool_calls?: ChatToolCall[]
    }
  | { readonly role: 'tool'; readonly content: string; readonly tool_call_id: string }
/** Function call of an assistant message in OpenAI's format. */
export type ChatToolCall = {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

/** Message of a context for the `openai` package, assignable to its `ChatCompletionMessageParam`. */
export type OpenAIMessage =
  | ChatMessage
  | { readonly role: 'user'; readonly content: OpenAIContentPart[]; readonly name?: string }
  | {
      readonly role: 'assistant'
      readonly content: string | null
      readonly name?: string
      readonly tool_calls: OpenAIToolCall[]
    }
/** Content part of a user message for the `openai` package. */
export type OpenAIContentPart =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'image_url'
      readonly image_url: { readonly url: string; readonly detail?: 'auto' | 'low' | 'high' }
    }
  | { readonly type: 'file'; readonly file: { readonly file_id: string } }
/** Tool call of an assistant message for the `openai` package. */
export type OpenAIToolCall =
  | ChatToolCall
  | {
      readonly id: string
      readonly type: 'custom'
      readonly custom: { readonly name: string; readonly input: string }
    }

/** Message of a context for `@anthropic-ai/sdk`, assignable to its `MessageParam`. */
export type AnthropicMessage = { readonly role: 'user' | 'assistant'; readonly content: string | AnthropicBlock[] }
/** Content block of a message for `@anthropic-ai/sdk`. */
export type AnthropicBlock =
  | AnthropicTextBlock
  | AnthropicImageBlock
  | { readonly type: 'document'; readonly source: AnthropicUrlSource; readonly title?: string | null }
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: Record<string, unknown> }
  | {
      readonly type: 'tool_result'
      readonly tool_use_id: string
      readonly content?: string | (AnthropicTextBlock | AnthropicImageBlock)[]
      readonly is_error?: boolean
    }
type AnthropicTextBlock = { readonly type: 'text'; readonly text: string }
type AnthropicImageBlock = { readonly type: 'image'; readonly source: AnthropicUrlSource }
type AnthropicUrlSource = { readonly type: 'url'; readonly url: string }

/** Message of a context for the `ai` package, assignable to its `ModelMessage`. */
export type AiSdkMessage =
  | { readonly role: 'user'; readonly content: string | AiSdkUserPart[] }
  | { readonly role: 'assistant'; readonly content: string | AiSdkAssistantPart[] }
  | { readonly role: 'tool'; readonly content: AiSdkToolResult[] }
/** System message for the `instructions` of the `ai` package, which refuses system messages among the others. */
export type AiSdkInstruction = { readonly role: 'system'; readonly content: string }
/** Content part of a user message for the `ai` package. */
export type AiSdkUserPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly image: string; readonly mediaType?: string }
  | { readonly type: 'file'; readonly data: string; readonly mediaType: string; readonly filename?: string }
/** Content part of an assistant message for the `ai` package. */
export type AiSdkAssistantPart =
  | { readonly type: 'text' | 'reasoning'; readonly text: string }
  | {
      readonly type: 'tool-call'
      readonly toolCallId: string
      readonly toolName: string
      readonly input: unknown
      readonly providerExecuted?: boolean
    }
  | AiSdkToolResult
/** Result of a tool call for the `ai` package. */
export type AiSdkToolResult = {
  readonly type: 'tool-result'
  readonly toolCallId: string
  readonly toolName: string
  readonly output: { readonly type: 'text' | 'error-text'; readonly value: string }
}
