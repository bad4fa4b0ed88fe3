import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compactJson, listJsonTexts, mapJsonStrings } from '../../src/text/json.ts'

describe('compactJson', () => {
  it('removes white space between tokens and nothing else', () => {
    expect(compactJson('{\n  "a": [1, 2],\n  "b": "x  y"\n}')).toBe('{"a":[1,2],"b":"x  y"}')
    expect(compactJson('[ 12345678901234567890.10, "a\\" b" ]')).toBe('[12345678901234567890.10,"a\\" b"]')
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(compactJson(JSON.stringify(value, undefined, 2)))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })
  it.each(['{ not json', 'plain text', '', '[1, 2', '12  '])('returns %j unchanged', (text) =>
    expect(compactJson(text)).toBe(text),
  )
})

describe('mapJsonStrings', () => {
  it('with any JSON › replaces the string values and nothing else', () => {
    const value = { a: ['x', 1, null, { x: 'y' }], b: true, c: 'z' }
    expect(mapJsonStrings(value, (text) => text.toUpperCase())).toEqual({
      a: ['X', 1, null, { x: 'Y' }],
      b: true,
      c: 'Z',
    })
    fc.assert(
      fc.property(fc.jsonValue(), (json) => {
        expect(mapJsonStrings(json, (text) => text)).toEqual(json)
      }),
    )
  })
})

describe('listJsonTexts', () => {
  it('with nested values › lists property names and primitive values', () => {
    expect(listJsonTexts({ a: ['x', 1, null, { b: false }], c: {} })).toEqual([
      'a',
      'x',
      '1',
      'null',
      'b',
      'false',
      'c',
    ])
    expect(listJsonTexts('x')).toEqual(['x'])
  })
})
