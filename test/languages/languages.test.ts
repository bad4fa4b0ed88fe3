import { beforeAll, describe, expect, it } from 'vitest'
import type { LanguageDetector, Languages } from '../../src/domain/ports.ts'
import { detectLanguage } from '../../src/languages/detect.ts'
import { createTermExtractors } from '../../src/languages/languages.ts'
import { combinedQueryTerms, englishExtractor, isPlainEnglish, sampleProse } from '../../src/text/languages.ts'
import { countHits } from './evaluation.ts'
import { laterPairs, type SentenceSet, sentenceSets } from './sentences.ts'

let languages: Pick<Languages, 'extractorFor'>
let detect: LanguageDetector
beforeAll(async () => {
  languages = createTermExtractors()
  detect = detectLanguage
})

const allSentences = ({ pairs, distractors }: SentenceSet): string[] => [...pairs.flat(), ...distractors]

const english = [
  'Could you remind me which restaurant we booked for the anniversary?',
  'My grandmother moved to a small village near the coast last year.',
  'Deploy the staging cluster after the nightly build has passed, please.',
  'Yesterday I bought two tickets for the jazz concert in May.',
]

describe('detect', () => {
  it.each(sentenceSets)('given a conversation in $language › returns it, or xx without a stemmer', (set) => {
    const expected = ['pl', 'tr'].includes(set.language) ? 'xx' : set.language
    expect(detect(sampleProse(allSentences(set)))).toBe(expected)
  })
  it('given English › returns en, and undefined for notes without stopwords', () => {
    for (const text of english) expect(detect(text), text).toBe('en')
    expect(detect('walrus number four eats clams '.repeat(6))).toBeUndefined()
  })
  it.each([
    [
      'xx',
      'Вчера мы долго говорили о новой квартире. Потом пошли гулять в парк, где встретили старых друзей из школы.',
    ],
    [
      'xx',
      'Eilen puhuimme pitkään uudesta asunnosta ja muutosta kaupunkiin. Sitten menimme puistoon, missä tapasimme vanhoja ystäviä koulusta ja joimme kahvia.',
    ],
    ['ar', 'تحدثنا أمس طويلا عن الشقة الجديدة وعن الانتقال إلى المدينة'],
    ['en', '昨日、私たちは新しいアパートと引っ越しについて長い間話しました。とても楽しかったです。'],
  ])('given another script or language › returns %s', (language, text) => expect(detect(text)).toBe(language))
  it.each(['', '   ', 'ok', 'Danke schön!', 'Bonjour à tous', '42 + 17 = 59', '👍👍👍'])(
    'given %j › returns undefined',
    (text) => expect(detect(text)).toBeUndefined(),
  )
  it('given two languages in equal parts › returns undefined', () => {
    const half = (language: string) =>
      allSentences(sentenceSets.find((set) => set.language === language) as SentenceSet)
    expect(detect(`${half('de').join(' ').slice(0, 900)} ${half('pl').join(' ').slice(0, 900)}`)).toBeUndefined()
  })
})

describe('extractorFor', () => {
  it('given an unknown or missing language › returns the English extractor', () =>
    expect(languages.extractorFor(undefined)).toBe(englishExtractor))
  it.each(['ja', 'zh', 'ko', 'th'])('given %s, written without spaces › returns the English extractor', (language) =>
    expect(languages.extractorFor(language)).toBe(englishExtractor),
  )
  it('given a language with a stemmer › returns stems', () =>
    expect(languages.extractorFor('de').extract('Die Häuser und das Haus')).toEqual(['haus', 'haus']))
  it('given a language without a stemmer › returns n-grams', () => {
    const { language, extract } = languages.extractorFor('pl')
    expect(language).toBe('pl')
    expect(extract('książki')).toEqual(['·ksiazki_', '·ksia', '·ksiazk'])
    expect(languages.extractorFor('pl').extract).toBe(extract)
  })
  it.each(['english', 'DE', '', '__proto__'])('given %j › throws an error that names the format', (language) =>
    expect(() => languages.extractorFor(language)).toThrow('it must be an ISO 639-1 code such as "de"'),
  )
})

