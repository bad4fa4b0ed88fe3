import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createGramExtractor, englishExtractor, sampleProse } from '../../src/text/languages.ts'
import { extractTerms, splitWords } from '../../src/text/words.ts'
import { hostileText } from './hostileTexts.ts'

describe('englishExtractor', () => {
  it('returns the terms of extractTerms', () =>
    fc.assert(
      fc.property(hostileText, (text) => {
        expect(englishExtractor.extract(text)).toEqual(extractTerms(text))
        const byWord = splitWords(text).flatMap((word) => englishExtractor.weighWord(word).map(([term]) => term))
        expect(byWord).toEqual(extractTerms(text))
      }),
    ))
})

describe('createGramExtractor', () => {
  const polish = createGramExtractor('pl')

  it.each([
    ['pl', 'książka', 'książkami'],
    ['tr', 'kitaplarımı', 'kitabı'],
    ['fi', 'talossa', 'talojen'],
    ['ru', 'квартира', 'квартирами'],
    ['cs', 'městě', 'městský'],
    ['ar', 'الكتاب', 'كتاب'],
    ['he', 'הספר', 'ספר'],
    ['ms', 'membaca', 'dibaca'],
  ])('in %s › given %s and %s › returns common terms', (language, one, other) => {
    const { extract } = createGramExtractor(language)
    const terms = new Set(extract(one))
    expect(extract(other).filter((term) => terms.has(term))).not.toEqual([])
  })
  it('returns short words whole, and numbers and identifiers unmarked', () => {
    expect(polish.extract('ma 12 kot src/a.ts')).toEqual(['·ma_', '12', '·kot_', 'src/a.ts', '·src_', '·a_', '·ts_'])
    expect(polish.weighWord('2024')).toEqual([['2024', 1]])
  })
  it('gives the n-grams of a word most of its weight', () =>
    expect(polish.weighWord('rowery')).toEqual([
      ['·rowery_', 0.1],
      ['·rowe', 0.45],
      ['·rowery', 0.45],
    ]))
  it('given any text › returns the terms that weighWord returns, with weights of at most 1 per word', () =>
    fc.assert(
      fc.property(hostileText, fc.constantFrom('pl', 'ar'), (text, language) => {
        const { extract, weighWord } = createGramExtractor(language)
        const weighed = splitWords(text).map(weighWord)
        expect(extract(text)).toEqual(weighed.flatMap((terms) => terms.map(([term]) => term)))
        for (const terms of weighed) {
          const sum = terms.reduce((total, [, weight]) => total + weight, 0)
          expect(sum).toBeGreaterThan(0)
          expect(sum).toBeLessThan(1.000001)
        }
      }),
    ))
  it('splits no surrogate pair', () => expect(polish.extract('a𐐨𐐩𐐪𐐫').every((term) => term.isWellFormed())).toBe(true))
})

describe('sampleProse', () => {
  it('leaves out fenced code, identifiers and numbers', () =>
    expect(
      sampleProse([
        'Das läuft „nicht“:\n```ts\nconst answer = compute()\n```\nSiehe src/main.ts, Zeile 42.',
        "C'est vrai.",
      ]),
    ).toBe("Das läuft „nicht“: Siehe Zeile C'est vrai."))
  it('given more than 2,000 characters › returns the first', () => {
    const sample = sampleProse(Array.from({ length: 1_000 }, () => 'eins zwei drei'))
    expect(sample.length).toBeGreaterThan(1_980)
    expect(sample.length).toBeLessThan(2_010)
  })
  it('reads no more texts than it needs', () => {
    function* texts() {
      yield 'wort '.repeat(600)
      throw new Error('read too far')
    }
    expect(sampleProse(texts())).toMatch(/^wort /)
  })
})
