import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { splitPassages } from '../../src/text/passages.ts'

const sentence = 'The quick brown fox jumps over the lazy dog near the river bank. '

describe('splitPassages', () => {
  it('of a short text › returns all of it', () => {
    expect(splitPassages('')).toEqual([[0, 0]])
    expect(splitPassages(sentence.repeat(20))).toEqual([[0, sentence.length * 20]])
  })

  it('of a long text › cuts after sentences and paragraphs wherever they are', () => {
    for (const space of [' ', '\n\n', ' '.repeat(700), ` \n${' '.repeat(300)}\n `]) {
      const text = `${sentence.trim()}${space}`.repeat(2_000)
      const ends = new Set(Array.from({ length: 2_000 }, (_, index) => (index + 1) * (text.length / 2_000)))
      expect(splitPassages(text).filter(([, end]) => !ends.has(end))).toEqual([])
    }
  })

  it('of any text › covers it without gaps, in passages of at most 1,040 characters', () => {
    const text = fc
      .array(fc.constantFrom(sentence, '\n\n', '\n', ' ', 'word ', '漢字', '😀', 'x'.repeat(50)), { maxLength: 400 })
      .map((parts) => parts.join(''))
    fc.assert(
      fc.property(text, (content) => {
        const passages = splitPassages(content)
        expect(passages[0]?.[0]).toBe(0)
        expect(passages.at(-1)?.[1]).toBe(content.length)
        for (const [at, [start, end]] of passages.entries()) {
          expect(at === 0 ? 0 : passages[at - 1]?.[1]).toBe(start)
          expect(end - start).toBeLessThanOrEqual(content.length <= 1_500 ? 1_500 : 1_040)
          expect(content.slice(start, end).isWellFormed()).toBe(true)
        }
      }),
    )
  })

  it('prefers the ends of paragraphs', () => {
    const paragraph = sentence.repeat(11).trimEnd()
    const text = [paragraph, paragraph, paragraph].join('\n\n')
    expect(splitPassages(text).map(([start, end]) => text.slice(start, end).trimEnd())).toEqual([
      paragraph,
      paragraph,
      paragraph,
    ])
  })
})
