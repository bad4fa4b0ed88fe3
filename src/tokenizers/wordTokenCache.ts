import type { Tokens } from '../domain/entry.ts'
import { codeAt, isLowercase, isUppercase, isWordBoundary } from './asciiPieces.ts'

/*
 * A word of up to 12 ASCII letters packs into two 32-bit numbers:
 *
 *   low    bits 0–29   last six letters, five bits each (a = 1 … z = 26)
 *          bit  30     a space precedes the word
 *          bit  31     the first letter is uppercase
 *   high   bits 0–29   first six letters, if there are more than six
 *          bits 30–31  token count, 1–3 (only in the table; 0 marks an empty slot)
 *
 * The table is a 4-way set-associative cache: 16,384 sets of four (low, high) pairs, most recently used first. A set is
 * 32 bytes, half a CPU cache line.
 *
 * Gain in counting throughput: 1.5 times on LoCoMo (short chat messages), 2.1 times on BEAM (long Markdown answers).
 */
const maxLetters = 12
const letterMask = 0x3fffffff
const spaceFlag = 1 << 30
const capitalFlag = 1 << 31
const maxCachedTokens = 3
const setCount = 16_384
const setWidth = 8
const space = 32

/** Words read ahead before the first table lookup. */
const batchSize = 64
/**
 * Fields of a batch record. `size` holds the length in bits 0–3 and the token count above; `mismatch` is 0 on a hit in
 * the first slot.
 */
const [low, high, size, mismatch, fieldCount] = [0, 1, 2, 3, 4]
const lengthMask = 15

/**
 * Caches token counts of words of up to 12 ASCII letters, all lowercase or capitalised, with or without a leading
 * space.
 */
export class WordTokenCache {
  readonly #table = new Int32Array(setCount * setWidth)
  readonly #batch = new Int32Array(batchSize * fieldCount)
  readonly #countPiece: (text: string, at: number, end: number) => Tokens
  /** Position after the last word that `count` included. */
  end = 0

  /** `countPiece` counts the words that are not cached. */
  constructor(countPiece: (text: string, at: number, end: number) => Tokens) {
    this.#countPiece = countPiece
  }

  /** Counts consecutive words from `from` until `to`, a piece that is not a plain word, or `maxTokens`. Sets `end`. */
  count(text: string, from: number, to: number, maxTokens: Tokens): Tokens {
    const batch = this.#batch
    const batchEnd = this.#readBatch(text, from, to)
    this.#probeFirstSlots(batchEnd)
    let total = 0
    let at = from
    for (let word = 0; word < batchEnd && total < maxTokens; word += fieldCount) {
      const packed = batch[word + size] as number
      const next = at + (packed & lengthMask)
      total +=
        batch[word + mismatch] === 0
          ? packed >> 4
          : this.#lookUp(word) || this.#insert(word, this.#countPiece(text, at, next))
      at = next
    }
    this.end = at
    return total
  }

  /** Packs words into the batch and returns the end of the filled part. */
  #readBatch(text: string, from: number, to: number): number {
    const batch = this.#batch
    let word = 0
    let code = codeAt(text, from)
    for (let at = from; at < to && word < batch.length; word += fieldCount) {
      const hasSpace = code === space
      const start = hasSpace ? at + 1 : at
      let end = start
      if (hasSpace) code = codeAt(text, end)
      let flags = hasSpace ? spaceFlag : 0
      let lowLetters = 0
      let highLetters = 0
      if (isUppercase(code)) {
        flags |= capitalFlag
        lowLetters = code - 64
        code = codeAt(text, ++end)
      }
      for (; isLowercase(code); code = codeAt(text, ++end)) {
        highLetters = (highLetters << 5) | (lowLetters >>> 25)
        lowLetters = ((lowLetters << 5) & letterMask) | (code - 96)
      }
      if (end === start || end > start + maxLetters || !isWordBoundary(code)) break
      batch[word + low] = lowLetters | flags
      batch[word + high] = highLetters
      batch[word + size] = end - at
      at = end
    }
    return word
  }

  /**
   * Compares each word with the first slot of its set. Branch-free, so that the CPU overlaps the cache misses of the
   * whole batch.
   */
  #probeFirstSlots(batchEnd: number): void {
    const batch = this.#batch
    const table = this.#table
    for (let word = 0; word < batchEnd; word += fieldCount) {
      const wordLow = batch[word + low] as number
      const wordHigh = batch[word + high] as number
      const first = setOffset(wordLow, wordHigh)
      const slotHigh = table[first + 1] as number
      batch[word + mismatch] = ((table[first] as number) ^ wordLow) | ((slotHigh & letterMask) ^ wordHigh)
      batch[word + size] = (batch[word + size] as number) | ((slotHigh >>> 30) << 4)
    }
  }

  /** Returns the cached token count, or 0. */
  #lookUp(word: number): Tokens {
    const table = this.#table
    const wordLow = this.#batch[word + low] as number
    const wordHigh = this.#batch[word + high] as number
    const first = setOffset(wordLow, wordHigh)
    for (let slot = first; slot < first + setWidth; slot += 2) {
      const slotHigh = table[slot + 1] as number
      if (table[slot] !== wordLow || (slotHigh & letterMask) !== wordHigh) continue
      if (slot > first) this.#moveToFront(first, slot, wordLow, slotHigh)
      return slotHigh >>> 30
    }
    return 0
  }

  #insert(word: number, tokens: Tokens): Tokens {
    const wordLow = this.#batch[word + low] as number
    const wordHigh = this.#batch[word + high] as number
    const first = setOffset(wordLow, wordHigh)
    if (tokens <= maxCachedTokens) this.#moveToFront(first, first + setWidth - 2, wordLow, wordHigh | (tokens << 30))
    return tokens
  }

  /** Writes the pair into the first slot and shifts the slots before `slot` back by one. */
  #moveToFront(first: number, slot: number, wordLow: number, wordHigh: number): void {
    const table = this.#table
    for (let at = slot; at > first; at -= 2) {
      table[at] = table[at - 2] as number
      table[at + 1] = table[at - 1] as number
    }
    table[first] = wordLow
    table[first + 1] = wordHigh
  }
}

const setOffset = (wordLow: number, wordHigh: number): number =>
  setWidth * (Math.imul(wordLow ^ Math.imul(wordHigh, 0x9e3779b1), 0x85ebca6b) >>> 18)
