import type { LanguageDetector } from '../domain/ports.ts'
import { isStopword, splitWords } from '../text/words.ts'
import { stopwordsByLanguage } from './stopwords.ts'

/** Shorter samples leave the language open. */
const minWords = 8
/** Share of stopwords that running text of a language has at least, and that text of other languages has at most. */
const minStopwordShare = 0.25
const maxForeignShare = 0.12
/** With fewer words, a text without stopwords may be a list of names. */
const minForeignWords = 16
/** Share of words with letters beyond ASCII: English notes and lists have no stopwords either. */
const minForeignLetterShare = 0.03
/** Code for languages that have no stemmer here. */
const otherLanguage = 'xx'

const isStopwordOf: Readonly<Record<string, (word: string) => boolean>> = {
  en: isStopword,
  ...Object.fromEntries(
    Object.entries(stopwordsByLanguage).map(([language, words]) => [language, (word: string) => words.has(word)]),
  ),
}

/** Languages that are recognised by their script. Those written without spaces are split alike in every language. */
const languagesByScript = [
  ['ar', /\p{Script=Arabic}/u],
  ['he', /\p{Script=Hebrew}/u],
  ['en', /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]/u],
] as const

/**
 * Detects the language of a sample of prose by the share of its stopwords: English, German, French, Spanish, Portuguese
 * or Dutch; Arabic and Hebrew by their script; any other language as `xx`. Undefined for short or mixed samples.
 *
 * @example
 * detectLanguage('Ich habe gestern mit meiner Schwester über den Urlaub in Italien gesprochen') // 'de'
 */
export const detectLanguage: LanguageDetector = (sample) => {
  const words = splitWords(sample)
  if (words.length < minWords) return undefined
  for (const [language, script] of languagesByScript)
    if (words.filter((word) => script.test(word)).length * 2 > words.length) return language
  const shares = Object.entries(isStopwordOf)
    .map(([language, isOwn]) => ({ language, share: words.filter(isOwn).length / words.length }))
    .sort((a, b) => b.share - a.share)
  const [best, second] = shares as [(typeof shares)[0], (typeof shares)[0]]
  if (best.share >= minStopwordShare && best.share > second.share) return best.language
  const foreignLetters = sample.match(/[^\P{L}a-z]/giu)?.length ?? 0
  const isForeign =
    best.share <= maxForeignShare &&
    words.length >= minForeignWords &&
    foreignLetters >= minForeignLetterShare * words.length
  return isForeign ? otherLanguage : undefined
}
