import type { Said } from '../domain/entry.ts'

/** How many bytes a text takes in UTF-8. */
export function utf8Length(text: string): number {
  let bytes = text.length
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x80) continue
    // Two halves of one character take four bytes together.
    const isHalf = code >= 0xdc00 && code < 0xe000 && at > 0 && text.charCodeAt(at - 1) >= 0xd800 && text.charCodeAt(at - 1) < 0xdc00
    bytes += isHalf ? 0 : code < 0x800 ? 1 : 2
  }
  return bytes
}

/** How many bytes everything takes that is said in a message. */
export function bytesOf({ content, name = '', answers = '', calls = [] }: Pick<Said, 'content' | 'name' | 'answers' | 'calls'>): number {
  let bytes = utf8Length(content) + utf8Length(name) + utf8Length(answers)
  for (const call of calls) bytes += utf8Length(call.id) + utf8Length(call.name) + utf8Length(call.arguments)
  return bytes
}
