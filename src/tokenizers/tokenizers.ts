import { speakerOf } from '../context/entryText.ts'
import type { ParsedMessage } from '../domain/chat.ts'
import { isBlank, type Role, type Tokens, utf8Length } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import type { TokenizerName } from '../domain/profile.ts'
import { chatOverhead } from '../text/cost.ts'
import { ascii35, chars4 } from '../text/estimators.ts'
import { upperBound } from '../text/upperBound.ts'
import { codeAt, endOfAsciiPiece, isLowercase, isUppercase, isWordBoundary, WordTokenCache } from './asciiPieces.ts'
import { countBpeTokens, createRankIndex, type RankIndex, toByteString } from './bytePairs.ts'
import { fastTokenCounters, type MessageCosts } from './fastTokenCounters.ts'
import { LongTextCounts, RecentCounts } from './recentCounts.ts'
import { splitPatterns } from './splitPatterns.ts'

type Encoding = keyof typeof splitPatterns

const loaded = new Map<Encoding, Promise<Tokenizer>>()

/**
 * Loads a tokenizer that counts as OpenAI's models do. The rank table is loaded on the first call for an encoding and
 * shared by later calls. A piece of over 4,096 characters, and text beyond 32,768 tokens, is bounded from above;
 * `isExact` reports this.
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

/** Loads the exact tokenizer for a model name. Names of unknown models get `o200k_base`; see `encodingFor`. */
export const tokenizerFor = (model: string): Promise<Tokenizer> => exactTokenizer(encodingFor(model))

/** Loads the tokenizer that a profile names. `exact` is `o200k_base`. */
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
 * Returns the encoding of a model: `cl100k_base` for gpt-4, gpt-3.5 and embedding models, `o200k_base` for all others.
 *
 * @example
 * encodingFor('ft:gpt-4o-mini-2024-07-18:acme::abc123') // 'o200k_base'
 */
export function encodingFor(model: string): Encoding {
  // Provider and fine-tuning names surround the model name, separated by slashes and colons.
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
  const counter = new TokenCounter(splitPatterns[encoding], createRankIndex(table))
  const isExact: Tokenizer['isExact'] = (text) => counter.isExact(text)
  const tokenizer = {
    name: encoding,
    kind: 'exact',
    overhead: chatOverhead,
    count: (text: string) => counter.count(text),
    isExact,
  } as const
  const messageCounter = new MessageCounter(counter)
  fastTokenCounters.set(tokenizer, (message) => messageCounter.costsOf(message))
  return tokenizer
}

/** Label of a line and chat overhead of a message, for messages of one role that have no name. */
type RoleOverhead = { readonly label: LineLabel; readonly tokens: Tokens }

/** Computes both costs of a plain message in one pass. */
class MessageCounter {
  readonly #counter: TokenCounter
  readonly #roles = new Map<Role, RoleOverhead>()

  constructor(counter: TokenCounter) {
    this.#counter = counter
  }

  costsOf(message: ParsedMessage): MessageCosts | undefined {
    const { role, content, name, toolCalls } = message
    // Other messages are not rendered verbatim: they have names, tool calls, placeholders or memory tags to neutralise.
    if (role === 'tool' || name !== undefined || toolCalls !== undefined || isBlank(content) || content.includes('<'))
      return undefined
    const { label, tokens } = this.#overheadOf(role, message)
    const counts = this.#counter.countLine(label, content)
    if (counts === undefined) return undefined
    const [alone, line, paragraph] = counts
    return [Math.max(paragraph, tokens + alone), line]
  }

  #overheadOf(role: Role, message: ParsedMessage): RoleOverhead {
    let overhead = this.#roles.get(role)
    if (overhead === undefined) {
      const text = `${speakerOf(message)}:`
      overhead = {
        label: { text, tokens: this.#counter.count(text) },
        tokens: chatOverhead.message + this.#counter.count(role),
      }
      this.#roles.set(role, overhead)
    }
    return overhead
  }
}

/** Longer pieces are bounded from above instead of merged: merging takes time, and no natural word is this long. */
const maxPieceCharacters = 4_096
/**
 * Tokens counted per text, about 30 ms at worst. The rest is bounded by its bytes: no more than this is ever shown
 * whole.
 */
