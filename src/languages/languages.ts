import { checkOption } from '../domain/error.ts'
import { createGramExtractor, createStemExtractor, englishExtractor, type LanguageSupport } from '../text/languages.ts'
import { loadDetector } from './detect.ts'
import { loadAnalyzers } from './stemmers.ts'

/** `splitWords` returns characters and pairs for these scripts; other words in such texts are mostly English. */
const languagesWithoutSpaces = ['ja', 'km', 'ko', 'lo', 'my', 'th', 'zh']

/**
 * Loads language detection and the term extractors of all languages: stems in English, German, French, Spanish,
 * Portuguese and Dutch, n-grams in other languages. Synchronous after loading.
 *
 * @example
 * const languages = await createTermExtractors()
 * const language = languages.detect(sampleProse(texts))
 * const terms = languages.extractorFor(language).extract(text)
 */
export async function createTermExtractors(): Promise<LanguageSupport> {
  const [detect, analyzers] = await Promise.all([loadDetector(), loadAnalyzers()])
  const extractors = new Map(
    [englishExtractor, ...analyzers.map(createStemExtractor)].map((each) => [each.language, each]),
  )
  for (const language of languagesWithoutSpaces) extractors.set(language, englishExtractor)
  return {
    detect,
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
