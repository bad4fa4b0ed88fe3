import type { Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { chatOverhead } from './cost.ts'
import { symbols, words } from './frequentWords.ts'
import { countAfterFirstMerges, maxLetterTokens } from './pieceBounds.ts'

/**
 * Upper bound of the token count in cl100k_base and o200k_base that needs no rank tables; for browsers.
 *
 * Proof that it is never too small: both encodings split the text into pieces and tokenize each piece on its own; every
 * byte is in one token. The bound splits the text into runs and gives each run a cost such that
 *
 * - a run that is certainly one piece of both encodings costs at least the tokens of the piece;
 * - elsewhere, a byte with cost 1 covers the token it is in, even if that token reaches into neighbouring runs;
 * - every other run covers the tokens within it and those it shares with a run of the same kind.
 *
 * ASCII letters, symbols, digits, spaces and line ends form such runs; all text outside ASCII but some punctuation
 * costs its UTF-8 bytes. Nothing depends on the Unicode version of the browser.
 *
 * - Digits: a piece has up to three, and each group of up to three is a token. Digits of another script before them may
 *   take the first one or two into their piece, whose ASCII part is then one token.
 * - Space before a letter: always begins the letter's piece. A common word that is one token costs 1 if its piece
 *   certainly ends with it. Without a space, a symbol before it may be in its piece; `scripts/frequent-words.ts` admits
 *   a word only if that costs no more than the symbol's bytes.
 * - Space before a symbol: always begins the symbol's piece, which has all symbols that follow and the line ends after
 *   them. One symbol alone before a letter belongs to the letter's piece.
 * - Other pieces: see `countAfterFirstMerges`; where the ends of a piece are uncertain, see `maxLetterTokens`.
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

/** Roles of messages, which are counted alone and are one token each. */
const roles: ReadonlySet<string> = new Set(['user', 'assistant', 'system', 'tool'])

function countUpperBound(text: string): Tokens {
  if (roles.has(text)) return 1
  let total = 0
  for (let at = 0; at < text.length; ) {
    // A space belongs to the letter or symbol after it.
    const first = text[at] === ' ' ? at + 1 : at
    const segment =
      kindAt(text, first) === 'letter'
        ? priceWord(text, at)
        : isSymbolAt(text, first)
          ? priceSymbols(text, at)
          : priceRun(text, at, kindAt(text, at))
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
  const stop = kindAt(text, end) === 'letter' || isSymbolAt(text, end) ? end - 1 : end
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
  if (before !== 'inside' && isCommonWord(text.slice(letters, end), isAfterSpace ? 'afterSpace' : before)) {
    if (isPieceEnd(text, end)) return { end, cost: 1 }
    const contracted = before === 'start' ? findContractionEnd(text, end) : end
    if (contracted > end) return { end: contracted, cost: 2 }
  }
  const chain = maxLetterTokens(text, at, end, text[letters - 1] === "'")
  if (before !== 'start') return { end, cost: chain }
  const contracted = findContractionEnd(text, end)
  if (contracted === end && !isPieceEnd(text, end)) return { end, cost: chain }
  const [merged, rest] = [countAfterFirstMerges(text.slice(at, end), text.slice(end, contracted)), contracted - end]
  return { end: contracted, cost: Math.min(chain + rest, merged) }
}

/** Characters outside ASCII that are not part of a word in any Unicode version. */
const punctuation = '‘’“”–—…'

function isSymbolAt(text: string, at: number): boolean {
  const kind = kindAt(text, at)
  return kind === 'symbol' || (kind === 'nonAscii' && punctuation.includes(text.charAt(at)))
}

/**
 * Tells whether a letter after this index starts its piece, may share it with the symbol there, or may be inside it.
 */
function classifyStart(text: string, at: number): 'start' | 'shared' | 'inside' {
  const kind = kindAt(text, at)
  if (kind === 'edge' || kind === 'line' || kind === 'digit' || text[at] === '\r') return 'start'
  if (!isSymbolAt(text, at)) return kind === 'white' ? 'shared' : 'inside'
  // A symbol after a space or another one is in a piece without letters. o200k_base may end a piece after a slash.
  if (text[at - 1] === ' ' || (isSymbolAt(text, at - 1) && text[at - 1] !== '/')) return 'start'
  return text[at] === "'" ? 'inside' : 'shared'
}

/** Prices symbols, including a space before them, line ends after them, and a word that one symbol belongs to. */
function priceSymbols(text: string, at: number): Segment {
  const start = text[at] === ' ' ? at + 1 : at
  let [end, bytes] = [start, start - at]
  while (isSymbolAt(text, end)) bytes += kindAt(text, end++) === 'symbol' ? 1 : 3
  if (start === at && !startsSymbolPiece(text, at)) return { end, cost: bytes }
  if (start === at && end === at + 1 && kindAt(text, end) === 'letter') return pricePrefixedWord(text, at, bytes)
  const pieceEnd = findSymbolPieceEnd(text, end)
  if (pieceEnd === undefined) return { end, cost: bytes }
  const piece = text.slice(at, pieceEnd)
  if (symbolTokens.has(piece)) return { end: pieceEnd, cost: 1 }
  const lines = priceBlank(pieceEnd - end, maxLineToken)
  return { end: pieceEnd, cost: Math.min(bytes + lines, countAfterFirstMerges(piece)) }
}

/** Tells whether a symbol that no symbol precedes certainly begins its piece. */
function startsSymbolPiece(text: string, at: number): boolean {
  const kind = kindAt(text, at - 1)
  // o200k_base takes slashes after line ends into the piece before them.
  return kind === 'line' || text[at - 1] === '\r' ? text[at] !== '/' : kind !== 'nonAscii'
}

/** Returns the end of the piece whose symbols end here; undefined if it is uncertain. */
function findSymbolPieceEnd(text: string, at: number): number | undefined {
  const kind = kindAt(text, at)
  const end = kind === 'line' ? findRunEnd(text, at, 'line') : at
  return kindAt(text, end) === 'nonAscii' || text[end] === '\r' || (end > at && text[end] === '/') ? undefined : end
}

/** Prices one symbol and the letters after it, which are a piece together, except for an apostrophe. */
function pricePrefixedWord(text: string, at: number, bytes: number): Segment {
  const end = findRunEnd(text, at + 1, 'letter')
  if (text[at] === "'" || !isPieceEnd(text, end)) return { end: at + 1, cost: bytes }
  const piece = text.slice(at, end)
  if (text[at] === '’' && contractions.includes(`'${piece.slice(1)}`)) return { end, cost: 1 }
  const word = priceWord(text, at + 1)
  return { end, cost: Math.min(bytes + word.cost, countAfterFirstMerges(piece)) }
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

const contractions = ["'s", "'t", "'m", "'d", "'ll", "'ve", "'re"]

/** Returns the end of the contraction that begins here, or this index if there is none. */
function findContractionEnd(text: string, at: number): number {
  const ending = contractions.find((part) => text.startsWith(part, at))
  return ending !== undefined && isPieceEnd(text, at + ending.length) ? at + ending.length : at
}

/** Common words by the places where they are one token; see `words`. */
export const commonWords = new Map<string, number>()

let word = ''
for (const [, digit, rest] of words.matchAll(/([0-9A-Z])([a-z]+)/g)) {
  const code = Number.parseInt(digit as string, 36)
  word = word.slice(0, code % 6) + rest
  commonWords.set(word, Math.floor(code / 6))
}

export const symbolTokens: ReadonlySet<string> = new Set(symbols.split('\t'))

/** Tells whether the letters are a common word, in lower case or capitalised, that is one token in this position. */
function isCommonWord(letters: string, position: 'afterSpace' | 'start' | 'shared'): boolean {
  const isCapitalised = letters.charCodeAt(0) < 97
  const places = commonWords.get(isCapitalised ? letters.charAt(0).toLowerCase() + letters.slice(1) : letters)
  if (places === undefined) return false
  if (position === 'afterSpace') return places !== (isCapitalised ? 2 : 3)
  return places === 0 || (isCapitalised && (places === 4 || (places === 5 && position === 'start')))
}