const maxCountedTokens = 32_768
/** Beyond this length, text that has no cut point in this range is bounded without splitting it into pieces. */
const maxScannedCharacters = 262_144
/** Characters whose bytes are counted for a bound. */
const maxMeasuredCharacters = 524_288
/** V8 substrings of 13 characters or more retain the text they were cut from, so only shorter pieces are cached. */
const pieceCache = { maxEntries: 16_384, maxCharacters: 12 }
/**
 * Recent counts: short texts as a whole, longer ones by segment. Kept small, so that forgotten text does not stay in
 * memory.
 */
const shortTextCache = { maxCharacters: 1_024, slots: 128 }
const segmentCache = { maxCharacters: 256, slots: 1_024 }
const longPieceSlots = 64
/** Counts of longer texts are kept for the steps of one request. */
const minLongTextCharacters = 16_384

const space = 32
const isLetter = (code: number): boolean => isLowercase(code) || isUppercase(code)

/**
 * True for a space between two ASCII letters. Both encodings split before it, so that both sides can be counted
 * separately.
 */
const isSplitPoint = (text: string, at: number): boolean =>
  text.charCodeAt(at) === space && isLetter(text.charCodeAt(at - 1)) && isLetter(text.charCodeAt(at + 1))

/** Returns the first split point, or -1. */
function firstSplitPoint(text: string): number {
  for (let at = 1; at < text.length - 1; at++) if (isSplitPoint(text, at)) return at
  return -1
}

/** Returns the last split point of a text that has one. */
function lastSplitPoint(text: string): number {
  let at = text.length - 2
  while (!isSplitPoint(text, at)) at--
  return at
}

/**
 * Returns the end of the last word, or its start if the characters after it may continue it. The text must have a split
 * point.
 */
function endOfLastWord(text: string): number {
  let end = text.length
  while (!isLetter(text.charCodeAt(end - 1))) end--
  return isWordBoundary(codeAt(text, end)) ? end : lastSplitPoint(text)
}

/**
 * Selects one in eight split points by the letters around them, so that the same words are cut at the same points in
 * any text.
 */
const isSegmentBoundary = (text: string, at: number): boolean =>
  ((text.charCodeAt(at - 1) * 31 + text.charCodeAt(at + 1)) & 7) === 0 && isSplitPoint(text, at)

/** Speaker prefix of a line, such as `User:`. */
type LineLabel = { readonly text: string; readonly tokens: Tokens }
/** Token counts of a text by itself, as `label text\n` and as `label text\n\n`. */
type LineCounts = readonly [alone: Tokens, line: Tokens, paragraph: Tokens]

/** Counts of the segments of a long text up to its last boundary, from which the rest is counted or bounded. */
type SegmentCounts = {
  readonly total: Tokens
  /** Tokens of the first segment and its end; -1 for a text without a boundary. */
  readonly head: Tokens
  readonly first: number
  readonly last: number
  readonly isBounded: boolean
}

/** Counts tokens of one encoding. */
export class TokenCounter {
  readonly #pattern: RegExp
  readonly #ranks: RankIndex
  readonly #pieces = new Map<string, Tokens>()
  /** Counts of pieces that repeat one ASCII character (rules, indentation), by `code * 65,536 + length`. */
  readonly #runs = new Map<number, Tokens>()
  readonly #words = new WordTokenCache((text, at, end) => this.#countPiece(text, at, end))
  readonly #shortTexts = new RecentCounts(shortTextCache.slots)
  readonly #segments = new RecentCounts(segmentCache.slots)
  readonly #longPieces = new RecentCounts(longPieceSlots)
  readonly #longTexts = new LongTextCounts()
  #lastEnding: { readonly text: string; readonly counts: LineCounts } = { text: '', counts: [0, 1, 1] }

  constructor(pattern: RegExp, ranks: RankIndex) {
    this.#pattern = pattern
    this.#ranks = ranks
  }

