import type { Tokens } from '../domain/entry.ts'

/**
 * What was just counted, so that it need not be counted again at once. Each text has one slot, until another comes there:
 * it is chosen by a few letters, because to read the whole text would take as long as it may save.
 */
export class Recent {
  readonly #texts: string[]
  readonly #tokens: Tokens[]

  /** Holds so many texts, a power of two. */
  constructor(slots: number) {
    this.#texts = Array.from({ length: slots }, () => '')
    this.#tokens = Array.from({ length: slots }, () => 0)
  }

  /** The tokens of a text, which has one letter or more; counted if they are not at hand. */
  of(text: string, count: () => Tokens): Tokens {
    const slot = this.#slotOf(text)
    if (this.#texts[slot] !== text) {
      this.#tokens[slot] = count()
      this.#texts[slot] = text
    }
    return this.#tokens[slot] as Tokens
  }

  #slotOf(text: string): number {
    const { length } = text
    const letters = text.charCodeAt(length - 1) * 31 + text.charCodeAt(length >> 1) * 7 + text.charCodeAt(length >> 2)
    return (Math.imul(letters * 31 + length, 0x9e3779b1) >>> 16) & (this.#texts.length - 1)
  }
}
