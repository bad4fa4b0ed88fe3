import type { TermExtractor } from '../../src/domain/ports.ts'
import { combinedQueryTerms } from '../../src/text/languages.ts'
import type { SentenceSet } from './sentences.ts'

/**
 * Counts the questions whose statement has more terms in common with them, by weight, than every distractor. A tie is a
 * miss.
 */
export function countHits(
  { pairs, distractors }: SentenceSet,
  document: TermExtractor,
  query: readonly TermExtractor[],
): number {
  const others = distractors.map((text) => new Set(document.extract(text)))
  return pairs.filter(([question, statement]) => {
    const weights = combinedQueryTerms(question, query)
    const score = (terms: ReadonlySet<string>): number =>
      [...weights].reduce((sum, [term, weight]) => sum + (terms.has(term) ? weight : 0), 0)
    const own = score(new Set(document.extract(statement)))
    return others.every((terms) => score(terms) < own)
  }).length
}