  /**
   * Caches the part between the outer split points: the same text is soon counted again with a label before or a
   * newline after it.
   */
  count(text: string): Tokens {
    if (text.length > minLongTextCharacters) return this.#longTexts.getOrCount(text, () => this.#countLong(text))
    if (text.length > shortTextCache.maxCharacters) return this.#countLong(text)
    const first = firstSplitPoint(text)
    if (first < 0) return this.#countPieces(text, 0, text.length)
    const last = lastSplitPoint(text)
    return (
      this.#countPieces(text, 0, first) +
      this.#countCached(this.#shortTexts, text, first, last) +
      this.#countPieces(text, last, text.length)
    )
  }

  /**
   * Counts a text alone, as a line and as a paragraph. Only the first word and the characters after the last word
   * differ. Returns undefined for a long text without words: the three counts would take long in a row.
   */
  countLine({ text: label, tokens }: LineLabel, text: string): LineCounts | undefined {
    if (text.length > shortTextCache.maxCharacters) return this.#countLongLine({ text: label, tokens }, text)
    const first = firstSplitPoint(text)
    if (first < 0) return this.#countWith(label, text)
    const last = endOfLastWord(text)
    const inner = this.#countPieces(text, first, last)
    const head = text.slice(0, first)
    const start =
      inner +
      (isLetter(text.charCodeAt(0)) ? tokens + this.#countWhole(` ${head}`) : this.#countWhole(`${label} ${head}`))
    const [end, line, paragraph] = this.#countEnding(text.slice(last))
    return [this.#countPieces(text, 0, first) + inner + end, start + line, start + paragraph]
  }

  /** True if `count` is exact for this text, false if part of it was bounded from above. */
  isExact(text: string): boolean {
    if (text.length <= maxPieceCharacters) return true
    if (text.length > maxScannedCharacters || this.count(text) >= maxCountedTokens) return false
    try {
      for (let at = 0, end = 0; at < text.length; at = end) {
        end = this.#endOfPiece(text, at)
        if (end - at > maxPieceCharacters) return false
      }
      return true
    } catch {
      return false
    }
  }

  /** Counts the characters after the last word, mostly a full stop. Caches the latest. */
  #countEnding(text: string): LineCounts {
    if (this.#lastEnding.text !== text)
      this.#lastEnding = {
        text,
        counts: [this.#countWhole(text), this.#countWhole(`${text}\n`), this.#countWhole(`${text}\n\n`)],
      }
    return this.#lastEnding.counts
  }

  #countWhole(text: string): Tokens {
    return this.#countPieces(text, 0, text.length)
  }

  #countWith(label: string, text: string): LineCounts {
    return [this.count(text), this.count(`${label} ${text}\n`), this.count(`${label} ${text}\n\n`)]
  }

