import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import type { LanguageDetector, Languages } from '../../src/domain/ports.ts'
import { detectLanguage } from '../../src/languages/detect.ts'
import { createTermExtractors } from '../../src/languages/languages.ts'
import { combinedQueryTerms, englishExtractor, sampleProse } from '../../src/text/languages.ts'
import { hostileText, measureCpu, megabytes } from '../text/hostileTexts.ts'

const codes = ['en', 'de', 'es', 'fr', 'nl', 'pt', 'pl', 'ar', 'ja']
let languages: Pick<Languages, 'extractorFor'>
let detect: LanguageDetector
beforeAll(async () => {
  languages = createTermExtractors()
  detect = detectLanguage
})

describe('any text', () => {
  it('is detected, extracted and weighed without an error, with the same terms every time', () =>
    fc.assert(
      fc.property(hostileText, fc.constantFrom(...codes), (text, code) => {
        const extractor = languages.extractorFor(code)
        const terms = extractor.extract(text)
        expect(extractor.extract(text)).toEqual(terms)
        expect(terms.filter((term) => term === '' || /\s/.test(term))).toEqual([])
        const weights = combinedQueryTerms(text, [englishExtractor, extractor])
        for (const weight of weights.values()) expect(weight > 0 && weight <= 1).toBe(true)
        expect(detect(sampleProse([text])) ?? 'en').toMatch(/^[a-z]{2}$/)
      }),
    ))
  it('as a query in one language › has the terms that a document has, except stopwords', () =>
    fc.assert(
      fc.property(hostileText, fc.constantFrom(...codes), (text, code) => {
        const extractor = languages.extractorFor(code)
        expect(new Set(combinedQueryTerms(text, [extractor]).keys())).toEqual(new Set(extractor.extract(text)))
      }),
    ))
})

describe('a megabyte', () => {
  /** Largest growth of the CPU time when the text grows by a factor of 8: 8 if linear, 64 if quadratic. */
  const maxGrowth = 27
  /** CPU time below which growth is not judged. */
  const minMeasuredMs = 10
  const attempts = 3

  const isSlow = (run: (text: string) => unknown, text: string): boolean => {
    const cost = (length: number): number => measureCpu(() => run(text.slice(0, length)))
    // Neither other processes nor a garbage collection decide: a measurement that looks bad is repeated.
    for (let attempt = 0; attempt < attempts; attempt++)
      if (cost(text.length) <= maxGrowth * Math.max(minMeasuredMs, cost(text.length / 8))) return false
    return true
  }

  it.each(Object.entries(megabytes))('of %s › is processed in linear time', (_, text) => {
    const extractors = codes.map((code) => languages.extractorFor(code))
    const runs: readonly (readonly [name: string, run: (text: string) => unknown, length: number])[] = [
      ...extractors.map(({ language, extract }) => [language, extract, text.length / 4] as const),
      ['sample', (part) => sampleProse([part]), text.length],
      ['detect', detect, text.length / 4],
      ['query', (part) => combinedQueryTerms(part, extractors), text.length / 16],
    ]
    expect(runs.filter(([, run, length]) => isSlow(run, text.slice(0, length))).map(([name]) => name)).toEqual([])
  })
  it.each(['one letter', 'combining marks'])('of %s › is extracted within a second in every language', (name) => {
    const text = megabytes[name] as string
    const slow = codes.filter((code) => measureCpu(() => languages.extractorFor(code).extract(text)) > 1_000)
    expect(slow).toEqual([])
  })
})
