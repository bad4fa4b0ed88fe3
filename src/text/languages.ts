import type { TermExtractor, WeightedTerm } from '../domain/ports.ts'
import { splitFencedLines } from './fences.ts'
import { extractTerms, isStopword, splitWords, stem } from './words.ts'

/** Words of one language. They are in lower case and without accents, as `splitWords` returns them. */
export type LanguageAnalyzer = {
  /** ISO 639-1 code. */
  readonly language: string
  stem(word: string): string
  isStopword(word: string): boolean
}

/** Creates an extractor that returns the stems of a text without stopwords. */
export function createStemExtractor({ language, stem, isStopword }: LanguageAnalyzer): TermExtractor {
  return {
    language,
    extract(text) {
      const terms: string[] = []
      for (const word of splitWords(text)) if (!isStopword(word)) terms.push(stem(word))
      return terms
    },
    weighWord: (word) => (isStopword(word) ? [] : [[stem(word), 1]]),
  }
}

/** Default extractor, also for texts of unknown language. */
export const englishExtractor: TermExtractor = {
  ...createStemExtractor({ language: 'en', stem, isStopword }),
  extract: extractTerms,
}

/** Opens the terms of languages without a stemmer, so that they never equal the terms of other languages. */
const gramMark = '·'
/** Marks the end of a word, and its start if n-grams begin elsewhere too. */
const boundary = '_'
/** Lengths of the n-grams at the start of a word. */
const prefixLengths = [4, 6] as const
/** Length of the n-grams anywhere in a word. */
const innerLength = 4
/** Shorter words have no n-grams. */
const minGramWordLength = 4
/** Weight of the word itself; its n-grams share the rest. */
const wholeWordWeight = 0.1
/** Weight of a word without n-grams: most are function words. */
const shortWordWeight = 0.5
/** Numbers, identifiers, very long words and letters outside the Basic Multilingual Plane match as a whole only. */
const inflectedWord = /^(?:(?![\u{10000}-\u{10ffff}])[\p{L}\p{M}]){1,32}$/u

/** Languages that inflect words at their start as well: Arabic, Hebrew, Malay, Tagalog. */
const prefixingLanguages: ReadonlySet<string> = new Set(['ar', 'he', 'ms', 'tl'])

/**
 * Creates an extractor for languages without a stemmer. Every word gives itself and n-grams, so that inflected forms of
 * a word have terms in common. N-grams at the start of the word suffice in languages that inflect words at their end.
 *
 * @example
 * createGramExtractor('pl').extract('kotami 7') // ['·kotami_', '·kota', '·kotami', '7']
 */
export function createGramExtractor(language: string): TermExtractor {
  const listGrams = prefixingLanguages.has(language) ? listInnerGrams : listPrefixes
  return {
    language,
    extract(text) {
      const terms: string[] = []
      for (const word of splitWords(text)) {
        if (!inflectedWord.test(word)) terms.push(word)
        else {
          terms.push(wholeWordTerm(word))
          if (word.length >= minGramWordLength) terms.push(...listGrams(word))
        }
      }
      return terms
    },
    weighWord(word) {
      if (!inflectedWord.test(word)) return [[word, 1]]
      if (word.length < minGramWordLength) return [[wholeWordTerm(word), shortWordWeight]]
      const grams = listGrams(word)
      const gramWeight = (1 - wholeWordWeight) / grams.length
      return [[wholeWordTerm(word), wholeWordWeight], ...grams.map((gram): WeightedTerm => [gram, gramWeight])]
    },
  }
}

const wholeWordTerm = (word: string): string => gramMark + word + boundary

const listPrefixes = (word: string): string[] =>
  prefixLengths.filter((length) => length <= word.length).map((length) => gramMark + word.slice(0, length))

function listInnerGrams(word: string): string[] {
  const bounded = boundary + word + boundary
  const count = bounded.length - innerLength + 1
  return Array.from({ length: count }, (_, start) => gramMark + bounded.slice(start, start + innerLength))
}

/**
 * Returns the terms of a query, with weights, in all languages of a scope. Stopwords of the query's own language are
 * left out in the other languages too: the German article `die` is no word of an English text.
 */
export function combinedQueryTerms(query: string, extractors: readonly TermExtractor[]): Map<string, number> {
  const words = [...new Set(splitWords(query))]
  const stopwords = findQueryStopwords(words, extractors)
  const weights = new Map<string, number>()
  for (const extractor of extractors)
    for (const word of words) {
      if (stopwords.has(word)) continue
      for (const [term, weight] of extractor.weighWord(word))
        weights.set(term, Math.max(weights.get(term) ?? 0, weight))
    }
  return weights
}

/** A query is in the language of its stopwords from this number and share on; `hat` and `die` alone may be keywords. */
const minQueryStopwords = 2
const minQueryStopwordShare = 1 / 3

/** Returns the stopwords of the language with the most of them; none if two languages have as many. */
function findQueryStopwords(words: readonly string[], extractors: readonly TermExtractor[]): ReadonlySet<string> {
  const [most = [], second = []] = extractors
    .map((extractor) => words.filter((word) => extractor.weighWord(word).length === 0))
    .sort((a, b) => b.length - a.length)
  const isCertain =
    most.length > second.length &&
    most.length >= minQueryStopwords &&
    most.length >= words.length * minQueryStopwordShare
  return new Set(isCertain ? most : [])
}

/** Characters of prose that are enough to detect the language of a session. */
const maxSampleCharacters = 2_000
/** Characters of one text that are searched for prose. */
const maxScannedCharacters = 8_000
const maxProseWordLength = 40
const proseWord = /^[\p{P}\p{S}]*[\p{L}\p{M}]+(?:['’-][\p{L}\p{M}]+)*[\p{P}\p{S}]*$/u

/** Returns the first words of a session's messages, without fenced code, identifiers and numbers. */
export function sampleProse(texts: Iterable<string>): string {
  const words: string[] = []
  let length = 0
  for (const text of texts) {
    const scanned = text.slice(0, maxScannedCharacters)
    for (const { start, end, fence } of splitFencedLines(scanned)) {
      if (fence !== 'none') continue
      for (const word of scanned.slice(start, end).split(/\s+/)) {
        if (word.length > maxProseWordLength || !proseWord.test(word)) continue
        words.push(word)
        length += word.length + 1
        if (length >= maxSampleCharacters) return words.join(' ')
      }
    }
  }
  return words.join(' ')
}

/** Share of English stopwords from which a sample is English without further detection. */
const minEnglishStopwordShare = 0.25
const minEnglishWords = 8

/** Tells whether a sample is certainly English, so that no detector has to be loaded for it. */
export function isPlainEnglish(sample: string): boolean {
  const words = splitWords(sample)
  return words.length >= minEnglishWords && words.filter(isStopword).length >= words.length * minEnglishStopwordShare
}
