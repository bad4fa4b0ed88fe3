import { isBlank, type Millis } from '../domain/entry.ts'
import { termsOf, wordsOf } from '../text/words.ts'

/** A question longer than this is known by its beginning. */
export const longestQuery = 4_000
/** What a month or year in a question counts against a word. */
const dateWeight = 0.8

/** What a text is found by; nothing, if it cannot be shown. */
export const searchTerms = (content: string): readonly string[] => (isBlank(content) ? [] : termsOf(content))

/** What a question looks for, with what each word counts. */
export function queryTerms(query: string): Map<string, number> {
  const text = query.slice(0, longestQuery)
  const terms = new Map<string, number>()
  for (const term of termsOf(text)) terms.set(term, 1)
  for (const word of wordsOf(text)) if (isDateWord(word)) terms.set(`date:${word}`, dateWeight)
  return terms
}

/** By their names, the first one first. */
export const months = [
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
const monthWords = months.map((month) => month.toLowerCase())
const isDateWord = (word: string): boolean => monthWords.includes(word) || /^(19|20)[0-9]{2}$/.test(word)

/** When a message was said, as words a question may use. */
export function dateTerms(at: Millis): string[] {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? [] : [`date:${monthWords[date.getUTCMonth()]}`, `date:${date.getUTCFullYear()}`]
}
