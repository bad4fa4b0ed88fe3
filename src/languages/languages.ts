import { checkOption } from '../domain/error.ts'
import type { Languages } from '../domain/ports.ts'
import { createGramExtractor, createStemExtractor, englishExtractor } from '../text/languages.ts'
import { detectLanguage } from './detect.ts'
import { loadAnalyzers } from './stemmers.ts'

/** `splitWords` returns characters and pairs for these scripts; other words in such texts are mostly English. */
const languagesWithoutSpaces = ['ja', 'km', 'ko', 'lo', 'my', 'th', 'zh']

let loaded: Languages | undefined

/** Returns the languages that search knows, loaded with the first call. */
export function languages(): Languages {
  loaded ??= { detect: detectLanguage, ...createTermExtractors() }
  return loaded
}

/**
 * Creates the term extractors of all languages: stems in English, German, French, Spanish, Portuguese and Dutch,
 * n-grams in other languages.
 *
 * @example
 * const terms = createTermExtractors().extractorFor(detectLanguage(sampleProse(texts))).extract(texts[0])
 */
export function createTermExtractors(): Pick<Languages, 'extractorFor'> {
  const analyzers = loadAnalyzers()
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
