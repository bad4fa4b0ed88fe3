import { describe, expect } from 'vitest'
import { findSecrets } from '../../src/text/secrets.ts'
import { verifies } from '../requirements/verifies.ts'

const found = (text: string): readonly string[] => findSecrets(text).map(({ start, end }) => text.slice(start, end))
const card = `4${'1'.repeat(15)}`
const spaces = ['\u00a0', '\u2000', '\u2007', '\u2009', '\u200a', '\u202f', '\u205f', '\u3000']
const hyphens = ['\u2010', '\u2011', '\u2212', '\uff0d']

describe('findSecrets › unusual signs', () => {
  verifies('X-08', 'finds a secret among colours, in its place', () => {
    for (const sign of ['\u001b', '\\u001b'])
      for (const [start, end] of [
        ['[1m', '[0m'],
        ['[1;38;5;208m', '[m'],
      ]) {
        expect(found(`In ${sign}${start}password${sign}${end}: wm7Fq2xL9 now`)).toEqual(['wm7Fq2xL9'])
        expect(found(`${sign}${start}${card}${sign}${end}`)).toEqual([card])
      }
  })

  verifies('X-08', 'finds a secret after any space and with any hyphens', () => {
    const afterSpace = spaces.map((space) => found(`The password${space}is${space}wm7Fq2xL9${space}now`))
    expect(afterSpace).toEqual(spaces.map(() => ['wm7Fq2xL9']))
    const numbers = hyphens.map((hyphen) => ['123', '45', '6789'].join(hyphen))
    expect(numbers.map((number) => found(`ssn: ${number} ok`))).toEqual(numbers.map((number) => [number]))
  })

  verifies('X-08', 'finds a card number with invisible signs, dashes or dots between its digits', () => {
    for (const sign of ['\u00ad', '\u2060', '\ufeff', '−', '—', '·', '•']) {
      const number = ['4111', '1111', '1111', '1111'].join(sign)
      expect(found(number)).toEqual([number])
    }
  })

  verifies('X-08', 'finds a secret in wide signs or between marks of Markdown', () => {
    expect(found('password＝wm7Fq2xL9')).toEqual(['wm7Fq2xL9'])
    const wide = `４${'１'.repeat(15)}`
    expect(found(`Card ${wide} now`)).toEqual([wide])
    expect(found('**PIN:** 4821')).toEqual(['4821'])
  })
})
