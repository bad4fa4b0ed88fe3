import { CallIds, continuationNotice, toAnthropic, toAnthropicTurns } from '../context/anthropic.ts'
import { copyMessage, type SourcedChatMessage, storedSource } from '../context/entryText.ts'
import { isObject } from '../domain/error.ts'
import { unpackPayload } from '../domain/payload.ts'
import type { AnthropicMessage, ChatMessage, OpenAIMessage } from '../domain/sdkMessages.ts'
import { isToolResult, toBlocks } from './anthropic.ts'

/** Part of a history: the original elements of the protocol's list, or a message to be converted. */
export type HistoryPart = { readonly items: readonly unknown[] } | { readonly message: ChatMessage }

/**
 * Restores the original form of the messages that a context shows whole and that came by this protocol. A payload that
 * stands for several messages is used only if all of them follow each other.
 */
export function restorePayloads(history: readonly SourcedChatMessage[], protocol: string): HistoryPart[] {
  const parts: HistoryPart[] = []
  for (let index = 0; index < history.length; ) {
    const restored = restoreAt(history, index, protocol)
    if (restored === undefined) parts.push({ message: history[index++] as ChatMessage })
    else {
      parts.push({ items: restored.items })
      index += restored.count
    }
  }
  return parts
}

function restoreAt(
  history: readonly SourcedChatMessage[],
  index: number,
  protocol: string,
): { readonly items: readonly unknown[]; readonly count: number } | undefined {
  const source = history[index]?.[storedSource]
  const payload = source?.packedPayload && unpackPayload(source.packedPayload, source.content)
  if (!source || !payload || payload.protocol !== protocol || payload.items.length === 0) return undefined
  const { items, count = 1 } = payload
  for (let offset = 1; offset < count; offset++)
    if (history[index + offset]?.[storedSource]?.sequence !== source.sequence + offset) return undefined
  return { items, count }
}

/** True if a value holds the bytes of media or a document: those are stored as a placeholder only. */
export function hasInlineMedia(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasInlineMedia)
  if (!isObject(value)) return typeof value === 'string' && /^data:[^,]{0,200},/i.test(value)
  const { file_data: file, data, type, format } = value
  if (typeof file === 'string') return true
  // Audio names its format, an image or a document of Anthropic its encoding.
  if (typeof data === 'string' && (typeof format === 'string' || type === 'base64' || type === 'text')) return true
  // Takes half as long as `Object.values` for an object of many fields.
  for (const name in value) if (hasInlineMedia(value[name])) return true
  return false
}

/** Message of Anthropic's format with any kinds of blocks. */
type TurnMessage = { readonly role: string; readonly content: unknown }

/** Converts a history, with the original form of messages that have one. Leading system messages become `system`. */
export function toAnthropicHistory(history: readonly SourcedChatMessage[]): {
  readonly system: string
  readonly messages: readonly TurnMessage[]
} {
  const parts = restorePayloads(history, 'messages')
  const firstOriginal = parts.findIndex((part) => 'items' in part)
  const { system, messages: start } = toAnthropic(
    parts.slice(0, firstOriginal < 0 ? parts.length : firstOriginal).flatMap(chatMessageOf),
  )
  if (firstOriginal < 0) return { system, messages: start }
  const messages: TurnMessage[] = [...start]
  const ids = new CallIds()
  for (const part of parts.slice(firstOriginal)) {
    const turns = 'items' in part ? (part.items as readonly TurnMessage[]) : toAnthropicTurns([part.message], ids)
    for (const turn of turns) messages.push(turn)
  }
  if (messages[0]?.role === 'assistant') messages.unshift({ role: 'user', content: continuationNotice })
  return { system, messages: separateResults(messages) }
}

const chatMessageOf = (part: HistoryPart): readonly ChatMessage[] => ('message' in part ? [part.message] : [])

/** Joins adjacent user messages of which the second holds tool results: the API wants a reply's results together. */
function separateResults(messages: readonly TurnMessage[]): readonly TurnMessage[] {
  const joined: TurnMessage[] = []
  for (const message of messages) {
    const last = joined.at(-1)
    const holdsResults = message.role === 'user' && toBlocks(message.content).some(isToolResult)
    if (last?.role === 'user' && holdsResults) joined[joined.length - 1] = joinMessages(last, message)
    else joined.push(message)
  }
  return joined
}

/** Joins two messages of the same role, with tool results first, as the API requires. */
export function joinMessages(first: TurnMessage, second: TurnMessage): TurnMessage {
  const blocks = [...toBlocks(first.content), ...toBlocks(second.content)]
  return { ...second, content: [...blocks.filter(isToolResult), ...blocks.filter((block) => !isToolResult(block))] }
}

/** Converts a history for OpenAI's API, with the original form of messages that have one. */
export const toOpenAIMessages = (history: readonly SourcedChatMessage[]): OpenAIMessage[] =>
  restorePayloads(history, 'chat').flatMap((part) =>
    'items' in part ? (part.items as readonly OpenAIMessage[]) : [copyMessage(part.message)],
  )

/** Converts a history for Anthropic's API, with the original form of messages that have one; roles alternate. */
export function toAnthropicContext(history: readonly SourcedChatMessage[]): {
  readonly system: string
  readonly messages: AnthropicMessage[]
} {
  const { system, messages } = toAnthropicHistory(history)
  const turns: TurnMessage[] = []
  for (const message of messages) {
    const last = turns.at(-1)
    if (last?.role === message.role) turns[turns.length - 1] = joinMessages(last, message)
    else turns.push(message)
  }
  return { system, messages: turns as AnthropicMessage[] }
}
