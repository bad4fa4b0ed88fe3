import type { Tokens } from '../domain/entry.ts'
import { codeAt, endsWord, isSmall } from './plain.ts'

const space = 32
/** A word is two numbers, of six letters with five bits each. Beside them the first tells of a space before the word, the second its tokens. */
const most = 12
const letters = 0x3fffffff
const spaced = 1 << 30
const mostTokens = 3
/** Four words have a set to themselves, the last one used in front: it is half a line of a processor's cache, which is all that has to be read. */
const sets = 16_384
const width = 8
/** So many words are read before the first of them is looked up. */
const ahead = 64
/** What is noted of a word: its two numbers, its length and, as soon as it was looked for, its tokens above it, and whether another was in front of its set. */
const [first, rest, size, differs, fields] = [0, 1, 2, 3, 4]
const lengths = 15

/**
 * The tokens of words of up to twelve small letters, with a space before them or not, of which most texts are made. They are
 * found by their letters without a copy of them, and forgotten when others need their place.
 */
export class Words {
  readonly #table = new Int32Array(sets * width)
  readonly #notes = new Int32Array(ahead * fields)
  readonly #count: (text: string, at: number, end: number) => Tokens
  /** Where the words end that were counted last. */
  reached = 0

  /** Counts what is not known with this. */
  constructor(count: (text: string, at: number, end: number) => Tokens) {
    this.#count = count
  }

  /** The tokens of the words that stand in a row here, up to a place or until there are enough of them; none of anything else. */
  count(text: string, from: number, to: number, enough: Tokens): Tokens {
    const notes = this.#notes
    const end = this.#read(text, from, to)
    this.#look(end)
    let total = 0
    let at = from
    for (let word = 0; word < end && total < enough; word += fields) {
      const noted = notes[word + size] as number
      const next = at + (noted & lengths)
      total +=
        notes[word + differs] === 0 ? noted >> 4 : this.#known(word) || this.#learnt(word, this.#count(text, at, next))
      at = next
    }
    this.reached = at
    return total
  }

  /** Notes the words, and tells where the notes end. */
  #read(text: string, from: number, to: number): number {
    const notes = this.#notes
    let word = 0
    let code = codeAt(text, from)
    for (let at = from; at < to && word < notes.length; word += fields) {
      const isSpaced = code === space
      const start = isSpaced ? at + 1 : at
      let end = start
      if (isSpaced) code = codeAt(text, end)
      let one = 0
      let two = 0
      for (; isSmall(code); code = codeAt(text, ++end)) {
        two = (two << 5) | (one >>> 25)
        one = ((one << 5) & letters) | (code - 96)
      }
      if (end === start || end > start + most || !endsWord(code)) break
      notes[word + first] = isSpaced ? one | spaced : one
      notes[word + rest] = two
      notes[word + size] = end - at
      at = end
    }
    return word
  }

  /**
   * Looks at what is in front of each set, without a choice on the way, so that the processor fetches all of them at once:
   * between two texts they leave its cache.
   */
  #look(end: number): void {
    const notes = this.#notes
    const table = this.#table
    for (let word = 0; word < end; word += fields) {
      const one = notes[word + first] as number
      const two = notes[word + rest] as number
      const front = setOf(one, two)
      const second = table[front + 1] as number
      notes[word + differs] = ((table[front] as number) ^ one) | ((second & letters) ^ two)
      notes[word + size] = (notes[word + size] as number) | ((second >>> 30) << 4)
    }
  }

  #known(word: number): Tokens {
    const table = this.#table
    const one = this.#notes[word + first] as number
    const two = this.#notes[word + rest] as number
    const front = setOf(one, two)
    for (let place = front; place < front + width; place += 2) {
      const known = table[place + 1] as number
      if (table[place] !== one || (known & letters) !== two) continue
      if (place > front) this.#toFront(front, place, one, known)
      return known >>> 30
    }
    return 0
  }

  #learnt(word: number, tokens: Tokens): Tokens {
    const one = this.#notes[word + first] as number
    const two = this.#notes[word + rest] as number
    const front = setOf(one, two)
    if (tokens <= mostTokens) this.#toFront(front, front + width - 2, one, two | (tokens << 30))
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

const setOf = (first: number, rest: number): number =>
  width * (Math.imul(first ^ Math.imul(rest, 0x9e3779b1), 0x85ebca6b) >>> 18)
