import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonical } from '../../src/portable/canonical.ts'

describe('canonical JSON', () => {
  it('has its fields in the order of their names, numbers or not, and nothing it can do without', () => {
    expect(canonical({ b: [1, undefined, null], a: undefined, 9: true, 10: { d: 'ü', c: -0 } })).toBe(
      '{"10":{"c":0,"d":"ü"},"9":true,"b":[1,null,null]}',
    )
    expect(canonical(JSON.parse('{"b":1,"__proto__":{"a":2}}'))).toBe('{"__proto__":{"a":2},"b":1}')
  })

  it('is well-formed text, and keeps names apart that are not', () => {
    expect(canonical({ text: 'a\ud83d', '\ud83d': 1, '\udc00': 2 })).toBe('{"text":"a\ufffd","\\ud83d":1,"\\udc00":2}')
  })

  it('says the same as JSON does, and the same again', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonical(value))).toEqual(JSON.parse(JSON.stringify(value)))
        expect(canonical(JSON.parse(canonical(value)))).toBe(canonical(value))
      }),
    )
  })
})
