import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { wordsOf } from '../../src/text/words.ts'
import { redundantOlder as marksOf, redundantPairs } from '../../src/upkeep/redundancy.ts'
import { verifies } from '../requirements/verifies.ts'

/** Where the marks stand. */
const redundantOlder = (texts: readonly string[], threshold?: number): ReadonlySet<number> =>
  new Set([...marksOf(texts, threshold).entries()].flatMap(([place, mark]) => (mark === 1 ? [place] : [])))

/** The comparison of each with each that the document describes. */
function scanned(texts: readonly string[], threshold: number): [number, number][] {
  const sets = texts.map((text) => new Set(wordsOf(text)))
  return sets.flatMap((older, place) =>
    sets.flatMap((newer, other): [number, number][] => {
      const both = [...older].filter((word) => newer.has(word)).length
      return place < other && both / (older.size + newer.size - both) >= threshold ? [[place, other]] : []
    }),
  )
}

const olderOf = (pairs: readonly (readonly [number, number])[]): number[] => [...new Set(pairs.map(([older]) => older))]
const inOrder = (places: ReadonlySet<number>): number[] => [...places].sort((left, right) => left - right)

/** So many words, `w1 w2 …`, from a number on. */
const words = (count: number, from = 1): string => Array.from({ length: count }, (_, at) => `w${from + at}`).join(' ')

describe('a redundant entry', () => {
  verifies('A-07', 'is the older of two that share 90 % of their words, whatever their case and order', () => {
    const texts = ['The page has loaded', 'something else', 'loaded has the PAGE!']
    expect(redundantPairs(texts)).toEqual([[0, 2]])
    expect(redundantOlder(texts)).toEqual(new Set([0]))
  })

  verifies('A-07', 'shares exactly 90 %, and not a word less', () => {
    expect(redundantPairs([words(9), words(10)])).toEqual([[0, 1]])
    expect(redundantPairs([words(8), words(9)])).toEqual([])
    expect(redundantPairs([words(19), words(19, 2)])).toEqual([[0, 1]])
    expect(redundantPairs([words(18), words(18, 2)])).toEqual([])
    expect(redundantPairs([words(900), words(1_000)])).toEqual([[0, 1]])
    expect(redundantPairs([words(899), words(1_000)])).toEqual([])
  })

  it('is measured by a threshold that can be chosen', () => {
    const texts = ['red green blue', 'red green grey', 'red black white']
    expect(redundantPairs(texts, 0.5)).toEqual([[0, 1]])
    expect(redundantPairs(texts, 0.51)).toEqual([])
    expect(redundantPairs(texts, 0.2)).toEqual([
      [0, 1],
      [0, 2],
      [1, 2],
    ])
    expect(redundantPairs(['a b', 'B A', 'a'], 1)).toEqual([[0, 1]])
  })

  it('may share a single word with many others, if the threshold is low', () => {
    const texts = Array.from({ length: 200 }, (_, at) => `shared${at % 10} one${at} two${at}`)
    const pairs = redundantPairs(texts, 0.2)
    expect(pairs).toHaveLength(10 * 190)
    expect(pairs.every(([older, newer]) => (newer - older) % 10 === 0)).toBe(true)
  })

  it.each([0, -1, 1.1, Number.NaN])('is not measured by a threshold of %s', (threshold) => {
    const message = `threshold is ${JSON.stringify(threshold)}; it must be a number above 0 and at most 1.`
    expect(() => redundantPairs([], threshold)).toThrow(message)
    expect(() => redundantOlder([], threshold)).toThrow(message)
  })

  it('has words: texts without any are similar to none, not even to their copies', () => {
    expect(redundantPairs(['', '', '👍', '👎', 'ok', '...'], 0.1)).toEqual([])
    expect(redundantOlder(['', '👍', '👍'])).toEqual(new Set())
  })

  it('may be made so by a newer one that is redundant itself, though the newest differs from it', () => {
    const drifting = [words(40), words(40, 2), words(40, 4)]
    expect(redundantPairs(drifting)).toEqual([
      [0, 1],
      [1, 2],
    ])
    expect(redundantOlder(drifting)).toEqual(new Set([0, 1]))
  })

  verifies('A-07', 'is each of 20,000 copies but the newest', () => {
    const copies = redundantOlder([
      ...Array.from({ length: 20_000 }, (_, at) => (at % 2 === 0 ? 'ok' : 'OK!')),
      'something else',
    ])
    expect(copies.size).toBe(19_999)
    expect(copies.has(19_999)).toBe(false)
    expect(copies.has(20_000)).toBe(false)
  })
})

