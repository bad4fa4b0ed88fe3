import type { Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import type { TokenizerName } from '../domain/profile.ts'
import { chatOverhead } from '../text/cost.ts'
import { ascii35, chars4 } from '../text/estimators.ts'
import { upperBound } from '../text/upperBound.ts'
import { countMerged, type Ranks, readRanks, toBytes } from './bytePairs.ts'
import { pieces } from './pieces.ts'

type Encoding = keyof typeof pieces

/** A longer piece is bounded from above: merging it would take time, and nobody writes such a word. */
const longestPiece = 4_096
/** A substring of 13 characters or more keeps the whole text it was taken from in memory, so only shorter pieces are remembered. */
const remembered = { pieces: 16_384, characters: 12 }

const loaded = new Map<Encoding, Promise<Tokenizer>>()

/**
 * Counts as OpenAI's models do; its tables are loaded once, when they are first needed.
 *
 * @example
 * const tokenizer = await exactTokenizer('o200k_base')
 * tokenizer.count('Hello world') // 2
 */
export function exactTokenizer(encoding: Encoding): Promise<Tokenizer> {
  let tokenizer = loaded.get(encoding)
  if (tokenizer === undefined) {
    tokenizer = load(encoding)
    loaded.set(encoding, tokenizer)
  }
  return tokenizer
}

/** The exact tokenizer of a model, by its name. */
export const tokenizerFor = (model: string): Promise<Tokenizer> => exactTokenizer(encodingFor(model))

/** The tokenizer a profile asks for. */
export async function tokenizerNamed(name: TokenizerName): Promise<Tokenizer> {
  switch (name) {
    case 'exact':
      return exactTokenizer('o200k_base')
    case 'upper-bound':
      return upperBound
    case 'ascii-3.5':
      return ascii35
    case 'chars-4':
      return chars4
  }
}

/**
 * The encoding of a model: the older one for gpt-4, gpt-3.5 and embeddings, the newer one for all others.
 *
 * @example
 * encodingFor('ft:gpt-4o-mini-2024-07-18:acme::abc123') // 'o200k_base'
 */
export function encodingFor(model: string): Encoding {
  // Providers and fine-tuning put their names around that of the model, with slashes and colons.
  const name = model
    .toLowerCase()
    .split(/[/:]/)
    .find((part) => /^(?:chatgpt|gpt|o[1-9]|text-embedding)(?:-|$)/.test(part))
  return name !== undefined && /^(?:gpt-4(?:-|$)|gpt-3\.?5|text-embedding-(?:3|ada-002))/.test(name) ? 'cl100k_base' : 'o200k_base'
}

async function load(encoding: Encoding): Promise<Tokenizer> {
  const { default: table } = await (encoding === 'o200k_base' ? import('gpt-tokenizer/bpeRanks/o200k_base') : import('gpt-tokenizer/bpeRanks/cl100k_base'))
  const counter = new Counter(pieces[encoding], readRanks(table))
  return { name: encoding, kind: 'exact', overhead: chatOverhead, count: (text) => counter.count(text), isExact: (text) => counter.isExact(text) }
}

/** How much of what was just counted stays at hand; little, because it may be forgotten. */
const stretches = { characters: 256, most: 1_024 }

const isLetter = (code: number): boolean => (code >= 97 && code <= 122) || (code >= 65 && code <= 90)

/**
 * Whether a space between these two characters is a cut: both encodings split before a space between letters, so tokens
 * on both sides can be counted apart. One in eight of them is taken, chosen by the letters, so that the same words are
 * cut at the same places wherever they stand.
 */
const isCut = (before: number, after: number): boolean => ((before * 31 + after) & 7) === 0 && isLetter(before) && isLetter(after)

class Counter {
  readonly #pattern: RegExp
  readonly #ranks: Ranks
  readonly #known = new Map<string, Tokens>()
  readonly #stretches = new Map<string, Tokens>()

  constructor(pattern: RegExp, ranks: Ranks) {
    this.#pattern = pattern
    this.#ranks = ranks
  }

  count(text: string): Tokens {
    let total = 0
    let start = 0
    for (let at = text.indexOf(' ', 1); at > 0; at = text.indexOf(' ', at + 1)) {
      if (!isCut(text.charCodeAt(at - 1), text.charCodeAt(at + 1))) continue
      total += this.#stretch(text.slice(start, at))
      start = at
    }
    return total + this.#stretch(start === 0 ? text : text.slice(start))
  }

  /** What is counted is soon counted again with a word before or a line end behind it: most of it is the same stretches. */
  #stretch(text: string): Tokens {
    if (text.length > stretches.characters) return this.#pieces(text)
    let tokens = this.#stretches.get(text)
    if (tokens === undefined) {
      tokens = this.#pieces(text)
      if (this.#stretches.size >= stretches.most) this.#stretches.clear()
      this.#stretches.set(text, tokens)
    }
    return tokens
  }

  #pieces(text: string): Tokens {
    try {
      const pattern = this.#pattern
      pattern.lastIndex = 0
      let total = 0
      // pieces follow each other without a gap: where one ends the next begins
      for (let at = 0; pattern.test(text); at = pattern.lastIndex) total += this.#piece(text.slice(at, pattern.lastIndex))
      return total
    } catch {
      // A piece of many millions of characters overflows the stack of regular expressions.
      return upperBound.count(text)
    }
  }

  isExact(text: string): boolean {
    if (text.length <= longestPiece) return true
    try {
      for (const [piece] of text.matchAll(this.#pattern)) if (piece.length > longestPiece) return false
      return true
    } catch {
      return false
    }
  }

  #piece(piece: string): Tokens {
    // A piece is cut off the same way when it stands alone, so a bound of it as a text is a bound of its tokens.
    if (piece.length > longestPiece) return upperBound.count(piece)
    const known = this.#known.get(piece)
    if (known !== undefined) return known
    const bytes = toBytes(piece)
    const tokens = this.#ranks.has(bytes) ? 1 : countMerged(bytes, this.#ranks)
    if (piece.length <= remembered.characters) {
      if (this.#known.size >= remembered.pieces) this.#known.clear()
      this.#known.set(piece, tokens)
    }
    return tokens
  }
}
