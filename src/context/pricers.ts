import type { Parsed } from '../domain/chat.ts'
import type { Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'

/** What something said costs as a message of its own, and as a line of a block. */
export type Prices = readonly [tokens: Tokens, lineTokens: Tokens]

/**
 * Tokenizers that find both prices in one look: the same as by counting, undefined where there is more to it than words.
 * Whoever makes another tokenizer of one of these, with a `count` that differs, does not take this along.
 */
export const pricers = new WeakMap<Tokenizer, (said: Parsed) => Prices | undefined>()
