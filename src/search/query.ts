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
  /** Asks for the present state, which later messages know better. */
  readonly asksLatest: boolean
  /** Asks for everything of a kind, which is scattered over the conversation. */
  readonly asksAll: boolean
  readonly isNegated: boolean
}

const timeQuestion = /\b(?:when|how long|since when|(?:what|which) (?:date|day|month|year|time))\b/i
const numberQuestion = /\bhow (?:many|much|often|old|long|far|tall|big)\b/i
const latestQuestion =
  /\b(?:latest|newest|most recent(?:ly)?|current(?:ly)?|nowadays|these days|so far|right now|at the moment|up[- ]to[- ]date)\b/i
const allQuestion = /\b(?:all|every|each|list|which ones|how many (?:different|times))\b/i
/** A plain `not` says little: `it is not working`. */
const negatedQuestion = /\b(?:never|no longer|without|avoid|dislike|hate)\b/i

/** In a longer text, a negation is seldom what the question is about. */
const maxNegatedCharacters = 120

export function parseQuery(query: string, extractors: readonly TermExtractor[] = [englishExtractor]): ParsedQuery {
  const text = query.slice(0, maxQueryCharacters)
  return {
    terms: queryTerms(text, extractors),
    stems: new Set(splitWords(text).map(stem)),
    asksTime: timeQuestion.test(text),
    asksNumber: numberQuestion.test(text),
    asksLatest: latestQuestion.test(text),
    asksAll: allQuestion.test(text),
    isNegated: text.length <= maxNegatedCharacters && negatedQuestion.test(text),
  }
}

/** Separates two questions in one sentence or two. */
const partBoundary = /\?\s+|;\s+|(?:,|(?<!\s))\s+(?:and|or|as well as|versus|vs\.?|compared (?:to|with))\s+/i
/** Each part is a question of its own: `Where is the key and who has it?` */
const questionStart =
  /^\s*(?:what|when|where|who|whom|whose|which|why|how|did|do|does|is|are|was|were|has|have|can|could|would|will)\b/i
/** A part with fewer terms says too little. */
const minPartTerms = 2

/** Returns the parts of a question that asks two things; none if it asks one. */
export function splitQuestion(query: string, extractors?: readonly TermExtractor[]): readonly ParsedQuery[] {
  const parts = query.slice(0, maxQueryCharacters).split(partBoundary)
  if (parts.length !== 2 || !parts.every((part) => questionStart.test(part))) return []
  const parsed = parts.map((part) => parseQuery(part, extractors))
  return parsed.every(({ terms }) => terms.size >= minPartTerms) ? parsed : []
}
