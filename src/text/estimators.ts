import type { Tokenizer } from '../domain/ports.ts'

const noOverhead = { message: 0, name: 0, call: 0, reply: 0 }

/**
 * Estimates one token per 3.5 ASCII characters and per 1.5 other UTF-16 units (an emoji has two).
 *
 * @example
 * ascii35.count('Hello world') // 4
 */
export const ascii35: Tokenizer = {
  name: 'ascii-3.5',
  kind: 'estimate',
  overhead: noOverhead,
  isExact: () => false,
  count(text) {
    let ascii = 0
    for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) < 0x80) ascii++
    return Math.ceil(ascii / 3.5 + (text.length - ascii) / 1.5)
  },
}

/**
 * Estimates one token per four characters.
 *
 * @example
 * chars4.count('Hello world') // 3
 */
export const chars4: Tokenizer = {
  name: 'chars-4',
  kind: 'estimate',
  overhead: noOverhead,
  isExact: () => false,
  count: (text) => Math.ceil(text.length / 4),
}
