import { german } from './de.ts'
import { english } from './en.ts'
import { spanish } from './es.ts'
import { french } from './fr.ts'
import type { LanguageRules } from './language.ts'
import { dutch } from './nl.ts'
import { portuguese } from './pt.ts'

/** All languages with rules; the first one is the default. */
export const languages: readonly LanguageRules[] = [english, german, french, spanish, portuguese, dutch]

export { english }

const markersByLanguage = languages.map((rules) => [rules, new Set(rules.markers.split(' '))] as const)

/** Characters of a text that are enough to recognise its language. */
const maxSampleChars = 2_000
const minWords = 2

/**
 * Recognises the language of a text by its most frequent words. Returns all languages that are equally likely, the
 * expected one first.
 *
 * @example
 * likelyLanguages('ich wohne in bern', english) // [german]
 */
export function likelyLanguages(folded: string, expected: LanguageRules): readonly LanguageRules[] {
  const words =
    folded
      .slice(0, maxSampleChars)
      .toLowerCase()
      .match(/[a-z]+(?:'t|'m|'ve|'d|'s)?/g) ?? []
  if (words.length < minWords) return [expected]
  const counts = markersByLanguage.map(([rules, markers]) => ({
    rules,
    count: words.filter((word) => markers.has(word)).length,
  }))
  const most = Math.max(...counts.map(({ count }) => count))
  const likely = counts.filter(({ count }) => count === most).map(({ rules }) => rules)
  return likely.includes(expected) ? [expected, ...likely.filter((rules) => rules !== expected)] : likely
}

/** True for a frequent word of a language. */
export const isMarker = ({ code }: LanguageRules, word: string): boolean =>
  markersByLanguage.find(([rules]) => rules.code === code)?.[1].has(word) === true
