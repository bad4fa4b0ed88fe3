import type { NewMessage } from '../domain/entry.ts'

const encoder = new TextEncoder()
/** Target of `encodeInto`, which is several times faster than looking at each character. */
const scratch = new Uint8Array(8_192)

/** Returns the length of a text in UTF-8 bytes. */
export function utf8Length(text: string): number {
  if (text === '') return 0
  const { read, written } = encoder.encodeInto(text, scratch)
  return read === text.length ? written : encoder.encode(text).length
}

/** Returns the size of a message's content, name, tool calls and payload in UTF-8 bytes. */
export function countMessageBytes(
  message: Pick<NewMessage, 'content' | 'name' | 'toolCallId' | 'toolCalls' | 'packedPayload'>,
): number {
  let bytes = utf8Length(message.content) + utf8Length(message.name ?? '') + utf8Length(message.toolCallId ?? '')
  for (const call of message.toolCalls ?? [])
    bytes += utf8Length(call.id) + utf8Length(call.name) + utf8Length(call.arguments)
  return message.packedPayload === undefined ? bytes : bytes + utf8Length(message.packedPayload)
}
