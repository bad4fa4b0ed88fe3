import type { TermExtractor } from '../domain/ports.ts'
import { englishExtractor } from '../text/languages.ts'
import { splitWords, stem } from '../text/words.ts'
import { maxQueryCharacters, queryTerms } from './terms.ts'

/** A question as the ranking sees it. */
export type ParsedQuery = {
  /** Search terms with their weights. */
  readonly terms: ReadonlyMap<string, number>
  /** Stems of all its words, stopwords included. */
  readonly stems: ReadonlySet<string>
  readonly asksTime: boolean
  readonly asksNumber: boolean
}

const timeQuestion = /\b(?:when|how long|since when|(?:what|which) (?:date|day|month|year|time))\b/i
const numberQuestion = /\bhow (?:many|much|often|old|long|far|tall|big)\b/i

export function parseQuery(query: string, extractors: readonly TermExtractor[] = [englishExtractor]): ParsedQuery {
  const text = query.slice(0, maxQueryCharacters)
  return {
    terms: queryTerms(text, extractors),
    stems: new Set(splitWords(text).map(stem)),
    asksTime: timeQuestion.test(text),
    asksNumber: numberQuestion.test(text),
  }
}
