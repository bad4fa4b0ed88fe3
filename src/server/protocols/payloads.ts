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
 * Creates the payload of a message that comes from one element of the client's list. The first message of the element
 * gets the element, and the others an empty payload that marks them as part of it. Undefined if it holds media.
 */
export function createPayload(
  protocol: ProtocolName,
  element: unknown,
  messages: readonly ClientMessage[],
  position: number,
): Payload | undefined {
  const index = messages[position]?.index
  const isFirst = messages[position - 1]?.index !== index
  // An element may be thousands of tool results, so only its first message looks at all of it.
  if (!isFirst) return hasMediaByElement.get(element as object) === true ? undefined : { protocol, items: [] }
  const hasMedia = hasInlineMedia(element)
  hasMediaByElement.set(element as object, hasMedia)
  if (hasMedia) return undefined
  let end = position + 1
  while (end < messages.length && messages[end]?.index === index) end++
  return { protocol, items: [element], count: end - position }
}

const hasMediaByElement = new WeakMap<object, boolean>()

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

/** True for a message that is only a role and a text, which needs no payload. */
export const isPlainText = (value: unknown): boolean =>
  isObject(value) && typeof value.content === 'string' && Object.keys(value).length === 2 && 'role' in value
