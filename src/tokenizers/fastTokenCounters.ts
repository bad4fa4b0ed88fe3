import type { ParsedMessage } from '../domain/chat.ts'
import type { Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'

/** Token cost of a message, as a chat message and as a line of a text block. */
export type MessageCosts = readonly [tokens: Tokens, lineTokens: Tokens]

/**
 * Single-pass cost functions of the built-in tokenizers. Each returns the same costs as `Tokenizer.count` would, or
 * undefined when the message needs the general path. Keyed by object identity, so that a wrapped tokenizer with another
 * `count` never inherits the function.
 */
export const fastTokenCounters = new WeakMap<Tokenizer, (message: ParsedMessage) => MessageCosts | undefined>()
