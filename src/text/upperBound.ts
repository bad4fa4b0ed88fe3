import type { Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { chatOverhead } from './cost.ts'
import { isCommon, mostTokens } from './letterRuns.ts'

/**
 * Never less than the exact count in cl100k_base and in o200k_base, without their tables: for browsers.
 *
 * Why it is never too small, for any text. Both encodings cut the text into pieces and make tokens of each piece alone;
 * every byte is in one token. The bound cuts the text into runs and gives each run a price such that
 *
 * - a byte priced 1 pays for the token it is in, also when that token reaches into the runs beside it;
 * - every other run pays for the tokens that lie wholly within it, and for those it shares with a run of the same sort.
 *
 * Letters, digits, spaces and line ends of ASCII are such runs; everything else, all text beyond ASCII included, is priced
 * by its UTF-8 bytes. Nothing here depends on what a browser knows of Unicode.
 *
 * - Digits: a piece is up to three, and each group of up to three is a token. Digits of another script before them may
 *   take the first one or two into their piece, whose ASCII part is then one token.
 * - A space before a letter always begins that letter's piece. A common word that is one token costs 1, if its piece is
 *   sure to end with it; without a space, a sign before it may be in its piece: see `scripts/frequent-words.ts`, which
 *   admits a word only if that costs no more than the sign's bytes.
 * - Other letters: see `mostTokens`.
 * - Spaces, line ends: up to 79 and 10 of them are a token, so neighbouring tokens within the run are longer together.
 *
 * @example
 * upperBound.count('The weather in the city') // 5
 */
export const upperBound: Tokenizer = {
  name: 'upper-bound',
  kind: 'bound',
  overhead: chatOverhead,
  isExact: () => false,
  count: countAtMost,
}

type Kind = 'letter' | 'digit' | 'space' | 'line' | 'white' | 'sign' | 'beyond' | 'edge'

const kinds = Array.from({ length: 128 }, (_, code): Kind => {
  const char = String.fromCharCode(code)
  if (/[A-Za-z]/.test(char)) return 'letter'
  if (/[0-9]/.test(char)) return 'digit'
  if (char === ' ') return 'space'
  if (char === '\n') return 'line'
  return /\s/.test(char) ? 'white' : 'sign'
})

function kindAt(text: string, at: number): Kind {
  return at < 0 || at >= text.length ? 'edge' : (kinds[text.charCodeAt(at)] ?? 'beyond')
}

function countAtMost(text: string): Tokens {
  let total = 0
  for (let at = 0; at < text.length; ) {
    const kind = kindAt(text, at)
    const run =
      kind === 'letter' || (kind === 'space' && kindAt(text, at + 1) === 'letter')
        ? wordAt(text, at)
        : runAt(text, at, kind)
    total += run.price
    at = run.end
  }
  return total
}

type Run = { readonly end: number; readonly price: Tokens }

function endOf(text: string, start: number, kind: Kind): number {
  let end = start + 1
  while (kindAt(text, end) === kind) end++
  return end
}

function runAt(text: string, at: number, kind: Kind): Run {
  if (kind === 'beyond') return charAt(text, at)
  const end = endOf(text, at, kind)
  if (kind === 'line') return { end, price: priceOfBlank(end - at, lineToken) }
  if (kind === 'digit')
    return {
      end,
      price: kindAt(text, at - 1) === 'beyond' ? 1 + Math.ceil((end - at - 1) / 3) : Math.ceil((end - at) / 3),
    }
  if (kind !== 'space') return { end, price: end - at }
  // The last space before a letter is the beginning of its word.
  const stop = kindAt(text, end) === 'letter' ? end - 1 : end
  return { end: stop, price: priceOfSpaces(text, at, stop) }
}

/** By UTF-8 bytes; half a surrogate pair is written as the three bytes of U+FFFD. */
function charAt(text: string, at: number): Run {
  const point = text.codePointAt(at) as number
  if (point > 0xffff) return { end: at + 2, price: 4 }
  return { end: at + 1, price: point < 0x800 ? 2 : 3 }
}

/** So many spaces or line ends, and all fewer, are a token of both encodings. */
const spaceToken = 79
const lineToken = 10

/** Neighbours have more than `token` signs together, so among n tokens there are at least n - 1 halves of that. */
function priceOfBlank(size: number, token: number): Tokens {
  return Math.min(size, 1 + 2 * Math.floor(size / (token + 1)))
}

/**
 * Before anything but white space the last space is cut off, and a line end before the spaces is in a piece of its own.
 * Otherwise line ends on either side may be in the same piece, and a token may hold signs of both.
 */
function priceOfSpaces(text: string, at: number, end: number): Tokens {
  const size = end - at
  const afterLine = kindAt(text, at - 1) === 'line' ? 1 : 0
  switch (kindAt(text, end)) {
    case 'space':
      return priceOfBlank(size, spaceToken)
    case 'digit':
    case 'sign':
      return 1 + priceOfBlank(size - 1, spaceToken)
    case 'edge':
      return Math.min(size, afterLine + priceOfBlank(size, spaceToken))
    case 'line':
      return Math.min(size, afterLine + 1 + priceOfBlank(size, spaceToken))
    default:
      return Math.min(size, afterLine + 1 + priceOfBlank(size - 1, spaceToken))
  }
}

/** Letters with the space before them, if there is one. */
function wordAt(text: string, at: number): Run {
  const spaced = text[at] === ' '
  const letters = spaced ? at + 1 : at
  const end = endOf(text, letters, 'letter')
  const before = spaced ? 'clear' : placeAfter(text, letters - 1)
  if (before !== 'open' && isCommon(text.slice(letters, end), spaced)) {
    if (isClosed(text, end)) return { end, price: 1 }
    const contracted = before === 'clear' ? endOfContraction(text, end) : end
    if (contracted > end) return { end: contracted, price: 2 }
  }
  return { end, price: mostTokens(text, at, end, text[letters - 1] === "'") }
}

/** Signs beyond ASCII that are no part of a word in any version of Unicode. */
const quiet = '‘’“”–—…'

/** Whether a letter behind this place begins its piece, may share it with the sign there, or may be inside of it. */
function placeAfter(text: string, at: number): 'clear' | 'sign' | 'open' {
  const kind = kindAt(text, at)
  if (kind === 'edge' || kind === 'line' || kind === 'digit' || text[at] === '\r') return 'clear'
  if (kind === 'beyond') return quiet.includes(text.charAt(at)) ? 'sign' : 'open'
  return text[at] === "'" ? 'open' : 'sign'
}

/** Whether the piece of a letter before this place is sure to end with it. */
function isClosed(text: string, at: number): boolean {
  const kind = kindAt(text, at)
  if (kind === 'letter') return false
  if (kind === 'beyond') return quiet.includes(text.charAt(at))
  // What follows an apostrophe may be a contraction, which o200k_base takes into the word's piece.
  const next = text[at] === "'" ? kindAt(text, at + 1) : kind
  return next !== 'letter' && next !== 'beyond'
}

/** The end of the contraction that begins here, or this place if there is none. */
function endOfContraction(text: string, at: number): number {
  const ending = ["'s", "'t", "'m", "'d", "'ll", "'ve", "'re"].find((part) => text.startsWith(part, at))
  return ending !== undefined && isClosed(text, at + ending.length) ? at + ending.length : at
}
