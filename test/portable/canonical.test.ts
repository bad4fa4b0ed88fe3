import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toCanonicalJson } from '../../src/portable/canonical.ts'

describe('toCanonicalJson', () => {
  it('with unsorted and undefined fields › sorts and omits them', () => {
    expect(toCanonicalJson({ b: [1, undefined, null], a: undefined, 9: true, 10: { d: 'ü', c: -0 } })).toBe(
      '{"10":{"c":0,"d":"ü"},"9":true,"b":[1,null,null]}',
    )
    expect(toCanonicalJson(JSON.parse('{"b":1,"__proto__":{"a":2}}'))).toBe('{"__proto__":{"a":2},"b":1}')
  })

  it('with lone surrogates › replaces them in values and escapes them in names', () => {
    expect(toCanonicalJson({ text: 'a\ud83d', '\ud83d': 1, '\udc00': 2 })).toBe(
      '{"text":"a\ufffd","\\ud83d":1,"\\udc00":2}',
    )
  })

  it('with any JSON › is equivalent to JSON.stringify and idempotent', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(toCanonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)))
        expect(toCanonicalJson(JSON.parse(toCanonicalJson(value)))).toBe(toCanonicalJson(value))
      }),
    )
  })
})
