import type { Sentence } from '../../text/sentences.ts'
import { isStopword, splitWords } from '../../text/words.ts'
import type { TextFact } from './fields.ts'
import type { LanguageRules } from './languages/language.ts'
import { languages } from './languages/languages.ts'
import { foldText } from './phrases.ts'

const capitalised =
  /(?<![\p{L}\p{N}\p{M}_./@#:'’-])\p{Lu}[\p{L}\p{M}\p{N}]*(?:[-'’&][\p{L}\p{N}]+)*(?: (?:of |the |de |van |von |der |del |di |da |al )?\p{Lu}[\p{L}\p{M}\p{N}]*(?:[-'’&][\p{L}\p{N}]+)*){0,4}(?![\p{L}\p{N}_@/]|[.:][\p{L}\p{N}])/gu
const camelCase = /^\p{Lu}?\p{Ll}+\p{Lu}/u
/** Months, weekdays and similar words of all languages: a message may mix them. */
const commonWords = new Set(
  languages.flatMap(({ notNames }) => notNames.split('|')).map((word) => word.replace(/\\w.*$/, '')),
)
/** Text before a word that does not start a sentence. */
const midSentence = /[\p{L}\p{N},)][’'”"]?\s$/u
const maxNames = 20

/**
 * Finds names of people, places, organisations and products. A capital at the start of a sentence is no evidence unless
 * the name also occurs inside another sentence. Headings are ignored, and in languages other than English single words
 * too.
 */
export function findNames(sentences: readonly Sentence[], rules: LanguageRules): readonly TextFact[] {
  const isNameLanguage = rules.code === 'en' ? looksEnglish(sentences) : false
  const found = new Map<string, TextFact>()
  for (const { text, start } of sentences) {
    if (isHeading(text)) continue
    for (const { 0: match, index } of text.matchAll(capitalised)) {
      const { name, offset } = trimCommonWords(match)
      const position = index + offset
      const isSure =
        camelCase.test(name) || (midSentence.test(text.slice(0, position)) && (isNameLanguage || name.includes(' ')))
      if (!isSure || found.has(name) || !isName(name)) continue
      found.set(name, {
        field: 'entities',
        key: '',
        value: name,
        importance: 3,
        from: start + position,
        to: start + position + name.length,
      })
      if (found.size >= maxNames) return [...found.values()]
    }
  }
  return [...found.values()]
}

/** Removes common words at both ends and a possessive suffix. */
function trimCommonWords(match: string): { readonly name: string; readonly offset: number } {
  const words = match.split(' ')
  let first = 0
  while (first < words.length && isCommonWord(words[first] ?? '')) first++
  let last = words.length
  while (last > first && isCommonWord(words[last - 1] ?? '')) last--
  const offset = words.slice(0, first).reduce((sum, word) => sum + word.length + 1, 0)
  return {
    name: words
      .slice(first, last)
      .join(' ')
      .replace(/['’]s?$/, ''),
    offset: Math.min(offset, match.length),
  }
}

const isCommonWord = (word: string): boolean =>
  commonWords.has(foldText(word.toLowerCase()).replace(/days$/, 'day').replace(/\.$/, '')) ||
  isStopword(word.toLowerCase().replace('’', "'")) ||
  word.length < 2

/** Excludes words in capitals: they are emphasis or technical terms. */
const isName = (name: string): boolean => name.length > 1 && /\p{Ll}/u.test(name)

function isHeading(text: string): boolean {
  const words = text.split(/\s+/).filter((word) => /^\p{L}{4}/u.test(word))
  return /^\s*#/.test(text) || (words.length > 2 && words.every((word) => /^\p{Lu}/u.test(word)))
}

function looksEnglish(sentences: readonly Sentence[]): boolean {
  const words = sentences.slice(0, 20).flatMap(({ text }) => splitWords(text.slice(0, 400)))
  return words.filter(isStopword).length * 7 >= words.length
}
