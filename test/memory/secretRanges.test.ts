import { describe, expect, it } from 'vitest'
import { addLabel, findLabel } from '../../src/memory/secretLabels.ts'
import { addOccurrences, mergeRanges, splitByParts } from '../../src/memory/secretRanges.ts'
import { SecretValues } from '../../src/memory/secretValues.ts'

const range = (start: number, end: number) => ({ start, end })

describe('mergeRanges', () => {
  it('with ranges in any order › sorts them, merges overlaps and keeps neighbours apart', () => {
    expect(mergeRanges([])).toEqual([])
    expect(mergeRanges([range(4, 6), range(0, 2)])).toEqual([range(0, 2), range(4, 6)])
    expect(mergeRanges([range(2, 4), range(0, 2)])).toEqual([range(0, 2), range(2, 4)])
    expect(mergeRanges([range(0, 3), range(2, 5), range(4, 9)])).toEqual([range(0, 9)])
    expect(mergeRanges([range(0, 9), range(2, 5), range(3, 9)])).toEqual([range(0, 9)])
    expect(mergeRanges([range(1, 5), range(1, 5)])).toEqual([range(1, 5)])
    expect(mergeRanges([range(0, 9), range(2, 5)])).toEqual([range(0, 9)])
  })
})

describe('addOccurrences', () => {
  it('without an occurrence outside the ranges › returns the same ranges', () => {
    const ranges = [range(0, 3)]
    expect(addOccurrences(ranges, 'abc', 'xyz')).toBe(ranges)
    expect(addOccurrences(ranges, 'abc', 'abc')).toBe(ranges)
  })

  it('with occurrences before, between and after the ranges › adds those that overlap none', () => {
    expect(addOccurrences([], 'abc abc', 'abc')).toEqual([range(0, 3), range(4, 7)])
    expect(addOccurrences([range(3, 4)], 'abcXabc', 'abc')).toEqual([range(0, 3), range(3, 4), range(4, 7)])
    expect(addOccurrences([range(2, 5)], 'abcdabc', 'abc')).toEqual([range(2, 5)])
    expect(addOccurrences([range(0, 1), range(8, 9)], '- abc - -abc', 'abc')).toEqual([
      range(0, 1),
      range(2, 5),
      range(8, 9),
      range(9, 12),
    ])
    expect(addOccurrences([range(0, 1), range(5, 7)], '-abc-abc', 'abc')).toEqual([
      range(0, 1),
      range(1, 4),
      range(5, 7),
    ])
  })

  it('with overlapping occurrences › takes the first', () => {
    expect(addOccurrences([], 'aaaaa', 'aa')).toEqual([range(0, 2), range(2, 4)])
  })
})

describe('splitByParts', () => {
  const split = (parts: readonly string[], joinerLength: number, ...ranges: ReturnType<typeof range>[]) =>
    [...splitByParts(parts, joinerLength, ranges)].map((pieces) =>
      pieces.map(({ part, start, end }) => part.slice(start, end)),
    )

  it('with ranges inside and across parts › cuts them at the ends of the parts', () => {
    expect(split(['abc', 'def', 'ghi'], 0, range(0, 2), range(2, 4), range(5, 9))).toEqual([
      ['ab'],
      ['c', 'd'],
      ['f', 'ghi'],
    ])
    expect(split(['abc', 'def', 'ghi'], 0, range(1, 8))).toEqual([['bc', 'def', 'gh']])
  })

  it('with a joiner › leaves it out', () => {
    expect(split(['abc', 'def'], 1, range(0, 7))).toEqual([['abc', 'def']])
    expect(split(['abc', 'def'], 1, range(3, 4), range(4, 5))).toEqual([[], ['d']])
    expect(split(['abc', '', 'def'], 1, range(2, 6), range(6, 9))).toEqual([['c', 'd'], ['ef']])
  })

  it('with several ranges in one part, after others › finds each', () => {
    expect(split(['ab', 'cdefgh', 'ij'], 0, range(0, 1), range(2, 3), range(4, 5), range(7, 9))).toEqual([
      ['a'],
      ['c'],
      ['e'],
      ['h', 'i'],
    ])
    expect(split(['ab', 'cd', 'ef'], 1, range(0, 3), range(3, 5), range(6, 8))).toEqual([['ab'], ['cd'], ['ef']])
  })

  it('with a range that starts at the end of a part, or after all parts › skips the parts before', () => {
    expect(split(['abc', 'def'], 0, range(3, 6))).toEqual([['def']])
    expect(split(['abc'], 0, range(5, 6))).toEqual([[]])
    expect(split([], 0, range(0, 1))).toEqual([[]])
  })
})

