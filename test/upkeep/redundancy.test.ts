import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { splitWords } from '../../src/text/words.ts'
import { markRedundant } from '../../src/upkeep/optimizer/redundancy.ts'
import { verifies } from '../requirements/verifies.ts'

/** Indexes of the redundant texts. */
const findRedundant = (texts: readonly string[], threshold?: number): number[] =>
  [...markRedundant(texts, threshold).entries()].flatMap(([index, mark]) => (mark === 1 ? [index] : []))

/** Compares all pairs, as the source document describes: the reference for `findRedundant`. */
function comparePairs(texts: readonly string[], threshold: number): [older: number, newer: number][] {
  const sets = texts.map((text) => new Set(splitWords(text)))
  return sets.flatMap((older, index) =>
    sets.flatMap((newer, other): [number, number][] => {
      const shared = [...older].filter((word) => newer.has(word)).length
      return index < other && shared / (older.size + newer.size - shared) >= threshold ? [[index, other]] : []
    }),
  )
}

const olderOf = (pairs: readonly (readonly [number, number])[]): number[] => [...new Set(pairs.map(([older]) => older))]

/** Consecutive words `w1 w2 …`. */
const words = (count: number, from = 1): string => Array.from({ length: count }, (_, at) => `w${from + at}`).join(' ')

describe('markRedundant', () => {
  verifies('A-07', 'with 90 % of the words shared marks the older text, regardless of case and order', () => {
    expect(findRedundant(['The page has loaded', 'something else', 'loaded has the PAGE!'])).toEqual([0])
  })

  verifies('A-07', 'marks from exactly 90 %', () => {
    expect(findRedundant([words(9), words(10)])).toEqual([0])
    expect(findRedundant([words(8), words(9)])).toEqual([])
    expect(findRedundant([words(19), words(19, 2)])).toEqual([0])
    expect(findRedundant([words(18), words(18, 2)])).toEqual([])
    expect(findRedundant([words(900), words(1_000)])).toEqual([0])
    expect(findRedundant([words(899), words(1_000)])).toEqual([])
  })

  it('uses the given threshold', () => {
    const texts = ['red green blue', 'red green grey', 'red black white']
    expect(findRedundant(texts, 0.5)).toEqual([0])
    expect(findRedundant(texts, 0.51)).toEqual([])
    expect(findRedundant(texts, 0.2)).toEqual([0, 1])
    expect(findRedundant(['a b', 'B A', 'a'], 1)).toEqual([0])
  })

  it('with a low threshold finds texts that share a single word with many others', () => {
    const texts = Array.from({ length: 200 }, (_, at) => `shared${at % 10} one${at} two${at}`)
    expect(findRedundant(texts, 0.2)).toEqual(Array.from({ length: 190 }, (_, at) => at))
  })

  it.each([0, -1, 1.1, Number.NaN])('with the threshold %s throws', (threshold) => {
    const message = `threshold is ${JSON.stringify(threshold)}; it must be a number above 0 and at most 1.`
    expect(() => markRedundant([], threshold)).toThrow(message)
  })

  it('never marks texts without words, not even copies', () => {
    expect(findRedundant(['', '', '👍', '👎', 'ok', '...'], 0.1)).toEqual([])
    expect(findRedundant(['', '👍', '👍'])).toEqual([])
  })

  it('marks a text that is similar only to a newer redundant one', () => {
    expect(findRedundant([words(40), words(40, 2), words(40, 4)])).toEqual([0, 1])
  })

  verifies('A-07', 'with 20,000 copies marks all but the newest', () => {
    const texts = [...Array.from({ length: 20_000 }, (_, at) => (at % 2 === 0 ? 'ok' : 'OK!')), 'something else']
    expect(findRedundant(texts)).toEqual(Array.from({ length: 19_999 }, (_, at) => at))
  })
})

const thresholds = fc.constantFrom(0.9, 0.9, 0.9, 0.05, 0.3, 0.5, 0.66, 0.75, 0.8, 0.85, 0.95, 0.99, 1)

