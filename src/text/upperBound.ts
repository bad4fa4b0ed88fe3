import type { Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { chatOverhead } from './cost.ts'
import { pairs, triples, words } from './frequentWords.ts'

/**
 * Upper bound of the token count in cl100k_base and o200k_base that needs no rank tables; for browsers.
 *
 * Proof that it is never too small: both encodings split the text into pieces and tokenize each piece on its own; every
 * byte is in one token. The bound splits the text into runs and gives each run a cost such that
 *
 * - a byte with cost 1 covers the token it is in, even if that token reaches into neighbouring runs;
 * - every other run covers the tokens within it and those it shares with a run of the same kind.
 *
 * ASCII letters, digits, spaces and line ends form such runs; everything else, including all text outside ASCII, costs
 * its UTF-8 bytes. Nothing depends on the Unicode version of the browser.
 *
 * - Digits: a piece has up to three, and each group of up to three is a token. Digits of another script before them may
 *   take the first one or two into their piece, whose ASCII part is then one token.
 * - Space before a letter: always begins the letter's piece. A common word that is one token costs 1 if its piece
 *   certainly ends with it. Without a space, a symbol before it may be in its piece; `scripts/frequent-words.ts` admits
 * a
 *   word only if that costs no more than the symbol's bytes.
 * - Other letters: see `maxLetterTokens`.
 * - Spaces and line ends: up to 79 and 10 of them are a token, so two neighbouring tokens in a run together have more.
 *
 * @example
 * upperBound.count('The weather in the city') // 5
 */
export const upperBound: Tokenizer = {
  name: 'upper-bound',
  kind: 'bound',
  overhead: chatOverhead,
  isExact: () => false,
  count: countUpperBound,
}

type CharacterKind = 'letter' | 'digit' | 'space' | 'line' | 'white' | 'symbol' | 'nonAscii' | 'edge'

const kinds = Array.from({ length: 128 }, (_, code): CharacterKind => {
  const char = String.fromCharCode(code)
  if (/[A-Za-z]/.test(char)) return 'letter'
  if (/[0-9]/.test(char)) return 'digit'
  if (char === ' ') return 'space'
  if (char === '\n') return 'line'
  return /\s/.test(char) ? 'white' : 'symbol'
})

function kindAt(text: string, at: number): CharacterKind {
  return at < 0 || at >= text.length ? 'edge' : (kinds[text.charCodeAt(at)] ?? 'nonAscii')
}

function countUpperBound(text: string): Tokens {
  let total = 0
  for (let at = 0; at < text.length; ) {
    const kind = kindAt(text, at)
    const segment =
      kind === 'letter' || (kind === 'space' && kindAt(text, at + 1) === 'letter')
        ? priceWord(text, at)
        : priceRun(text, at, kind)
    total += segment.cost
    at = segment.end
  }
  return total
}

type Segment = { readonly end: number; readonly cost: Tokens }

function findRunEnd(text: string, start: number, kind: CharacterKind): number {
  let end = start + 1
  while (kindAt(text, end) === kind) end++
  return end
}

function priceRun(text: string, at: number, kind: CharacterKind): Segment {
  if (kind === 'nonAscii') return priceCharacter(text, at)
  const end = findRunEnd(text, at, kind)
  if (kind === 'line') return { end, cost: priceBlank(end - at, maxLineToken) }
  if (kind === 'digit')
    return {
      end,
      cost: kindAt(text, at - 1) === 'nonAscii' ? 1 + Math.ceil((end - at - 1) / 3) : Math.ceil((end - at) / 3),
    }
  if (kind !== 'space') return { end, cost: end - at }
  // The last space before a letter is the beginning of its word.
  const stop = kindAt(text, end) === 'letter' ? end - 1 : end
  return { end: stop, cost: priceSpaces(text, at, stop) }
}

/** Costs the UTF-8 bytes; a lone surrogate is encoded as the three bytes of U+FFFD. */
function priceCharacter(text: string, at: number): Segment {
  const point = text.codePointAt(at) as number
  if (point > 0xffff) return { end: at + 2, cost: 4 }
  return { end: at + 1, cost: point < 0x800 ? 2 : 3 }
}

/** Longest runs of spaces and line ends that are one token in both encodings; all shorter runs are, too. */
const maxSpaceToken = 79
const maxLineToken = 10

/** Two neighbouring tokens have more than `maxToken` characters together, which bounds the number of tokens. */
function priceBlank(size: number, maxToken: number): Tokens {
  return Math.min(size, 1 + 2 * Math.floor(size / (maxToken + 1)))
}

/**
 * Before anything but white space, the last space is split off, and a line end before the spaces is in a separate
 * piece. Otherwise line ends on either side may be in the same piece, and a token may contain characters of both.
 */
function priceSpaces(text: string, at: number, end: number): Tokens {
  const size = end - at
  const afterLine = kindAt(text, at - 1) === 'line' ? 1 : 0
  switch (kindAt(text, end)) {
    case 'space':
      return priceBlank(size, maxSpaceToken)
    case 'digit':
    case 'symbol':
      return 1 + priceBlank(size - 1, maxSpaceToken)
    case 'edge':
      return Math.min(size, afterLine + priceBlank(size, maxSpaceToken))
    case 'line':
      return Math.min(size, afterLine + 1 + priceBlank(size, maxSpaceToken))
    default:
      return Math.min(size, afterLine + 1 + priceBlank(size - 1, maxSpaceToken))
  }
}

/** Prices letters, including a space before them. */
function priceWord(text: string, at: number): Segment {
  const isAfterSpace = text[at] === ' '
  const letters = isAfterSpace ? at + 1 : at
  const end = findRunEnd(text, letters, 'letter')
  const before = isAfterSpace ? 'start' : classifyStart(text, letters - 1)
  if (before !== 'inside' && isCommonWord(text.slice(letters, end), isAfterSpace)) {
    if (isPieceEnd(text, end)) return { end, cost: 1 }
    const contracted = before === 'start' ? findContractionEnd(text, end) : end
    if (contracted > end) return { end: contracted, cost: 2 }
  }
  return { end, cost: maxLetterTokens(text, at, end, text[letters - 1] === "'") }
}

/** Characters outside ASCII that are not part of a word in any Unicode version. */
const punctuation = '‘’“”–—…'

/**
 * Tells whether a letter after this index starts its piece, may share it with the symbol there, or may be inside it.
 */
function classifyStart(text: string, at: number): 'start' | 'shared' | 'inside' {
  const kind = kindAt(text, at)
  if (kind === 'edge' || kind === 'line' || kind === 'digit' || text[at] === '\r') return 'start'
  if (kind === 'nonAscii') return punctuation.includes(text.charAt(at)) ? 'shared' : 'inside'
  return text[at] === "'" ? 'inside' : 'shared'
}

/** Tells whether the piece of the letter before this index certainly ends with it. */
function isPieceEnd(text: string, at: number): boolean {
  const kind = kindAt(text, at)
  if (kind === 'letter') return false
  if (kind === 'nonAscii') return punctuation.includes(text.charAt(at))
  // An apostrophe may begin a contraction, which o200k_base takes into the word's piece.
  const next = text[at] === "'" ? kindAt(text, at + 1) : kind
  return next !== 'letter' && next !== 'nonAscii'
}

/** Returns the end of the contraction that begins here, or this index if there is none. */
function findContractionEnd(text: string, at: number): number {
  const ending = ["'s", "'t", "'m", "'d", "'ll", "'ve", "'re"].find((part) => text.startsWith(part, at))
  return ending !== undefined && isPieceEnd(text, at + ending.length) ? at + ending.length : at
}

/** Words that are one token in both encodings after a space, in lower case and capitalised. */
export const wordsAfterSpace = new Set<string>()
/** Words that are one token in both encodings with or without a space before them. */
export const wordsAnywhere = new Set<string>()

let word = ''
for (const [, sign, rest] of words.matchAll(/([0-9A-J])([a-z]+)/g)) {
  const code = '0123456789ABCDEFGHIJ'.indexOf(sign as string)
  word = word.slice(0, code % 10) + rest
  wordsAfterSpace.add(word)
  if (code < 10) wordsAnywhere.add(word)
}

/** Tells whether the letters are a common word, in lower case or capitalised, that is one token in this position. */
function isCommonWord(letters: string, isAfterSpace: boolean): boolean {
  const table = isAfterSpace ? wordsAfterSpace : wordsAnywhere
  return table.has(letters) || table.has(letters.charAt(0).toLowerCase() + letters.slice(1))
}

const symbols = ' ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const firstLowercase = symbols.indexOf('a')
const symbolOf = new Uint8Array(128)
for (let at = 0; at < symbols.length; at++) symbolOf[symbols.charCodeAt(at)] = at

/** Set for two symbols that form a token: `isPair[first * 53 + second]`. */
const isPair = new Uint8Array(53 * 53)
/**
 * Set for three symbols that form a token, the first a space or a to z: `isTriple[(first * 26 + second) * 26 + third]`.
 */
const isTriple = new Uint8Array(27 * 26 * 26)
pairs.split(',').forEach((row, first) => {
  for (const second of row) isPair[first * 53 + symbols.indexOf(second)] = 1
})
triples.split(',').forEach((row, start) => {
  for (const third of row) isTriple[start * 26 + symbols.indexOf(third) - firstLowercase] = 1
})

const symbolAt = (text: string, at: number): number => symbolOf[text.charCodeAt(at)] as number

function endsPair(text: string, end: number): boolean {
  return isPair[symbolAt(text, end - 2) * 53 + symbolAt(text, end - 1)] === 1
}

function endsTriple(text: string, end: number): boolean {
  const [first, second, third] = [
    symbolAt(text, end - 3),
    symbolAt(text, end - 2) - firstLowercase,
    symbolAt(text, end - 1) - firstLowercase,
  ]
  if (second < 0 || third < 0 || (first > 0 && first < firstLowercase)) return false
  return isTriple[(Math.max(0, first - firstLowercase + 1) * 26 + second) * 26 + third] === 1
}

const impossible = -0x40000000
/**
 * Dynamic programming tables: the largest number of parts up to a position when the last part has one, two or more
 * symbols. Ring buffers of the last four positions, reused between calls.
 */
const one = new Int32Array(4)
const two = new Int32Array(4)
const more = new Int32Array(4)

/**
 * Returns an upper bound of the tokens within these ASCII letters, including a space before them, in either encoding.
 *
 * Byte pair encoding stops when no two neighbouring tokens of a piece form a token together. Whatever the tokens are,
 * neighbours of one and one, one and two, or two and one symbols are therefore not a pair or triple of the tables,
 * which hold only tokens of both encodings. The longest chain of parts that obeys this rule has at least as many parts
 * as there are tokens. Neighbours are unrestricted at positions where a piece may end within the letters: after an
 * apostrophe, behind the first or second letter (both encodings may end a piece after 's or 'll). o200k_base also ends
 * a piece between a lower-case and an upper-case letter, but no pair or triple has a capital there.
 */
function maxLetterTokens(text: string, start: number, end: number, afterApostrophe: boolean): number {
  one.fill(impossible)
  two.fill(impossible)
  more.fill(impossible)
  two[0] = 0
  let [free, freeBefore] = [true, true]
  for (let at = start + 1; at <= end; at++) {
    const size = at - start
    const [now, past1, past2, past3] = [size & 3, (size - 1) & 3, (size - 2) & 3, (size - 3) & 3]
    const triple = size > 2 && endsTriple(text, at)
    const single = free || !endsPair(text, at) ? one[past1] : impossible
    const double = free || !triple ? two[past1] : impossible
    one[now] = 1 + Math.max(more[past1] as number, single as number, double as number)
    const mixed = freeBefore || !triple ? one[past2] : impossible
    two[now] = size < 2 ? impossible : 1 + Math.max(more[past2] as number, two[past2] as number, mixed as number)
    const long = size < 3 ? impossible : 1 + Math.max(one[past3] as number, two[past3] as number, more[past3] as number)
    more[now] = Math.max(more[past1] as number, long)
    freeBefore = free
    free = afterApostrophe && size <= 2
  }
  const last = (end - start) & 3
  return Math.max(one[last] as number, two[last] as number, more[last] as number)
}
