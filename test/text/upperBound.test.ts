import fc from 'fast-check'
import cl100k from 'gpt-tokenizer/bpeRanks/cl100k_base'
import o200k from 'gpt-tokenizer/bpeRanks/o200k_base'
import { describe, expect, it } from 'vitest'
import { pairs, triples } from '../../src/text/frequentWords.ts'
import { afterSpace, anywhere } from '../../src/text/letterRuns.ts'
import { upperBound } from '../../src/text/upperBound.ts'
import { countMerged, readRanks, toBytes } from '../../src/tokenizers/bytePairs.ts'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { duration, hostileText, megabytes, seam } from './hostile.ts'

const exact = [await exactTokenizer('cl100k_base'), await exactTokenizer('o200k_base')]
const most = (text: string): number => Math.max(...exact.map((tokenizer) => tokenizer.count(text)))
const bytes = (text: string): number => new TextEncoder().encode(text).length

describe('what the bound takes for granted holds in both tables', () => {
  const tables = [readRanks(cl100k), readRanks(o200k)]
  const merged = (piece: string): number => Math.max(...tables.map((ranks) => countMerged(toBytes(piece), ranks)))
  const forms = (word: string): string[] => [word, word.charAt(0).toUpperCase() + word.slice(1)]
  const contractions = ["'s", "'t", "'m", "'d", "'ll", "'ve", "'re"]
  const worst = (pieces: readonly string[]): number => pieces.reduce((top, piece) => Math.max(top, merged(piece)), 0)

  it('a common word after a space is one token, two with a contraction', () => {
    expect(afterSpace.size).toBeGreaterThan(2_000)
    const spaced = [...afterSpace].flatMap(forms).map((word) => ` ${word}`)
    expect(worst(spaced)).toBe(1)
    expect(worst(spaced.flatMap((word) => contractions.map((ending) => word + ending)))).toBe(2)
  })

  it('a common word without one is one token, two with a contraction, and no sign before it costs more than its bytes', () => {
    const bare = [...anywhere].flatMap(forms)
    expect(worst(bare)).toBe(1)
    expect(worst(bare.flatMap((word) => contractions.map((ending) => word + ending)))).toBe(2)
    const signs = [...Array(128).keys()]
      .map((code) => String.fromCharCode(code))
      .filter((sign) => /[^A-Za-z0-9 \r\n']/.test(sign))
    for (const sign of [...signs, ...'‘’“”–—…'])
      expect(worst(bare.map((word) => sign + word))).toBeLessThanOrEqual(1 + bytes(sign))
  }, 60_000)

  it('pairs and triples of letters are tokens', () => {
    const small = [...'abcdefghijklmnopqrstuvwxyz']
    const symbols = [' ', ...small.map((letter) => letter.toUpperCase()), ...small]
    const listed = (firsts: readonly string[], rows: string) =>
      rows.split(',').flatMap((row, at) => [...row].map((last) => firsts[at] + last))
    const two = listed(symbols, pairs)
    const three = listed(
      [' ', ...small].flatMap((first) => small.map((second) => first + second)),
      triples,
    )
    expect([two.length, three.length]).toEqual([1494, 3020])
    expect(worst([...two, ...three])).toBe(1)
    expect([...two, ...three].filter((token) => /[a-z][A-Z]/.test(token))).toEqual([])
  })

  it('so are up to three digits, 79 spaces and 10 line ends', () => {
    const digits = [...Array(1000).keys()].flatMap((number) =>
      [1, 2, 3].map((length) => String(number).padStart(length, '0')),
    )
    expect(worst(digits)).toBe(1)
    expect(worst([...Array(79).keys()].map((more) => ' '.repeat(1 + more)))).toBe(1)
    expect(worst([...Array(10).keys()].map((more) => '\n'.repeat(1 + more)))).toBe(1)
  })
})

describe('the bound', () => {
  verifies('X-01', 'the bound is never below the exact count in either encoding, for any text', () => {
    fc.assert(
      fc.property(hostileText, (text) => {
        expect(upperBound.count(text)).toBeGreaterThanOrEqual(most(text))
      }),
      { numRuns: 3_000 },
    )
  })

  verifies('X-01', 'the bound holds for single words, whatever they touch', () => {
    fc.assert(
      fc.property(seam, (text) => {
        expect(upperBound.count(text)).toBeGreaterThanOrEqual(most(text))
      }),
      { numRuns: 10_000 },
    )
  })

  verifies('X-01', 'the bound holds for arbitrary Unicode, broken surrogates included', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        expect(upperBound.count(text)).toBeGreaterThanOrEqual(most(text))
        expect(upperBound.count(text)).toBeLessThanOrEqual(bytes(text))
      }),
      { numRuns: 1_000 },
    )
  })

  it('knows common words, digits and white space, and counts the bytes of everything else', () => {
    const counted = (text: string): [bound: number, exact: number] => [upperBound.count(text), most(text)]
    expect(counted('')).toEqual([0, 0])
    expect(counted('The weather in the city is good today')).toEqual([8, 8])
    expect(counted("I think it's time, and they don't.")).toEqual([11, 11])
    expect(counted('Call 1234567 (home)')).toEqual([9, 8])
    expect(counted('one\n\n    two')).toEqual([4, 4])
    expect(counted('你好')).toEqual([6, 2])
    expect(counted('🌍')).toEqual([4, 3])
    expect(counted('\ud800')).toEqual([3, 1])
    expect(counted('antidisestablishmentarianism')).toEqual([14, 6])
  })

  it('gives no word its price when what stands beside it may be part of it', () => {
    expect(upperBound.count(' world')).toBe(1)
    expect(upperBound.count(' worldé')).toBeGreaterThan(3)
    expect(upperBound.count('éworld')).toBeGreaterThan(3)
    expect(upperBound.count("'time")).toBeGreaterThan(2)
  })

  it('says that it is a bound', () => {
    expect([upperBound.name, upperBound.kind, upperBound.isExact('Hello')]).toEqual(['upper-bound', 'bound', false])
    expect(upperBound.overhead).toEqual(exact[0]?.overhead)
  })

  for (const [kind, text] of Object.entries(megabytes)) {
    verifies('X-01', `twice as much takes about twice as long: ${kind}`, () => {
      const half = duration(() => upperBound.count(text.slice(0, text.length / 2)))
      const whole = duration(() => upperBound.count(text))
      expect(whole).toBeLessThan(Math.max(4 * half, 2_000))
    })
  }
})