describe('hit@1 by term overlap, 20 distractors', () => {
  const allExtractors = () => [
    englishExtractor,
    ...sentenceSets.map(({ language }) => languages.extractorFor(language)),
  ]
  const totals = (count: (set: SentenceSet) => number): Record<string, number> =>
    Object.fromEntries(sentenceSets.map((set) => [set.language, count(set)]))

  it('with English stems › finds 7 of 40 inflected statements', () =>
    expect(totals((set) => countHits(set, englishExtractor, [englishExtractor]))).toEqual({
      de: 2,
      fr: 1,
      es: 2,
      pt: 1,
      nl: 1,
      pl: 0,
      tr: 0,
    }))
  it('with the terms of the language › finds 37 of 40, also in a scope with all languages', () => {
    const hits = totals((set) => countHits(set, languages.extractorFor(set.language), allExtractors()))
    expect(hits).toEqual({ de: 10, fr: 4, es: 5, pt: 5, nl: 5, pl: 4, tr: 4 })
  })
  it('of pairs written after the rules › rises from 14 to 31 of 35', () => {
    const later = sentenceSets.map((set) => ({ ...set, pairs: laterPairs[set.language] ?? [] }))
    const sum = (count: (set: SentenceSet) => number): number => later.reduce((total, set) => total + count(set), 0)
    expect(sum((set) => countHits(set, englishExtractor, [englishExtractor]))).toBe(14)
    expect(sum((set) => countHits(set, languages.extractorFor(set.language), allExtractors()))).toBe(31)
  })
})

describe('combinedQueryTerms', () => {
  const scope = () => [englishExtractor, languages.extractorFor('de'), languages.extractorFor('pl')]

  it('given a question in one language › has the terms of all languages', () => {
    const terms = combinedQueryTerms('Welche Bücher hat Anna?', scope())
    expect([...terms.keys()]).toEqual(expect.arrayContaining(['bucher', 'buch', 'anna', '·buch', '·bucher', '·anna']))
  })
  it('given a German question › leaves out its stopwords in English too', () => {
    const terms = combinedQueryTerms('Hat die Katze das Futter gefressen?', scope())
    expect([...terms.keys()].filter((term) => ['die', 'hat', 'das', '·die_'].includes(term))).toEqual([])
    expect(terms.get('katz')).toBe(1)
  })
  it('given an English question › leaves out its stopwords in German too', () => {
    const terms = combinedQueryTerms('When did the old plant die?', scope())
    expect([...terms.keys()].filter((term) => ['the', 'did', 'when'].includes(term))).toEqual([])
    expect(terms.get('die')).toBe(1)
  })
  it('given a keyword that is a stopword of another language › keeps it', () =>
    expect(combinedQueryTerms('hat', scope()).get('hat')).toBe(1))
  it('given a few stopwords of another language among keywords › keeps them', () =>
    expect(combinedQueryTerms('hat die Stanley bottle receipt warranty claim', scope()).get('hat')).toBe(1))
  it('given as many stopwords of two languages › drops each in its own language only', () => {
    const terms = combinedQueryTerms('the my die das Auto', scope().slice(0, 2))
    expect([...terms.keys()].sort()).toEqual(['auto', 'das', 'die', 'my', 'the'])
  })
  it('given no extractors or no words › is empty', () => {
    expect(combinedQueryTerms('Welche Bücher?', []).size).toBe(0)
    expect(combinedQueryTerms(' … ', scope()).size).toBe(0)
  })
})

describe('isPlainEnglish', () => {
  it('accepts English and rejects other languages and short texts', () => {
    expect(english.map(isPlainEnglish)).toEqual([true, true, true, true])
    expect(sentenceSets.filter((set) => isPlainEnglish(sampleProse(allSentences(set))))).toEqual([])
    expect(isPlainEnglish('and the')).toBe(false)
  })
})
