import { type SourcedChatMessage, storedSource } from '../../context/entryText.ts'
import type { Payload } from '../../domain/chat.ts'
import { isObject } from '../../domain/error.ts'
import type { ChatMessage } from '../../domain/ledger.ts'
import { unpackPayload } from '../../domain/payload.ts'
import type { ClientMessage, ProtocolName } from './protocol.ts'

/** Part of a history: the original elements of the protocol's list, or a message to be converted. */
export type HistoryPart = { readonly items: readonly unknown[] } | { readonly message: ChatMessage }

/**
 * Restores the original form of the messages that a context shows whole and that came by this protocol. A payload that
 * stands for several messages is used only if all of them follow each other.
 */
export function restorePayloads(history: readonly SourcedChatMessage[], protocol: ProtocolName): HistoryPart[] {
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
  protocol: ProtocolName,
): { readonly items: readonly unknown[]; readonly count: number } | undefined {
  const source = history[index]?.[storedSource]
  const payload = source?.packedPayload && unpackPayload(source.packedPayload, source.content)
  if (!source || !payload || payload.protocol !== protocol || payload.items.length === 0) return undefined
  const { items, count = 1 } = payload
  for (let offset = 1; offset < count; offset++)
    if (history[index + offset]?.[storedSource]?.sequence !== source.sequence + offset) return undefined
  return { items, count }
}

/**
 * Creates the payloads of consecutive messages that make up the same elements of the client's list: the first message
 * gets all of them, and the others an empty one that marks them as part of it.
 */
export const createPayload = (
  protocol: ProtocolName,
  items: readonly unknown[],
  group: readonly ClientMessage[],
  message: ClientMessage,
): Payload => (message === group[0] ? { protocol, items, count: group.length } : { protocol, items: [], count: 1 })

/** Messages that come from the same element of the client's list as the one at `position`. */
export function messagesOfElement(messages: readonly ClientMessage[], position: number): readonly ClientMessage[] {
  const index = messages[position]?.index
  let first = position
  while (first > 0 && messages[first - 1]?.index === index) first--
  let end = position + 1
  while (messages[end]?.index === index && end < messages.length) end++
  return messages.slice(first, end)
}

/** True if a value holds the bytes of media or a document: those are stored as a placeholder only. */
export function hasInlineMedia(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasInlineMedia)
  if (!isObject(value)) return typeof value === 'string' && /^data:[^,]{0,200},/i.test(value)
  const { file_data: file, data, type, format } = value
  if (typeof file === 'string') return true
  // Audio names its format, an image or a document of Anthropic its encoding.
  if (typeof data === 'string' && (typeof format === 'string' || type === 'base64' || type === 'text')) return true
  return Object.values(value).some(hasInlineMedia)
}

/** True for a message that is only a role and a text, which needs no payload. */
export const isPlainText = (value: unknown): boolean =>
  isObject(value) && typeof value.content === 'string' && Object.keys(value).length === 2 && 'role' in value
