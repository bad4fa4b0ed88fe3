import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ascii35, chars4 } from '../../src/text/estimators.ts'
import { verifies } from '../requirements/verifies.ts'

describe('ascii-3.5', () => {
  verifies('E-11', 'gives 4, 3 and 5 for the examples of the document', () => {
    expect(['Hello world', '你好世界', 'Hello 🌍 world'].map(ascii35.count)).toEqual([4, 3, 5])
  })

  verifies('E-11', 'is ceil(ascii/3.5 + nonAscii/1.5) by UTF-16 unit for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
        const beyond = [...Array(text.length).keys()].filter((at) => text.charCodeAt(at) > 127).length
        expect(ascii35.count(text)).toBe(Math.ceil((text.length - beyond) / 3.5 + beyond / 1.5))
      }),
    )
  })

  it('counts an empty text as 0, U+007F as ASCII and U+0080 as non-ASCII', () => {
    expect(['', '\x7f'.repeat(7), '\x80'.repeat(3), '\ud800'.repeat(3)].map(ascii35.count)).toEqual([0, 2, 2, 2])
  })
})

describe('chars-4', () => {
  verifies('A-04', 'is ceil(length/4)', () => {
    expect(['', 'a', 'abcd', 'abcde', '你好世界', '🌍'].map(chars4.count)).toEqual([0, 1, 1, 2, 1, 1])
    expect(chars4.count('x'.repeat(1_000_001))).toBe(250_001)
  })
})

it('both estimators declare themselves estimates and have no overhead', () => {
  for (const tokenizer of [ascii35, chars4]) {
    expect(tokenizer.kind).toBe('estimate')
    expect(tokenizer.isExact('Hello')).toBe(false)
    expect(tokenizer.overhead).toEqual({ message: 0, name: 0, call: 0, reply: 0 })
  }
  expect([ascii35.name, chars4.name]).toEqual(['ascii-3.5', 'chars-4'])
})
