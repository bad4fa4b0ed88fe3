import type { Tokenizer } from '../domain/ports.ts'

const overhead = { message: 0, name: 0, call: 0, reply: 0 }

/**
 * 3.5 ASCII characters to a token, 1.5 of any other (an emoji is two).
 *
 * @example
 * ascii35.count('Hello world') // 4
 */
export const ascii35: Tokenizer = {
  name: 'ascii-3.5',
  kind: 'estimate',
  overhead,
  isExact: () => false,
  count(text) {
    let ascii = 0
    for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) < 0x80) ascii++
    return Math.ceil(ascii / 3.5 + (text.length - ascii) / 1.5)
  },
}

/**
 * Four characters to a token.
 *
 * @example
 * chars4.count('Hello world') // 3
 */
export const chars4: Tokenizer = {
  name: 'chars-4',
  kind: 'estimate',
  overhead,
  isExact: () => false,
  count: (text) => Math.ceil(text.length / 4),
}
