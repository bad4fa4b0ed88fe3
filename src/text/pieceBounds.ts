import type { Tokens } from '../domain/entry.ts'
import { cl100kMerges, o200kMerges, pairs, triples } from './frequentWords.ts'

const parseMerges = (merges: string): ReadonlyMap<string, number> =>
  new Map(merges.split('\t').map((token, rank) => [token, rank]))
const cl100kRanks = parseMerges(cl100kMerges)
const o200kRanks = parseMerges(o200kMerges)

const noMerge = 0x7fffffff
/** The search for the next merge is quadratic in the length of a piece. */
const maxMergedCharacters = 32

/** Characters of the merges in the tables. */
const mergedPattern = /^ ?[!-/:-~]+\n*$/

/**
 * Returns an upper bound of the tokens in a piece; Infinity if it has other characters than the tables or is too long.
 * `contraction` is its ending, such as 's, which is a piece of its own in cl100k_base.
 *
 * Byte pair encoding always does the merge of lowest rank. The tables hold all merges below some rank, so these are
 * done in their true order until only later ones are left, and each of those makes one token fewer. o200k_base also
 * ends a piece between a lower-case and an upper-case letter, but none of its merges in the tables joins the two.
 */
export function countAfterFirstMerges(piece: string, contraction = ''): Tokens {
  if (piece.length + contraction.length > maxMergedCharacters || !mergedPattern.test(piece))
    return Number.POSITIVE_INFINITY
  const cl100kTokens = countMerged(piece, cl100kRanks) + countMerged(contraction, cl100kRanks)
  return Math.max(cl100kTokens, countMerged(`${piece}${contraction}`, o200kRanks))
}

function countMerged(piece: string, ranks: ReadonlyMap<string, number>): Tokens {
  const parts = [...piece]
  const rankAt = (index: number): number => ranks.get(`${parts[index]}${parts[index + 1]}`) ?? noMerge
  const next = parts.map((_, index) => (index + 1 < parts.length ? rankAt(index) : noMerge))
  for (;;) {
    let [best, at] = [noMerge, -1]
    for (let index = 0; index + 1 < parts.length; index++)
      if ((next[index] as number) < best) [best, at] = [next[index] as number, index]
    if (at < 0) return parts.length
    parts.splice(at, 2, `${parts[at]}${parts[at + 1]}`)
    next.splice(at + 1, 1)
    if (at > 0) next[at - 1] = rankAt(at - 1)
    next[at] = at + 1 < parts.length ? rankAt(at) : noMerge
  }
}

const letterSymbols = ' ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const firstLowercase = letterSymbols.indexOf('a')
const symbolOf = new Uint8Array(128)
for (let at = 0; at < letterSymbols.length; at++) symbolOf[letterSymbols.charCodeAt(at)] = at

/** Set for two symbols that form a token: `isPair[first * 53 + second]`. */
const isPair = new Uint8Array(53 * 53)
/**
 * Set for three symbols that form a token, the first a space or a to z: `isTriple[(first * 26 + second) * 26 + third]`.
 */
const isTriple = new Uint8Array(27 * 26 * 26)
pairs.split(',').forEach((row, first) => {
  for (const second of row) isPair[first * 53 + letterSymbols.indexOf(second)] = 1
})
triples.split(',').forEach((row, start) => {
  for (const third of row) isTriple[start * 26 + letterSymbols.indexOf(third) - firstLowercase] = 1
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
