import { copyText } from '../domain/copyText.ts'
import type { Tokens } from '../domain/entry.ts'

/** Characters of long texts whose counts are kept besides the newest, and for how long. */
const maxLongCharacters = 2_000_000
const keepMs = 1_000

/** Counts of long texts, all forgotten together: no text stays in memory longer than the requests that counted it. */
export class LongTextCounts {
  readonly #tokens = new Map<string, Tokens>()
  #characters = 0

  getOrCount(text: string, count: () => Tokens): Tokens {
    const known = this.#tokens.get(text)
    if (known !== undefined) return known
    if (this.#tokens.size === 0) {
      const timer: unknown = setTimeout(() => this.#clear(), keepMs)
      // In Node, a timer must not keep the process running; browsers have numbers for timers.
      if (typeof timer === 'object') (timer as { unref(): void }).unref()
    }
    const tokens = count()
    for (const oldest of this.#tokens.keys()) {
      if (this.#characters + text.length <= maxLongCharacters) break
      this.#tokens.delete(oldest)
      this.#characters -= oldest.length
    }
    this.#tokens.set(text, tokens)
    this.#characters += text.length
    return tokens
  }

  #clear(): void {
    this.#tokens.clear()
    this.#characters = 0
  }
}

/**
 * Direct-mapped cache of token counts. The slot is chosen by a few characters, because hashing a whole text would cost
 * what it saves.
 */
export class RecentCounts {
  readonly #texts: string[]
  readonly #tokens: Tokens[]

  /** `slots` must be a power of two. */
  constructor(slots: number) {
    this.#texts = Array.from({ length: slots }, () => '')
    this.#tokens = Array.from({ length: slots }, () => 0)
  }

  /** `text` must not be empty. */
  getOrCount(text: string, count: () => Tokens): Tokens {
    const slot = this.#slotOf(text)
    if (this.#texts[slot] !== text) {
      this.#tokens[slot] = count()
      this.#texts[slot] = copyText(text)
    }
    return this.#tokens[slot] as Tokens
  }

  #slotOf(text: string): number {
    const { length } = text
    const sample = text.charCodeAt(length - 1) * 31 + text.charCodeAt(length >> 1) * 7 + text.charCodeAt(length >> 2)
    return (Math.imul(sample * 31 + length, 0x9e3779b1) >>> 16) & (this.#texts.length - 1)
  }
}
