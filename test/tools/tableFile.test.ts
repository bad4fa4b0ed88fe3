import { describe, expect, it } from 'vitest'
import {
  encodeWordTable,
  parseFullTable,
  quantizeRows,
  readStems,
  type TrainedArrays,
} from '../../tools/recall-table/tableFile.ts'

// Two stems and a hash bucket.
const arrays: TrainedArrays = {
  rows: 3,
  dimensions: 4,
  values: Int8Array.of(-7, 0, 7, 1, 1, 2, 3, -4, 5, 5, 5, 5),
  weights: Float32Array.of(1, Math.E, Math.E ** 4),
}
const stems = ['said', 'citi']

/** Writes the full table of the arrays: all rows, without stems. */
function encodeFullTable(): Uint8Array {
  const { rows, dimensions, low, high, weights, vectors } = quantizeRows(arrays)
  const header = new DataView(new ArrayBuffer(16))
  header.setUint32(0, rows, true)
  header.setUint32(4, dimensions, true)
  header.setFloat32(8, low, true)
  header.setFloat32(12, high, true)
  return Uint8Array.of(...new Uint8Array(header.buffer), ...weights, ...vectors)
}

describe('encodeWordTable', () => {
  it('with trained arrays › writes the documented bytes', () => {
    const file = encodeWordTable(quantizeRows(arrays), stems)
    const view = new DataView(file.buffer)
    expect(new TextDecoder().decode(file.subarray(0, 4))).toBe('TKW1')
    expect([4, 8, 12].map((at) => view.getUint32(at, true))).toEqual([2, 4, 9])
    expect(view.getFloat32(16, true)).toBe(0)
    expect(view.getFloat32(20, true)).toBeCloseTo(4)
    expect(new TextDecoder().decode(file.subarray(24, 33))).toBe('said\nciti')
    expect([...file.subarray(33)]).toEqual([0, 64, 0x81, 0x9f, 0xa9, 0x4b])
  })
  it('with a full table of the same rows › writes the same bytes', () =>
    expect(encodeWordTable(parseFullTable(encodeFullTable()), stems)).toEqual(
      encodeWordTable(quantizeRows(arrays), stems),
    ))
  it('with equal weights › writes the lowest weight for all', () => {
    const trained = quantizeRows({ ...arrays, weights: Float32Array.of(2, 2, 2) })
    expect([...trained.weights]).toEqual([0, 0, 0])
  })
  it.each([
    [['a', 'b', 'c', 'd'], 'only 3 were trained'],
    [['a', ''], 'empty line'],
    [['a', 'b c'], 'space'],
    [['a', 'a'], 'twice'],
  ])('with the stems %j › reports %s', (list, problem) =>
    expect(() => encodeWordTable(quantizeRows(arrays), list)).toThrow(problem),
  )
})

describe('quantizeRows', () => {
  it.each<[string, Partial<TrainedArrays>, string]>([
    ['an odd number of dimensions', { dimensions: 3 }, 'even number'],
    ['missing values', { values: new Int8Array(8) }, 'hold 8 values'],
    ['a value beyond four bits', { values: new Int8Array(12).fill(8) }, 'from -7 to 7'],
    ['a weight of zero', { weights: Float32Array.of(1, 0, 1) }, 'positive'],
  ])('with %s › reports the problem', (_, change, problem) =>
    expect(() => quantizeRows({ ...arrays, ...change })).toThrow(problem),
  )
})

describe('parseFullTable', () => {
  it('with a file cut short › reports the expected size', () => {
    expect(() => parseFullTable(encodeFullTable().subarray(0, 20))).toThrow('has 25 bytes, this file 20')
    expect(() => parseFullTable(new Uint8Array(3))).toThrow('shorter than its header')
  })
})

describe('readStems', () => {
  it('with a table file › returns its stems', () =>
    expect(readStems(encodeWordTable(quantizeRows(arrays), stems))).toEqual(stems))
  it('with another file › reports it', () => expect(() => readStems(new Uint8Array(30))).toThrow('not a word table'))
})
