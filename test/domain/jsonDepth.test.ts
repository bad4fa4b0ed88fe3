import { describe, expect, it } from 'vitest'
import { exceedsDepth } from '../../src/domain/jsonDepth.ts'

describe('exceedsDepth', () => {
  it('with nested lists and objects › counts both', () => {
    const value = { a: [{ b: [] }] }
    expect([0, 1, 2, 3, 4].map((levels) => exceedsDepth(value, levels))).toEqual([true, true, true, true, false])
    expect(exceedsDepth('text', 0)).toBe(false)
  })
})
