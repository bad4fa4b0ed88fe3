import { checkOption } from '../domain/error.ts'
import { createGramExtractor, createStemExtractor, englishExtractor, type TermExtractors } from '../text/languages.ts'
import { loadAnalyzers } from './stemmers.ts'

/** `splitWords` returns characters and pairs for these scripts; other words in such texts are mostly English. */
const languagesWithoutSpaces = ['ja', 'km', 'ko', 'lo', 'my', 'th', 'zh']

/**
 * Loads the term extractors of all languages: stems in English, German, French, Spanish, Portuguese and Dutch, n-grams
 * in other languages. Synchronous after loading.
 *
 * @example
 * const detect = await createLanguageDetector()
 * const { extractorFor } = await createTermExtractors()
 * const terms = extractorFor(detect(sampleProse(texts))).extract(texts[0])
 */
export async function createTermExtractors(): Promise<TermExtractors> {
  const analyzers = await loadAnalyzers()
  const extractors = new Map(
    [englishExtractor, ...analyzers.map(createStemExtractor)].map((extractor) => [extractor.language, extractor]),
  )
  for (const language of languagesWithoutSpaces) extractors.set(language, englishExtractor)
  return {
    extractorFor(language = 'en') {
      const known = extractors.get(language)
      if (known !== undefined) return known
      checkOption('language', language, /^[a-z]{2}$/.test(language), 'an ISO 639-1 code such as "de"')
      const created = createGramExtractor(language)
      extractors.set(language, created)
      return created
    },
  }
}
