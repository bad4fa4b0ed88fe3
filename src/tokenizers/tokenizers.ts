import { type Prices, pricers } from '../context/pricers.ts'
import { speaker } from '../context/wording.ts'
import type { Parsed } from '../domain/chat.ts'
import { isBlank, type Role, type Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import type { TokenizerName } from '../domain/profile.ts'
import { chatOverhead } from '../text/cost.ts'
import { ascii35, chars4 } from '../text/estimators.ts'
import { upperBound } from '../text/upperBound.ts'
import { utf8Length } from '../text/utf8.ts'
import { countMerged, type Ranks, readRanks, toBytes } from './bytePairs.ts'
import { pieces } from './pieces.ts'
import { codeAt, endOfPlain, endsWord, isSmall } from './plain.ts'
import { Recent } from './recent.ts'
import { Words } from './words.ts'

type Encoding = keyof typeof pieces

/** A longer piece is bounded from above: merging it would take time, and nobody writes such a word. */
const longestPiece = 4_096
/** So many tokens of one text are counted, which takes some 30 ms at worst: of a longer one no more than this is ever shown whole. */
const counted = 32_768
/** In a longer text not even the pieces are looked for where none of its first words is sure to begin one. */
const longestText = 524_288
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
  return name !== undefined && /^(?:gpt-4(?:-|$)|gpt-3\.?5|text-embedding-(?:3|ada-002))/.test(name)
    ? 'cl100k_base'
    : 'o200k_base'
}

async function load(encoding: Encoding): Promise<Tokenizer> {
  const { default: table } = await (encoding === 'o200k_base'
    ? import('gpt-tokenizer/bpeRanks/o200k_base')
    : import('gpt-tokenizer/bpeRanks/cl100k_base'))
  const counter = new Counter(pieces[encoding], readRanks(table))
  const isExact: Tokenizer['isExact'] = (text) => counter.isExact(text)
  const tokenizer = {
    name: encoding,
    kind: 'exact',
    overhead: chatOverhead,
    count: (text: string) => counter.count(text),
    isExact,
  } as const
  const pricer = new Pricer(counter)
  pricers.set(tokenizer, (said) => pricer.prices(said))
  return tokenizer
}

class Pricer {
  readonly #counter: Counter
  readonly #frames = new Map<Role, Frame>()

  constructor(counter: Counter) {
    this.#counter = counter
  }

  prices(said: Parsed): Prices | undefined {
    const { role, content, name, calls } = said
    // Anything else is sent or written otherwise than it was said.
    if (role === 'tool' || name !== undefined || calls !== undefined || isBlank(content) || content.includes('<'))
      return undefined
    const { label, tokens } = this.#frameOf(role, said)
    const [alone, line, paragraph] = this.#counter.inLine(label, content)
    return [Math.max(paragraph, tokens + alone), line]
  }

  #frameOf(role: Role, said: Parsed): Frame {
    let frame = this.#frames.get(role)
    if (frame === undefined) {
      const text = `${speaker(said)}:`
      frame = {
        label: { text, tokens: this.#counter.count(text) },
        tokens: chatOverhead.message + this.#counter.count(role),
      }
      this.#frames.set(role, frame)
    }
    return frame
  }
}

/** Who speaks in a line, with the colon behind it. */
type Label = { readonly text: string; readonly tokens: Tokens }
/** What stands around each message of a role that has no name: before its words in a line, and beside them in a chat. */
type Frame = { readonly label: Label; readonly tokens: Tokens }

/** How much of what was just counted stays at hand: short texts whole, longer ones by stretches. Little, because it may be forgotten. */
const whole = { characters: 1_024, most: 128 }
const stretches = { characters: 256, most: 1_024 }

const space = 32
const isLetter = (code: number): boolean => isSmall(code) || (code >= 65 && code <= 90)

/** Whether a space between letters is here: both encodings split before it, so that what is on both sides can be counted apart. */
const isBetween = (text: string, at: number): boolean =>
  text.charCodeAt(at) === space && isLetter(text.charCodeAt(at - 1)) && isLetter(text.charCodeAt(at + 1))

/** The first of such spaces, or -1. */
function firstBetween(text: string): number {
  for (let at = 1; at < text.length - 1; at++) if (isBetween(text, at)) return at
  return -1
}

/** The last of them, if there is one. */
function lastBetween(text: string): number {
  let at = text.length - 2
  while (!isBetween(text, at)) at--
  return at
}

/** Where the last word ends, or where it begins if it may go on with what is no plain letter; there is such a space. */
function endOfLast(text: string): number {
  let end = text.length
  while (!isLetter(text.charCodeAt(end - 1))) end--
  return endsWord(codeAt(text, end)) ? end : lastBetween(text)
}

/** One in eight of such spaces, chosen by the letters, so that the same words are cut at the same places wherever they stand. */
const isCut = (text: string, at: number): boolean =>
  ((text.charCodeAt(at - 1) * 31 + text.charCodeAt(at + 1)) & 7) === 0 && isBetween(text, at)

type InLine = readonly [alone: Tokens, line: Tokens, paragraph: Tokens]

class Counter {
  readonly #pattern: RegExp
  readonly #ranks: Ranks
  readonly #known = new Map<string, Tokens>()
  readonly #inner = new Recent(whole.most)
  readonly #words = new Words((text, at, end) => this.#piece(text, at, end))
  readonly #stretches = new Recent(stretches.most)
  #last: { readonly text: string; readonly tokens: InLine } = { text: '', tokens: [0, 1, 1] }

