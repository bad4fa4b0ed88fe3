import { pairs, triples, words } from './frequentWords.ts'

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
export function isCommonWord(letters: string, isAfterSpace: boolean): boolean {
  const table = isAfterSpace ? wordsAfterSpace : wordsAnywhere
  return table.has(letters) || table.has(letters.charAt(0).toLowerCase() + letters.slice(1))
}

const symbols = ' ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const firstLowercase = symbols.indexOf('a')
const symbolOf = new Uint8Array(128)
for (let at = 0; at < symbols.length; at++) symbolOf[symbols.charCodeAt(at)] = at

/** Set for two symbols that form a token: `isPair[first * 53 + second]`. */
const isPair = new Uint8Array(53 * 53)
/** Set for three symbols that form a token, the first a space or a to z: `isTriple[(first * 26 + second) * 26 + third]`. */
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
 * neighbours of one and one, one and two, or two and one symbols are therefore not a pair or triple of the tables, which
 * hold only tokens of both encodings. The longest chain of parts that obeys this rule has at least as many parts as there
 * are tokens. Neighbours are unrestricted at positions where a piece may end within the letters: after an apostrophe,
 * behind the first or second letter (both encodings may end a piece after 's or 'll). o200k_base also ends a piece between
 * a lower-case and an upper-case letter, but no pair or triple has a capital there.
 */
export function maxLetterTokens(text: string, start: number, end: number, afterApostrophe: boolean): number {
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
