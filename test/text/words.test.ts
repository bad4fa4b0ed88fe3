import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { extractTerms, isStopword, splitWords, stem } from '../../src/text/words.ts'

describe('splitWords', () => {
  it('lower-cases words and keeps inner apostrophes', () =>
    expect(splitWords(`"Don't" SHOUT, it’s Caroline's 'dog'!`)).toEqual([
      "don't",
      'shout',
      "it's",
      "caroline's",
      'dog',
    ]))
  it('splits an identifier into itself and its parts', () => {
    expect(splitWords('src/a.ts')).toEqual(['src/a.ts', 'src', 'a', 'ts'])
    expect(splitWords('snake_case')).toEqual(['snake_case', 'snake', 'case'])
    expect(splitWords('camelCase')).toEqual(['camelcase', 'camel', 'case'])
    expect(splitWords('lib/parseHTMLFile.mjs')).toEqual([
      'lib/parsehtmlfile.mjs',
      'lib',
      'parsehtmlfile',
      'parse',
      'html',
      'file',
      'mjs',
    ])
    expect(splitWords('well-known user@example.com')).toEqual([
      'well-known',
      'well',
      'known',
      'user@example.com',
      'user',
      'example',
      'com',
    ])
  })
  it('keeps acronyms, their plurals and emphasised words as one word', () =>
    expect(splitWords('HTML URLs _em_ __init__')).toEqual(['html', 'urls', 'em', 'init']))
  it('returns numbers as a whole and in parts', () =>
    expect(splitWords('v24.21.0 costs 3.14')).toEqual(['v24.21.0', 'v24', '21', '0', 'costs', '3.14', '3', '14']))
  it('removes accents in composed and decomposed form', () =>
    expect(splitWords('Café cafe\u0301 ÜBER İstanbul')).toEqual(['cafe', 'cafe', 'uber', 'istanbul']))
  it('splits an elided article from its noun', () => expect(splitWords("l'homme")).toEqual(["l'homme", 'l', 'homme']))
  it('returns characters and pairs for scripts without spaces', () => {
    expect(splitWords('東京へ')).toEqual(['東', '京', '東京', 'へ', '京へ'])
    expect(splitWords('사과 𠮷野')).toEqual(['사', '과', '사과', '𠮷', '野', '𠮷野'])
    expect(splitWords('ดีใจ')).toEqual(['ดี', 'ใ', 'ดีใ', 'จ', 'ใจ'])
  })
  it('keeps vowel signs of other scripts', () => expect(splitWords('नमस्ते दुनिया мир')).toEqual(['नमस्ते', 'दुनिया', 'мир']))
  it('finds no words in punctuation and emoji', () => expect(splitWords('-- ... 👍🏽 /// @ \u0301')).toEqual([]))
  it('cuts words to 128 characters', () => expect(splitWords(`${'a'.repeat(300)} b`)).toEqual(['a'.repeat(128), 'b']))
  it('is not affected by an earlier lone surrogate', () => {
    expect(splitWords('\ud842')).toEqual([])
    expect(splitWords('𠮷')).toEqual(['𠮷'])
  })
  it('returns no empty word, white space or capital for any single character', () => {
    const wrong: string[] = []
    for (let code = 0; code <= 0xffff; code++) {
      if (splitWords(String.fromCharCode(code)).some((word) => word === '' || /[A-Z\s]/.test(word)))
        wrong.push(code.toString(16))
    }
    expect(wrong).toEqual([])
  })
  it('keeps a character that decomposes into several words as one word', () =>
    expect(splitWords('ﷺ \u037a')).toEqual(['صلىاللهعليهوسلم', '\u037a']))
  it('returns no white space or capitals for any text', () =>
    fc.assert(
      fc.property(fc.array(fc.nat(0xffff)), (codes) => {
        const text = String.fromCharCode(...codes)
        expect(splitWords(text).filter((word) => word === '' || /[A-Z\s]/.test(word))).toEqual([])
      }),
    ))
})

describe('stem', () => {
  it.each([
    ['consistency', 'consist'],
    ['consigned', 'consign'],
    ['generously', 'generous'],
    ['communication', 'communic'],
    ['hopping', 'hop'],
    ['hoping', 'hope'],
    ['agreed', 'agre'],
    ['flies', 'fli'],
    ['ties', 'tie'],
    ['cries', 'cri'],
    ['gas', 'gas'],
    ['this', 'this'],
    ['kiwis', 'kiwi'],
    ['happily', 'happili'],
    ['relational', 'relat'],
    ['rationalizations', 'ration'],
    ['hopefulness', 'hope'],
    ['sensibilities', 'sensibl'],
    ['analogies', 'analog'],
    ['controlled', 'control'],
    ['adoption', 'adopt'],
    ['replacement', 'replac'],
    ['dying', 'die'],
    ['skies', 'sky'],
    ['news', 'news'],
    ['succeeded', 'succeed'],
    ['enjoying', 'enjoy'],
    ['sayings', 'say'],
    ["caroline's", 'carolin'],
    ['by', 'by'],
  ])('stems %s to %s', (word, expected) => expect(stem(word)).toBe(expected))

  it('returns anything but a lower-case English word unchanged', () =>
    expect(['src/runs.ts', 'tests2', '東京', 'naïvely'].map(stem)).toEqual([
      'src/runs.ts',
      'tests2',
      '東京',
      'naïvely',
    ]))
  it('is never empty and at most one letter longer than the word', () =>
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'aeioustnlrydgb'), minLength: 1, maxLength: 12 }), (word) => {
        const found = stem(word)
        expect(found.length > 0 && found.length <= word.length + 1 && found === found.toLowerCase()).toBe(true)
      }),
    ))
})

describe('extractTerms', () => {
  it('returns stems without stopwords', () =>
    expect(extractTerms('What did the runners say about running in src/main.ts?')).toEqual([
      'runner',
      'say',
      'run',
      'src/main.ts',
      'src',
      'main',
      'ts',
    ]))
  it('drops only the most common words', () => {
    expect(['the', "don't", 'which', 'ourselves'].every(isStopword)).toBe(true)
    expect(['wombat', 'monday', 'seven', 'src'].some(isStopword)).toBe(false)
  })
})