  constructor(pattern: RegExp, ranks: Ranks) {
    this.#pattern = pattern
    this.#ranks = ranks
  }

  /** What is counted is soon counted again with a word before or a line end behind it: all between its outer words is the same. */
  count(text: string): Tokens {
    if (text.length > whole.characters) return this.#long(text)
    const first = firstBetween(text)
    if (first < 0) return this.#pieces(text, 0, text.length)
    const last = lastBetween(text)
    return (
      this.#pieces(text, 0, first) +
      this.#recent(this.#inner, text, first, last) +
      this.#pieces(text, last, text.length)
    )
  }

  /** A text by itself, and in a line with a label before it and one line end behind it, or two: only its first word and what follows its last one differ. */
  inLine({ text: label, tokens }: Label, text: string): InLine {
    const first = text.length > whole.characters ? -1 : firstBetween(text)
    if (first < 0) return [this.count(text), this.count(`${label} ${text}\n`), this.count(`${label} ${text}\n\n`)]
    const last = endOfLast(text)
    const inner = this.#pieces(text, first, last)
    const head = text.slice(0, first)
    const start =
      inner + (isLetter(text.charCodeAt(0)) ? tokens + this.#all(` ${head}`) : this.#all(`${label} ${head}`))
    const [end, line, paragraph] = this.#ending(text.slice(last))
    return [this.#pieces(text, 0, first) + inner + end, start + line, start + paragraph]
  }

  /** What follows the last word, which is mostly a full stop: alone and before ends of lines. */
  #ending(text: string): InLine {
    if (this.#last.text !== text)
      this.#last = { text, tokens: [this.#all(text), this.#all(`${text}\n`), this.#all(`${text}\n\n`)] }
    return this.#last.tokens
  }

  #all(text: string): Tokens {
    return this.#pieces(text, 0, text.length)
  }

  /** Stretch by stretch, as far as it is counted: what follows has no more tokens than bytes. */
  #long(text: string): Tokens {
    const end = Math.min(text.length, longestText)
    let total = 0
    let start = 0
    for (let at = text.indexOf(' ', 1); at > 0 && at < end && total < counted; at = text.indexOf(' ', at + 1)) {
      if (!isCut(text, at)) continue
      total += this.#stretch(text, start, at, counted - total)
      start = at
    }
    const isOver = end < text.length || total >= counted
    return total + (isOver ? mostBytes(text, start, text.length) : this.#stretch(text, start, end, counted - total))
  }

  #stretch(text: string, from: number, to: number, most: Tokens): Tokens {
    return to - from > stretches.characters
      ? this.#pieces(text, from, to, most)
      : this.#recent(this.#stretches, text, from, to)
  }

  #recent(known: Recent, text: string, from: number, to: number): Tokens {
    return from === to ? 0 : known.of(text.slice(from, to), () => this.#pieces(text, from, to))
  }

  #pieces(text: string, from: number, to: number, most = counted): Tokens {
    try {
      let total = 0
      for (let at = from; at < to; ) {
        if (total >= most) return total + mostBytes(text, at, to)
        total += this.#words.count(text, at, to, most - total)
        at = this.#words.reached
        if (total >= most || at >= to) continue
        const end = this.#endOfPiece(text, at)
        total += this.#piece(text, at, end)
        at = end
      }
      return total
    } catch {
      // A piece of many millions of characters overflows the stack of regular expressions.
      return upperBound.count(text.slice(from, to))
    }
  }

  isExact(text: string): boolean {
    if (text.length <= longestPiece) return true
    if (text.length > longestText || this.count(text) >= counted) return false
    try {
      for (let at = 0, end = 0; at < text.length; at = end) {
        end = this.#endOfPiece(text, at)
        if (end - at > longestPiece) return false
      }
      return true
    } catch {
      return false
    }
  }

  /** Pieces follow each other without a gap: where one ends the next begins. */
  #endOfPiece(text: string, at: number): number {
    const plain = endOfPlain(text, at)
    if (plain > at) return plain
    this.#pattern.lastIndex = at
    return this.#pattern.test(text) ? this.#pattern.lastIndex : text.length
  }

  #piece(text: string, at: number, end: number): Tokens {
    // Every byte is a token.
    if (end === at + 1 && text.charCodeAt(at) < 128) return 1
    const piece = text.slice(at, end)
    // A piece is cut off the same way when it stands alone, so a bound of it as a text is a bound of its tokens.
    if (piece.length > counted) return mostBytes(piece, 0, piece.length)
    if (piece.length > longestPiece) return upperBound.count(piece)
    const known = this.#known.get(piece)
    if (known !== undefined) return known
    const bytes = toBytes(piece)
    const tokens = this.#ranks.get(bytes) !== undefined ? 1 : countMerged(bytes, this.#ranks)
    if (piece.length <= remembered.characters) {
      if (this.#known.size >= remembered.pieces) this.#known.clear()
      this.#known.set(piece, tokens)
    }
    return tokens
  }
}

/** No less than the bytes of a part of a text, each of which is in one token; the more there are, the less it matters how many. */
const mostBytes = (text: string, from: number, to: number): number =>
  to - from > longestText ? 3 * (to - from) : utf8Length(text.slice(from, to))
