import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compactJson } from '../../src/text/json.ts'

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
