import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isStopword, stem, termsOf, wordsOf } from '../../src/text/words.ts'

describe('words', () => {
  it('are in lower case, with the apostrophes inside them', () =>
    expect(wordsOf(`"Don't" SHOUT, it’s Caroline's 'dog'!`)).toEqual(["don't", 'shout', "it's", "caroline's", 'dog']))
  it('of an identifier are itself and its parts', () => {
    expect(wordsOf('src/a.ts')).toEqual(['src/a.ts', 'src', 'a', 'ts'])
    expect(wordsOf('snake_case')).toEqual(['snake_case', 'snake', 'case'])
    expect(wordsOf('camelCase')).toEqual(['camelcase', 'camel', 'case'])
    expect(wordsOf('lib/parseHTMLFile.mjs')).toEqual([
      'lib/parsehtmlfile.mjs',
      'lib',
      'parsehtmlfile',
      'parse',
      'html',
      'file',
      'mjs',
    ])
    expect(wordsOf('well-known user@example.com')).toEqual([
      'well-known',
      'well',
      'known',
      'user@example.com',
      'user',
      'example',
      'com',
    ])
  })
  it('of all capitals, of a plural of capitals and of emphasis are one', () =>
    expect(wordsOf('HTML URLs _em_ __init__')).toEqual(['html', 'urls', 'em', 'init']))
  it('keep numbers whole and in parts', () =>
    expect(wordsOf('v24.21.0 costs 3.14')).toEqual(['v24.21.0', 'v24', '21', '0', 'costs', '3.14', '3', '14']))
  it('lose their accents, however these are written', () =>
    expect(wordsOf('Café cafe\u0301 ÜBER İstanbul')).toEqual(['cafe', 'cafe', 'uber', 'istanbul']))
  it('are found behind an elided article', () => expect(wordsOf("l'homme")).toEqual(["l'homme", 'l', 'homme']))
  it('of scripts without spaces are characters and pairs', () => {
    expect(wordsOf('東京へ')).toEqual(['東', '京', '東京', 'へ', '京へ'])
    expect(wordsOf('사과 𠮷野')).toEqual(['사', '과', '사과', '𠮷', '野', '𠮷野'])
    expect(wordsOf('ดีใจ')).toEqual(['ดี', 'ใ', 'ดีใ', 'จ', 'ใจ'])
  })
  it('of other scripts keep their vowel signs', () =>
    expect(wordsOf('नमस्ते दुनिया мир')).toEqual(['नमस्ते', 'दुनिया', 'мир']))
  it('are none in punctuation and emoji', () => expect(wordsOf('-- ... 👍🏽 /// @ \u0301')).toEqual([]))
  it('longer than 128 characters are known by their beginning', () =>
    expect(wordsOf(`${'a'.repeat(300)} b`)).toEqual(['a'.repeat(128), 'b']))
  it('are the same after a lone half of a pair was met', () => {
    expect(wordsOf('\ud842')).toEqual([])
    expect(wordsOf('𠮷')).toEqual(['𠮷'])
  })
  it('of one character never hold white space or capitals and are never empty, whatever the character', () => {
    const wrong: string[] = []
    for (let code = 0; code <= 0xffff; code++) {
      if (wordsOf(String.fromCharCode(code)).some((word) => word === '' || /[A-Z\s]/.test(word)))
        wrong.push(code.toString(16))
    }
    expect(wrong).toEqual([])
  })
  it('that decompose into several stay one', () => expect(wordsOf('ﷺ \u037a')).toEqual(['صلىاللهعليهوسلم', '\u037a']))
  it('never hold white space or capitals', () =>
    fc.assert(
      fc.property(fc.array(fc.nat(0xffff)), (codes) => {
        const text = String.fromCharCode(...codes)
        expect(wordsOf(text).filter((word) => word === '' || /[A-Z\s]/.test(word))).toEqual([])
      }),
    ))
})

describe('a stem', () => {
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
  ])('of %s is %s', (word, expected) => expect(stem(word)).toBe(expected))

  it('of what is no English word is the word', () =>
    expect(['src/runs.ts', 'tests2', '東京', 'naïvely'].map(stem)).toEqual([
      'src/runs.ts',
      'tests2',
      '東京',
      'naïvely',
    ]))
  it('never grows by more than a letter and is never empty', () =>
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'aeioustnlrydgb'), minLength: 1, maxLength: 12 }), (word) => {
        const found = stem(word)
        expect(found.length > 0 && found.length <= word.length + 1 && found === found.toLowerCase()).toBe(true)
      }),
    ))
})

describe('terms', () => {
  it('are the stems of the words that tell texts apart', () =>
    expect(termsOf('What did the runners say about running in src/main.ts?')).toEqual([
      'runner',
      'say',
      'run',
      'src/main.ts',
      'src',
      'main',
      'ts',
    ]))
  it('leave out the commonest words only', () => {
    expect(['the', "don't", 'which', 'ourselves'].every(isStopword)).toBe(true)
    expect(['wombat', 'monday', 'seven', 'src'].some(isStopword)).toBe(false)
  })
})
