import type { Payload } from '../../domain/chat.ts'
import { isObject } from '../../domain/error.ts'
import { hasInlineMedia } from '../../formats/originals.ts'
import type { ClientMessage, ProtocolName } from './protocol.ts'

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

/** True for a message that is only a role and a text, which needs no payload. */
export const isPlainText = (value: unknown): boolean =>
  isObject(value) && typeof value.content === 'string' && Object.keys(value).length === 2 && 'role' in value
