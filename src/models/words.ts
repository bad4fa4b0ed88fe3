import type { Tokens } from '../domain/entry.ts'
import { endsWord } from './plain.ts'

const space = 32
/** A word is two numbers, of six letters with five bits each. Beside them the first tells of a space before the word, the second its tokens. */
const half = 6
const letters = 0x3fffffff
const spaced = 1 << 30
const mostTokens = 3
/** Four words have a set to themselves, the last one used in front: it is half a line of a processor's cache, which is all that has to be read. */
const sets = 8_192
const width = 8

/**
 * The tokens of words of up to twelve small letters, with a space before them or not, of which most texts are made. They are
 * found by their letters without a copy of them, and forgotten when others need their place.
 */
export class Words {
  readonly #table = new Int32Array(sets * width)
  readonly #count: (text: string, at: number, end: number) => Tokens

  /** Counts what is not known with this. */
  constructor(count: (text: string, at: number, end: number) => Tokens) {
    this.#count = count
  }

  /** The word that begins here: its tokens, and its length in the last four bits; zero for anything else. */
  at(text: string, at: number): number {
    const isSpaced = text.charCodeAt(at) === space
    let end = isSpaced ? at + 1 : at
    const middle = end + half
    const most = Math.min(text.length, middle + half)
    let first = 0
    let rest = 0
    for (; end < most; end++) {
      const letter = text.charCodeAt(end) - 96
      if (letter < 1 || letter > 26) break
      if (end < middle) first = (first << 5) | letter
      else rest = (rest << 5) | letter
    }
    if (first === 0 || !endsWord(text, end)) return 0
    if (isSpaced) first |= spaced
    const tokens = this.#known(first, rest) || this.#learnt(first, rest, this.#count(text, at, end))
    return (tokens << 4) | (end - at)
  }

  #known(first: number, rest: number): Tokens {
    const table = this.#table
    const front = setOf(first, rest)
    for (let place = front; place < front + width; place += 2) {
      const known = table[place + 1] as number
      if (table[place] !== first || (known & letters) !== rest) continue
      if (place > front) this.#toFront(front, place, first, known)
      return known >>> 30
    }
    return 0
  }

  #learnt(first: number, rest: number, tokens: Tokens): Tokens {
    const front = setOf(first, rest)
    if (tokens <= mostTokens) this.#toFront(front, front + width - 2, first, rest | (tokens << 30))
    return tokens
  }

  /** What was before this place moves on by one. */
  #toFront(front: number, place: number, first: number, second: number): void {
    const table = this.#table
    for (let at = place; at > front; at -= 2) {
      table[at] = table[at - 2] as number
      table[at + 1] = table[at - 1] as number
    }
    table[front] = first
    table[front + 1] = second
  }
}

const setOf = (first: number, rest: number): number => width * (Math.imul(first ^ Math.imul(rest, 0x9e3779b1), 0x85ebca6b) >>> 19)
