import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { endOfAsciiPiece } from '../../src/tokenizers/asciiPieces.ts'
import { splitPatterns } from '../../src/tokenizers/splitPatterns.ts'

const fragments = [
  ...'aestzABZ09 5\n\r\t\'".,!?()/-_~\u00a0éſ中٣😀\u0085\x7f\0',
  "'s",
  "'re",
  ' lamp',
  '\n\n',
  '\n/',
  'Hello',
  '1234',
  ' (',
  '...',
]
const arbitraryText = fc
  .array(fc.constantFrom(...fragments), { minLength: 1, maxLength: 30 })
  .map((parts) => parts.join(''))

describe('endOfAsciiPiece', () => {
  it.each(['cl100k_base', 'o200k_base'] as const)(
    'returns the end that the %s pattern finds, or the start',
    (encoding) => {
      const pattern = splitPatterns[encoding]
      const endOf = (text: string, at: number): number => {
        pattern.lastIndex = at
        return pattern.test(text) ? pattern.lastIndex : text.length
      }
      const check = (text: string): void => {
        for (let at = 0; at < text.length; at = endOf(text, at))
          expect([at, endOf(text, at)]).toContain(endOfAsciiPiece(text, at))
      }
      fc.assert(fc.property(arbitraryText, check), { numRuns: 5_000 })
    },
  )

  it('with ordinary prose needs no pattern', () => {
    const text = 'I have 12345 lamps, (two "blue" ones)...\n\nCould you send them?\n'
    const ends: number[] = []
    for (let at = 0; at < text.length; at = ends.at(-1) as number) ends.push(endOfAsciiPiece(text, at))
    expect(ends.map((end, index) => text.slice(ends[index - 1] ?? 0, end))).toEqual([
      'I',
      ' have',
      ' ',
      '123',
      '45',
      ' lamps',
      ',',
      ' (',
      'two',
      ' "',
      'blue',
      '"',
      ' ones',
      ')...\n\n',
      'Could',
      ' you',
      ' send',
      ' them',
      '?\n',
    ])
  })
})
