/** How much the words count where words and meaning are both known; measured on dialogues with a sentence encoder. */
const byWords = 0.6

/** What two rankings say of one candidate; 0 where one of them does not know it. */
export type Both = { readonly words: number; readonly meaning: number }

/**
 * One score from two that have nothing in common: each is stretched to 0…1 over the candidates, then they are mixed.
 * Ranks are not used: a weak ranking would count as much as a sure one.
 *
 * @example
 * mixed([{ words: 8, meaning: 0.1 }, { words: 0, meaning: 0.9 }]) // [0.6, 0.4]
 */
export function mixed(candidates: readonly Both[]): number[] {
  const words = stretched(candidates.map((one) => one.words))
  const meaning = stretched(candidates.map((one) => one.meaning))
  return candidates.map((_, at) => byWords * (words[at] as number) + (1 - byWords) * (meaning[at] as number))
}

function stretched(values: readonly number[]): number[] {
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const value of values) {
    least = Math.min(least, value)
    most = Math.max(most, value)
  }
  return values.map((value) => (most > least ? (value - least) / (most - least) : most > 0 ? 1 : 0))
}
