import { pairs, triples, words } from './frequentWords.ts'

/** Words that are one token in both encodings, as written and with a capital: after a space, or also without one. */
export const afterSpace = new Set<string>()
export const anywhere = new Set<string>()

let word = ''
for (const [, sign, rest] of words.matchAll(/([0-9A-J])([a-z]+)/g)) {
  const place = '0123456789ABCDEFGHIJ'.indexOf(sign as string)
  word = word.slice(0, place % 10) + rest
  afterSpace.add(word)
  if (place < 10) anywhere.add(word)
}

/** Whether the letters are a word of the table, small or with one capital, that is one token where it stands. */
export function isCommon(letters: string, spaced: boolean): boolean {
  const table = spaced ? afterSpace : anywhere
  return table.has(letters) || table.has(letters.charAt(0).toLowerCase() + letters.slice(1))
}

const symbols = ' ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const small = symbols.indexOf('a')
const symbolOf = new Uint8Array(128)
for (let at = 0; at < symbols.length; at++) symbolOf[symbols.charCodeAt(at)] = at

/** Two symbols that are a token, and three: space or a small letter before two small letters. */
const isPair = new Uint8Array(53 * 53)
const isTriple = new Uint8Array(27 * 26 * 26)
pairs.split(',').forEach((row, first) => {
  for (const second of row) isPair[first * 53 + symbols.indexOf(second)] = 1
})
triples.split(',').forEach((row, start) => {
  for (const third of row) isTriple[start * 26 + symbols.indexOf(third) - small] = 1
})

const symbolAt = (text: string, at: number): number => symbolOf[text.charCodeAt(at)] as number

function endsPair(text: string, end: number): boolean {
  return isPair[symbolAt(text, end - 2) * 53 + symbolAt(text, end - 1)] === 1
}

function endsTriple(text: string, end: number): boolean {
  const [first, second, third] = [
    symbolAt(text, end - 3),
    symbolAt(text, end - 2) - small,
    symbolAt(text, end - 1) - small,
  ]
  if (second < 0 || third < 0 || (first > 0 && first < small)) return false
  return isTriple[(Math.max(0, first - small + 1) * 26 + second) * 26 + third] === 1
}

const impossible = -0x40000000
/** The most parts up to a place when the last one has one, two or more symbols, for the newest four places. */
const one = new Int32Array(4)
const two = new Int32Array(4)
const more = new Int32Array(4)

/**
 * The most tokens that can lie wholly within these ASCII letters, a space before them included, in either encoding.
 *
 * Byte pair encoding stops when no two neighbouring tokens of a piece make a token together. So whatever the tokens are,
 * neighbours of one and one, one and two or two and one symbols are no pair or triple of the tables, which hold tokens
 * of both encodings only. The longest chain of parts that obeys this rule has at least as many parts as there are tokens.
 * Where a piece may end within the letters, neighbours are free: after an apostrophe, behind the first or second letter (both
 * encodings may end it after 's or 'll). o200k_base ends one between a small letter and a capital as well, but no pair or
 * triple has a capital there.
 */
export function mostTokens(text: string, start: number, end: number, afterApostrophe: boolean): number {
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
