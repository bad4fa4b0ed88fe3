import type { Millis } from '../domain/entry.ts'
import type { TermExtractor } from '../domain/ports.ts'
import { combinedQueryTerms } from '../text/languages.ts'
import { splitWords } from '../text/words.ts'

/** Only the beginning of a longer query is used. */
export const maxQueryCharacters = 4_000
/** Weight of a month or year in a query, relative to a word. */
const dateTermWeight = 0.8

/** Returns the terms of a query, in the languages of the searched sessions, with their weights. */
export function queryTerms(query: string, extractors: readonly TermExtractor[]): Map<string, number> {
  const text = query.slice(0, maxQueryCharacters)
  const terms = combinedQueryTerms(text, extractors)
  for (const word of splitWords(text)) if (isDateWord(word)) terms.set(`date:${word}`, dateTermWeight)
  return terms
}

export const monthNames = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
] as const
const monthWords = monthNames.map((month) => month.toLowerCase())
const isDateWord = (word: string): boolean => monthWords.includes(word) || /^(19|20)[0-9]{2}$/.test(word)

/** Returns month and year of a message as index terms (UTC). */
export function dateTerms(at: Millis): string[] {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? [] : [`date:${monthWords[date.getUTCMonth()]}`, `date:${date.getUTCFullYear()}`]
}
