import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findJsonFault, type JsonLimits } from '../../src/providers/jsonStructure.ts'

const limits: JsonLimits = { depth: 8, values: 1_000, fields: 500 }
const filler = 'x'.repeat(70_000)
/** JSON that is long enough to be scanned. */
const long = (json: string): string => `{"filler":"${filler}","value":${json}}`

describe('the structure of JSON', () => {
  it('over a limit › is found before parsing', () => {
    expect(findJsonFault(long('['.repeat(8)), limits)).toBe('depth')
    expect(findJsonFault(long(`[${'1,'.repeat(998)}1]`), limits)).toBe('values')
    expect(findJsonFault(long(`[${'[],'.repeat(600)}1]`), limits)).toBe('values')
    expect(findJsonFault(long(`[${'{"a":1},'.repeat(499)}1]`), limits)).toBe('fields')
    expect(findJsonFault(long('1'.repeat(5_000)), limits)).toBe('digits')
  })

  it('within the limits › passes', () => {
    expect(findJsonFault(long(`${'['.repeat(7)}${']'.repeat(7)}`), limits)).toBeUndefined()
    expect(findJsonFault(long(`[${'1,'.repeat(900)}1]`), limits)).toBeUndefined()
    expect(findJsonFault(long('1'.repeat(4_000)), limits)).toBeUndefined()
    expect(findJsonFault('['.repeat(60_000), limits)).toBeUndefined()
  })

  it('with too many different field names › is found; equal names count once', () => {
    const many = { depth: 8, values: 1_000_000, fields: 1_000_000 }
    const list = (names: number, count: number): string =>
      `[${Array.from({ length: count }, (_, index) => `{"name ${index % names}":1}`).join(',')}]`
    expect(findJsonFault(list(40_000, 40_000), many)).toBe('names')
    expect(findJsonFault(list(20_000, 60_000), many)).toBeUndefined()
    expect(findJsonFault(`[${'"name":1,'.repeat(60_000)}]`, many)).toBeUndefined()
  })

  it('inside strings › does not count', () => {
    const text = fc.string({ unit: fc.constantFrom('"', '\\', '[', '{', ']', ':', ',', '1', 'é', '\n') })
    fc.assert(
      fc.property(text, text, (first, second) => {
        const json = JSON.stringify({ filler, [first]: second })
        expect(findJsonFault(json, { depth: 1, values: 2, fields: 2 })).toBeUndefined()
      }),
    )
    expect(findJsonFault(`{"a":"${'\\\\'.repeat(40_000)}","b":[[]]}`, { depth: 2, values: 9, fields: 9 })).toBe('depth')
  })
})
