const gramLength = 5
/** Share of a turn's 5-grams that a context must contain. */
const presentShare = 0.9

/** Splits a text into lower-case words without punctuation. */
export const normaliseWords = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

/** Returns the word 5-grams in order; none for fewer than five words. */
export function listGrams(words: readonly string[]): string[] {
  const grams: string[] = []
  for (let at = 0; at + gramLength <= words.length; at++) grams.push(words.slice(at, at + gramLength).join(' '))
  return grams
}

/** A context prepared for comparison. */
export type ContextWords = {
  /** All words, with a space on both sides of each. */
  readonly joined: string
  readonly grams: ReadonlySet<string>
}

export function prepareContext(text: string): ContextWords {
  const words = normaliseWords(text)
  return { joined: ` ${words.join(' ')} `, grams: new Set(listGrams(words)) }
}

/** Words of a turn that a context contains. */
export type TurnCoverage = { readonly isPresent: boolean; readonly foundWords: number; readonly words: number }

/**
 * Compares a turn with a context. The turn is present if the context contains at least 90 % of its word 5-grams, or all
 * its words in a row if it has fewer than five. Words in a present 5-gram are found.
 */
export function coverTurn(turn: string, context: ContextWords): TurnCoverage {
  const words = normaliseWords(turn)
  if (words.length < gramLength) {
    const isPresent = context.joined.includes(` ${words.join(' ')} `)
    return { isPresent, foundWords: isPresent ? words.length : 0, words: words.length }
  }
  const grams = listGrams(words)
  let [foundGrams, foundWords, coveredTo] = [0, 0, 0]
  for (const [at, gram] of grams.entries()) {
    if (!context.grams.has(gram)) continue
    foundGrams++
    foundWords += at + gramLength - Math.max(at, coveredTo)
    coveredTo = at + gramLength
  }
  return { isPresent: foundGrams >= presentShare * grams.length, foundWords, words: words.length }
}
