import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { squeezeSpace } from '../../src/text/compress.ts'
import { verifies } from '../requirements/verifies.ts'

const bare = (text: string): string => text.replace(/\s+/g, '')
const texts = fc
  .array(
    fc.constantFrom(
      'a',
      'b c',
      ' ',
      '   ',
      '\t',
      '\n',
      '\n\n\n',
      '\r\n',
      '```\n',
      '```js\n',
      '~~~~',
      '  - x',
      '\u00a0\u3000',
      '|  cell  |',
      '\u2028',
    ),
  )
  .map((parts) => parts.join(''))

describe('squeezeSpace', () => {
  verifies('H-13', 'removes redundant white space', () => {
    expect(squeezeSpace('a   b\t\tc  \n\n\n\nd\n\n')).toBe('a b c\n\nd')
    expect(squeezeSpace('| name    | age |\r\n| Ann     | 7   |\r\n')).toBe('| name | age |\n| Ann | 7 |')
    expect(squeezeSpace(' \n\t\n ')).toBe('')
  })
  it('keeps up to 16 characters of indentation', () => {
    expect(squeezeSpace('- a\n  - b  c\n\n    code')).toBe('- a\n  - b c\n\n    code')
    expect(squeezeSpace(`a\n${' '.repeat(40)}b`)).toBe(`a\n${' '.repeat(16)}b`)
  })
  it('does not change fenced code inside its lines', () =>
    expect(squeezeSpace("x  y\n```py\ndef f():\n    return 'a  b'   \n\n\n\n    # c\n```\nx  y")).toBe(
      "x y\n```py\ndef f():\n    return 'a  b'\n\n    # c\n```\nx y",
    ))
  it('ends fenced code only at a matching fence', () =>
    expect(squeezeSpace('````md\n```\na  b\n```\nc  d\n````\ne  f\n~~~\ng  h\n```\ni  j')).toBe(
      '````md\n```\na  b\n```\nc  d\n````\ne f\n~~~\ng  h\n```\ni  j',
    ))
  it('does not treat inline code as a fence', () => expect(squeezeSpace('```a``` b  c\nd  e')).toBe('```a``` b c\nd e'))
  verifies('H-13', 'is idempotent and removes only white space', () =>
    fc.assert(
      fc.property(texts, (text) => {
        const squeezed = squeezeSpace(text)
        expect(squeezeSpace(squeezed)).toBe(squeezed)
        expect(bare(squeezed)).toBe(bare(text))
        expect(squeezed.length).toBeLessThanOrEqual(text.length)
      }),
      { numRuns: 500 },
    ),
  )
})