describe('findLabel', () => {
  it.each([
    'password',
    'pw',
    'api_key',
    'secret',
    'pin',
    'cvv',
    'ssn',
    'cookie',
    'credentials',
    'passphrase',
    'seed phrase',
  ])('of the name %s › is the name as a label', (name) => {
    expect([findLabel(name), findLabel(name)]).toEqual([`${name}: `, `${name}: `])
  })

  it('of a plural › is the singular', () => {
    expect([findLabel('tokens'), findLabel('API_KEYS')]).toEqual(['token: ', 'API_KEY: '])
  })

  it.each([
    '',
    'p',
    'note',
    'name',
    'value',
    'content',
    'text',
    'descriptions',
    'a name that marks nothing at all here',
    'ghp_Ab3dE7fGh1jKlMn0pQrStUvWx2Yz34567890',
    'AKIAIOSFODNN7Q2MPVLE',
  ])('of the name %j › is undefined', (name) => {
    expect(findLabel(name)).toBeUndefined()
  })

  it('of a name with more than 32 characters › follows the same rules', () => {
    expect(findLabel('office_router_administrator_password')).toBe('office_router_administrator_password: ')
  })
})

describe('addLabel', () => {
  it('with a new label › puts it first and keeps two', () => {
    expect(addLabel([], 'a: ')).toEqual(['a: '])
    expect(addLabel(['a: '], 'b: ')).toEqual(['b: ', 'a: '])
    expect(addLabel(['b: ', 'a: '], 'c: ')).toEqual(['c: ', 'b: '])
  })

  it('without a label or with one that holds already › returns the same list', () => {
    const labels = ['a: ', 'b: ']
    expect(addLabel(labels, undefined)).toBe(labels)
    expect(addLabel(labels, 'b: ')).toBe(labels)
  })
})

describe('SecretValues', () => {
  it('with values added, replaced and deleted › counts their memory', () => {
    const values = new SecretValues()
    values.set('a', 'xx').set('b', 'yyy')
    expect(values.bytes).toBe(150 + 4 + 150 + 6)
    values.set('a', 'xx')
    expect([values.bytes, [...values.keys()]]).toEqual([310, ['a', 'b']])
    values.set('a', 'z')
    expect([values.bytes, [...values]]).toEqual([
      308,
      [
        ['b', 'yyy'],
        ['a', 'z'],
      ],
    ])
    expect([values.delete('a'), values.delete('a'), values.bytes]).toEqual([true, false, 156])
  })

  it('beyond 256,000 bytes › drops the oldest values', () => {
    const values = new SecretValues()
    const half = 'x'.repeat((128_000 - 150) / 2)
    values.set('a', half).set('b', half)
    expect([values.bytes, values.size]).toEqual([256_000, 2])
    values.set('c', '')
    expect([values.bytes, [...values.keys()]]).toEqual([128_150, ['b', 'c']])
  })

  it('with a single value beyond the limit › keeps it', () => {
    const values = new SecretValues()
    values.set('a', 'x').set('b', 'x'.repeat(200_000))
    expect([...values.keys()]).toEqual(['b'])
  })
})