  /** Counts a long text once: a label changes its first segment only, and a line break its last one. */
  #countLongLine({ text: label }: LineLabel, text: string): LineCounts | undefined {
    const { total, head, first, last, isBounded } = this.#countSegments(text)
    if (first < 0) return text.length > minLongTextCharacters ? undefined : this.#countWith(label, text)
    const start = total - head + this.#countWhole(`${label} ${text.slice(0, first)}`)
    if (isBounded) {
      const bound = maxTokensOf(text, last, text.length)
      return [total + bound, start + bound + 1, start + bound + 2]
    }
    const end = text.slice(last)
    const count = (tail: string): Tokens => this.#countSegment(tail, 0, tail.length, maxCountedTokens - total)
    return [total + count(end), start + count(`${end}\n`), start + count(`${end}\n\n`)]
  }

  /** Counts segment by segment up to the limits, and bounds the rest by its bytes. */
  #countLong(text: string): Tokens {
    const { total, last, isBounded } = this.#countSegments(text)
    return (
      total +
      (isBounded
        ? maxTokensOf(text, last, text.length)
        : this.#countSegment(text, last, text.length, maxCountedTokens - total))
    )
  }

  /** Counts the segments up to the limits. */
  #countSegments(text: string): SegmentCounts {
    const end = Math.min(text.length, maxScannedCharacters)
    let total = 0
    let start = 0
    let first = -1
    let head = 0
    for (
      let at = text.indexOf(' ', 1);
      at > 0 && at < end && total < maxCountedTokens;
      at = text.charCodeAt(at + 1) === space ? at + 1 : text.indexOf(' ', at + 1)
    ) {
      if (!isSegmentBoundary(text, at)) continue
      total += this.#countSegment(text, start, at, maxCountedTokens - total)
      if (first < 0) [first, head] = [at, total]
      start = at
    }
    return { total, head, first, last: start, isBounded: end < text.length || total >= maxCountedTokens }
  }

  #countSegment(text: string, from: number, to: number, maxTokens: Tokens): Tokens {
    return to - from > segmentCache.maxCharacters
      ? this.#countPieces(text, from, to, maxTokens)
      : this.#countCached(this.#segments, text, from, to)
  }

  #countCached(cache: RecentCounts, text: string, from: number, to: number): Tokens {
    return from === to ? 0 : cache.getOrCount(text.slice(from, to), () => this.#countPieces(text, from, to))
  }

  #countPieces(text: string, from: number, to: number, maxTokens = maxCountedTokens): Tokens {
    try {
      let total = 0
      for (let at = from; at < to; ) {
        if (total >= maxTokens) return total + maxTokensOf(text, at, to)
        total += this.#words.count(text, at, to, maxTokens - total)
        at = this.#words.end
        if (total >= maxTokens || at >= to) continue
        const end = this.#endOfPiece(text, at)
        total += this.#countPiece(text, at, end)
        at = end
      }
      return total
    } catch {
      // A piece of many millions of characters overflows the stack of the regular expression engine.
      return upperBound.count(text.slice(from, to))
    }
  }

  /** Pieces are contiguous: each starts where the one before ends. */
  #endOfPiece(text: string, at: number): number {
    const end = endOfAsciiPiece(text, at)
    if (end > at) return end
    this.#pattern.lastIndex = at
    return this.#pattern.test(text) ? this.#pattern.lastIndex : text.length
  }

  #countPiece(text: string, at: number, end: number): Tokens {
    // Every single byte is a token.
    if (end === at + 1 && text.charCodeAt(at) < 128) return 1
    const piece = text.slice(at, end)
    // A piece splits the same way when it stands alone, so a bound of it as a text bounds its tokens.
    if (piece.length > maxCountedTokens) return maxTokensOf(piece, 0, piece.length)
    if (piece.length > maxPieceCharacters) return upperBound.count(piece)
    if (piece.length > pieceCache.maxCharacters) return this.#countLongPiece(piece)
    const cached = this.#pieces.get(piece)
    if (cached !== undefined) return cached
    const tokens = this.#merge(piece)
    if (this.#pieces.size >= pieceCache.maxEntries) this.#pieces.clear()
    this.#pieces.set(piece, tokens)
    return tokens
  }

  /**
   * Caches runs of one ASCII character, which need no copy of the piece as a key (ASCII diagrams count about 8 times
   * faster), and a few other pieces: lines that repeat one, such as a run of emoji, take long to merge.
   */
  #countLongPiece(piece: string): Tokens {
    const code = piece.charCodeAt(0)
    let at = 1
    while (at < piece.length && piece.charCodeAt(at) === code) at++
    if (at < piece.length || code > 127) return this.#longPieces.getOrCount(piece, () => this.#merge(piece))
    const key = code * 65_536 + piece.length
    let tokens = this.#runs.get(key)
    if (tokens === undefined) {
      tokens = this.#merge(piece)
      if (this.#runs.size >= pieceCache.maxEntries) this.#runs.clear()
      this.#runs.set(key, tokens)
    }
    return tokens
  }

  #merge(piece: string): Tokens {
    const bytes = toByteString(piece)
    return this.#ranks.get(bytes) !== undefined ? 1 : countBpeTokens(bytes, this.#ranks)
  }
}

/**
 * Upper bound: the UTF-8 bytes of part of a text, each of which is in one token. Very long parts count three bytes per
 * character.
 */
const maxTokensOf = (text: string, from: number, to: number): number =>
  to - from > maxMeasuredCharacters ? 3 * (to - from) : utf8Length(text.slice(from, to))