const thresholds = fc.constantFrom(0.9, 0.9, 0.9, 0.05, 0.3, 0.5, 0.66, 0.75, 0.8, 0.85, 0.95, 0.99, 1)

/** Texts near to one another: each is one of a few with some words left out and others put in. */
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
        const kept = Array.from({ length: lengths[of % lengths.length] as number }, (_, at) => at).filter(
          (at) => !without.includes(at),
        )
        return [...kept.map((at) => `w${at}`), ...and.map((at) => `x${at % spread}`)].join(' ')
      }),
    )

/** Texts of few different words: nearly every word is in many of them. */
const fewWords = fc.integer({ min: 2, max: 30 }).chain((vocabulary) =>
  fc.array(
    fc
      .array(fc.nat(vocabulary), { maxLength: 40, size: 'max' })
      .map((numbers) => numbers.map((number) => `w${number}`).join(' ')),
    { maxLength: 80, size: 'max' },
  ),
)

/** One template, long or short, with fields of few values. */
const fields = fc
  .record({
    template: fc.integer({ min: 0, max: 60 }),
    values: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 40 }),
  })
  .chain(({ template, values }) =>
    fc.array(
      fc
        .tuple(...values.map((most) => fc.nat(most)))
        .map((filled) => [words(template), ...filled.map((value, field) => `f${field}v${value}`)].join(' ')),
      { maxLength: 80, size: 'max' },
    ),
  )

/** Long texts in which nearly every word is in most of the others. */
const manyShared = fc
  .record({ size: fc.integer({ min: 60, max: 120 }), most: fc.integer({ min: 1, max: 12 }) })
  .chain(({ size, most }) =>
    fc.array(
      fc.array(fc.nat(size + 10), { maxLength: most, size: 'max' }).map((missing) =>
        Array.from({ length: size + 10 }, (_, at) => at)
          .filter((at) => !missing.includes(at))
          .map((at) => `w${at}`)
          .join(' '),
      ),
      { maxLength: 60, size: 'max' },
    ),
  )

const mixes = {
  'short ones': nearCopies({ min: 0, max: 12 }, 3, 60),
  'templates filled in': nearCopies({ min: 15, max: 36 }, 3, 80),
  'longer ones': nearCopies({ min: 40, max: 130 }, 9, 60),
  'few words': fewWords,
  'fields of few values': fields,
  'many shared words': manyShared,
  'any text': fc.array(fc.string({ unit: fc.constantFrom('a', 'b', ' ', 'É', '東', '.', '-') }), { maxLength: 40 }),
}

describe('the pairs and the redundant ones are those of the comparison of each with each', () => {
  for (const [name, texts] of Object.entries(mixes)) {
    verifies('A-07', `for ${name}`, () => {
      fc.assert(
        fc.property(texts, thresholds, (some, threshold) => {
          const expected = scanned(some, threshold)
          expect(redundantPairs(some, threshold)).toEqual(expected)
          expect(inOrder(redundantOlder(some, threshold))).toEqual(olderOf(expected))
        }),
      )
    })
  }

  it('and there are such pairs in most of the mixes, on both sides of 0.9', () => {
    const near = fc.sample(mixes['templates filled in'], { numRuns: 30, seed: 1 })
    const found = near.flatMap((texts) => scanned(texts, 0.9)).length
    const missed = near.flatMap((texts) => scanned(texts, 0.8)).length - found
    expect(found).toBeGreaterThan(1_000)
    expect(missed).toBeGreaterThan(1_000)
  })
})
