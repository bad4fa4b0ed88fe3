import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pieces } from '../../src/tokenizers/pieces.ts'
import { endOfPlain } from '../../src/tokenizers/plain.ts'

const bits = [
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
const text = fc.array(fc.constantFrom(...bits), { minLength: 1, maxLength: 30 }).map((parts) => parts.join(''))

describe('plain pieces', () => {
  it.each(['cl100k_base', 'o200k_base'] as const)('end where %s ends them', (encoding) => {
    const pattern = pieces[encoding]
    const endOf = (said: string, at: number): number => {
      pattern.lastIndex = at
      return pattern.test(said) ? pattern.lastIndex : said.length
    }
    const check = (said: string): void => {
      for (let at = 0; at < said.length; at = endOf(said, at))
        expect([at, endOf(said, at)]).toContain(endOfPlain(said, at))
    }
    fc.assert(fc.property(text, check), { numRuns: 5_000 })
  })

  it('are found without a pattern in what people mostly write', () => {
    const said = 'I have 12345 lamps, (two "blue" ones)...\n\nCould you send them?\n'
    const ends: number[] = []
    for (let at = 0; at < said.length; at = ends.at(-1) as number) ends.push(endOfPlain(said, at))
    expect(ends.map((end, place) => said.slice(ends[place - 1] ?? 0, end))).toEqual([
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