/** Variants of a few texts, with some words removed and others added. */
const nearCopies = (sizes: { readonly min: number; readonly max: number }, changes: number, count: number) =>
  fc
    .record({
      sizes: fc.array(fc.integer(sizes), { minLength: 1, maxLength: 3 }),
      spread: fc.integer({ min: 1, max: 200 }),
      copies: fc.array(
        fc.record({
          of: fc.nat(2),
          without: fc.array(fc.nat(sizes.max), { maxLength: changes }),
          and: fc.array(fc.nat(1_000), { maxLength: changes }),
        }),
        { minLength: 2, maxLength: count, size: 'max' },
      ),
    })
    .map(({ sizes: lengths, spread, copies }) =>
      copies.map(({ of, without, and }) => {
        const remaining = Array.from({ length: lengths[of % lengths.length] as number }, (_, at) => at).filter(
          (at) => !without.includes(at),
        )
        return [...remaining.map((at) => `w${at}`), ...and.map((at) => `x${at % spread}`)].join(' ')
      }),
    )

/** Texts with a small vocabulary, so that nearly every word is in many of them. */
const fewWords = fc.integer({ min: 2, max: 30 }).chain((vocabulary) =>
  fc.array(
    fc
      .array(fc.nat(vocabulary), { maxLength: 40, size: 'max' })
      .map((numbers) => numbers.map((number) => `w${number}`).join(' ')),
    { maxLength: 80, size: 'max' },
  ),
)

/** A template with fields that have few values each. */
const fields = fc
  .record({
    template: fc.integer({ min: 0, max: 60 }),
    values: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 40 }),
  })
  .chain(({ template, values }) =>
    fc.array(
      fc
        .tuple(...values.map((maxValue) => fc.nat(maxValue)))
        .map((filled) => [words(template), ...filled.map((value, field) => `f${field}v${value}`)].join(' ')),
      { maxLength: 80, size: 'max' },
    ),
  )

/** Long texts in which nearly every word is in most of the others. */
const manyShared = fc
  .record({ size: fc.integer({ min: 60, max: 120 }), maxMissing: fc.integer({ min: 1, max: 12 }) })
  .chain(({ size, maxMissing }) =>
    fc.array(
      fc.array(fc.nat(size + 10), { maxLength: maxMissing, size: 'max' }).map((missing) =>
        Array.from({ length: size + 10 }, (_, at) => at)
          .filter((at) => !missing.includes(at))
          .map((at) => `w${at}`)
          .join(' '),
      ),
      { maxLength: 60, size: 'max' },
    ),
  )

const generators = {
  'short texts': nearCopies({ min: 0, max: 12 }, 3, 60),
  'filled templates': nearCopies({ min: 15, max: 36 }, 3, 80),
  'longer texts': nearCopies({ min: 40, max: 130 }, 9, 60),
  'a small vocabulary': fewWords,
  'fields with few values': fields,
  'many shared words': manyShared,
  'any text': fc.array(fc.string({ unit: fc.constantFrom('a', 'b', ' ', 'É', '東', '.', '-') }), { maxLength: 40 }),
}

describe('markRedundant compared with all pairs', () => {
  for (const [name, texts] of Object.entries(generators)) {
    verifies('A-07', `marks the same texts for ${name}`, () => {
      fc.assert(
        fc.property(texts, thresholds, (some, threshold) => {
          expect(findRedundant(some, threshold)).toEqual(olderOf(comparePairs(some, threshold)))
        }),
      )
    })
  }

  it('is tested with many pairs on both sides of 0.9', () => {
    const near = fc.sample(generators['filled templates'], { numRuns: 30, seed: 1 })
    const found = near.flatMap((texts) => comparePairs(texts, 0.9)).length
    const missed = near.flatMap((texts) => comparePairs(texts, 0.8)).length - found
    expect(found).toBeGreaterThan(1_000)
    expect(missed).toBeGreaterThan(1_000)
  })
})
