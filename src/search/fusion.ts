/** Weight of the lexical score, measured on dialogues with a sentence encoder. */
const lexicalWeight = 0.6

/** Scores of one candidate from both rankings; 0 where a ranking did not return it. */
export type ScorePair = { readonly lexical: number; readonly semantic: number }

/**
 * Fuses two rankings by min-max normalisation and a convex combination. Reciprocal rank fusion is not used: it gives a weak
 * ranking the same influence as a strong one.
 *
 * @example
 * fuseScores([{ lexical: 8, semantic: 0.1 }, { lexical: 0, semantic: 0.9 }]) // [0.6, 0.4]
 */
export function fuseScores(candidates: readonly ScorePair[]): number[] {
  const lexical = normalize(candidates.map((candidate) => candidate.lexical))
  const semantic = normalize(candidates.map((candidate) => candidate.semantic))
  return candidates.map(
    (_, at) => lexicalWeight * (lexical[at] as number) + (1 - lexicalWeight) * (semantic[at] as number),
  )
}

function normalize(values: readonly number[]): number[] {
  let [min, max] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const value of values) {
    min = Math.min(min, value)
    max = Math.max(max, value)
  }
  return values.map((value) => (max > min ? (value - min) / (max - min) : max > 0 ? 1 : 0))
}
