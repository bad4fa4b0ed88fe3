import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clip, clipMiddle } from '../../src/text/clip.ts'
import { verifies } from '../requirements/verifies.ts'

const family = '👩‍👩‍👧‍👦'
const segments = (text: string): string[] =>
  [...new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text)].map((part) => part.segment)
const boundaries = (text: string): Set<number> => {
  const found = new Set([0])
  let place = 0
  for (const segment of segments(text)) {
    place += segment.length
    found.add(place)
  }
  return found
}

/** Components of grapheme clusters. */
const pieces = [
  'a',
  'b ',
  '\r\n',
  '\n',
  'e\u0301',
  '\u0301',
  '🙂',
  '👍🏽',
  '❤️',
  family,
  '🇫🇷',
  '🇩',
  '\u200d',
  'क्षि',
  '각',
  '\u1100',
  '\u1161',
  '\ud83d',
  '\udc00',
  '日',
  '\u0600',
  'ﷺ',
]
// Few kinds at a time, so that long runs of one kind occur.
const texts = fc
  .subarray(pieces, { minLength: 1, maxLength: 4 })
  .chain((few) => fc.array(fc.constantFrom(...few), { maxLength: 200, size: 'max' }))
  .map((parts) => parts.join(''))

describe('clip', () => {
  verifies('E-06', 'cuts content longer than 100 characters to its first 100 and appends ...', () => {
    expect(clip('x'.repeat(100), 100)).toBe('x'.repeat(100))
    expect(clip('x'.repeat(101), 100)).toBe(`${'x'.repeat(100)}...`)
    expect(clip('Can you explain more about the second paragraph?', 20)).toBe('Can you explain more...')
  })
  verifies('E-06', 'never splits a surrogate pair or grapheme', () => {
    expect(clip(`${'x'.repeat(99)}🙂y`, 100)).toBe(`${'x'.repeat(99)}...`)
    expect(clip(`ab${family}c`, 6)).toBe('ab...')
    expect(clip('abe\u0301f', 3)).toBe('ab...')
    expect(clip('a\r\nb', 2)).toBe('a...')
    expect(clip('🇫🇷🇩🇪🇮🇹', 6)).toBe('🇫🇷...')
    expect(clip('👍🏽👍🏽', 4)).toBe('👍🏽...')
    expect(clip(`x👩${'\u0301'.repeat(70)}\u200d👩z`, 74)).toBe('x...')
  })
  it('keeps the first code point if the first grapheme is longer than the limit', () => {
    expect(clip(`${family}!`, 3)).toBe('👩...')
    expect(clip('🙂!', 1)).toBe('🙂...')
    expect(clip(`e${'\u0301'.repeat(500)}`, 100)).toBe('e...')
  })
  it('uses the given mark, and keeps nothing with a limit of 0', () => {
    expect(clip('abcdef', 3, '')).toBe('abc')
    expect(clip('abcdef', 0)).toBe('...')
  })
  verifies('E-06', 'keeps the longest beginning that ends at a grapheme boundary', () =>
    fc.assert(
      fc.property(texts, fc.nat(300), (text, characters) => {
        fc.pre(text.length > characters && characters > 0)
        const cut = clip(text, characters, '')
        const whole = [...boundaries(text)].filter((place) => place <= characters).at(-1) ?? 0
        expect(cut).toBe(whole > 0 ? text.slice(0, whole) : String.fromCodePoint(text.codePointAt(0) ?? 0))
      }),
      { numRuns: 500 },
    ),
  )
})

describe('clipMiddle', () => {
  it('keeps both ends', () => {
    expect(clipMiddle('the quick brown fox', 3, 3)).toBe('the ... fox')
    expect(clipMiddle('abcdef', 3, 3)).toBe('abcdef')
    expect(clipMiddle('abcdef', 2, 0)).toBe('ab ... ')
    expect(clipMiddle('abcdef', 0, 2, '|')).toBe('|ef')
  })
  it('never splits a grapheme', () => {
    expect(clipMiddle('ab🙂cdefg🙂h', 3, 2)).toBe('ab ... h')
    expect(clipMiddle(`${'x'.repeat(50)}${family}${family}`, 1, 12)).toBe(`x ... ${family}`)
    expect(clipMiddle(family, 0, 2)).toBe('👩 ... ')
  })
  it('returns a beginning, the mark and an end, both cut at grapheme boundaries', () =>
    fc.assert(
      fc.property(texts, fc.nat(150), fc.nat(150), (text, head, tail) => {
        fc.pre(head > 0 && head + tail < text.length)
        const [start = '', end = ''] = clipMiddle(text, head, tail, '|').split('|')
        const all = boundaries(text)
        expect(text.startsWith(start) && text.endsWith(end)).toBe(true)
        expect(end.length).toBe(text.length - Math.min(...[...all].filter((place) => place >= text.length - tail)))
        expect(start).toBe(clip(text, head, ''))
      }),
      { numRuns: 300 },
    ))
})
