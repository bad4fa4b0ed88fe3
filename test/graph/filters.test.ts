import { describe, expect, it } from 'vitest'
import type { Json } from '../../src/domain/entry.ts'
import { runSync } from '../../src/domain/work.ts'
import { compileFilters } from '../../src/graph/query.ts'
import type { Filter } from '../../src/graph/types.ts'
import { measureCpu } from '../text/hostileTexts.ts'

const matches = (found: Json, op: Filter['op'], value: Json): boolean => createMatcher(op, value)(found)

function createMatcher(op: Filter['op'], value: Json): (found: Json) => boolean {
  const matches = runSync(compileFilters([{ property: 'text', op, value }]))
  return (found) => runSync(matches({ id: 'a', type: 'note', properties: { text: found }, createdAt: 1, updatedAt: 1 }))
}

describe('compileFilters', () => {
  it('with values of all kinds › compares them by value', () => {
    const values: readonly Json[] = ['1', 1, true, false, null, [], {}, [1, 'a'], { a: [1] }, { a: ['1'] }, '', 'null']
    for (const [index, value] of values.entries()) {
      expect(values.filter((other) => matches(value, 'eq', other))).toEqual([value])
      expect(values.filter((other) => matches(value, 'ne', other))).toHaveLength(values.length - 1)
      expect(matches(value, 'in', [...values])).toBe(true)
      expect(matches(value, 'in', values.toSpliced(index, 1))).toBe(false)
      expect(matches([...values], 'contains', value)).toBe(true)
      expect(matches(values.toSpliced(index, 1), 'contains', value)).toBe(false)
    }
  })

  it('with a long value and many items › takes linear time', () => {
    const text = 'The walrus swims. '.repeat(50_000)
    const cost = (count: number): number => {
      const items = Array.from({ length: count }, (_, index) => `${index}`)
      const lists = items.map((item) => [item])
      return measureCpu(() => {
        expect(matches(text, 'in', items)).toBe(false)
        expect(matches([text], 'in', lists)).toBe(false)
        expect(matches(items, 'contains', text)).toBe(false)
        expect(matches(lists, 'contains', [text])).toBe(false)
      })
    }
    const [few, many] = [cost(5), cost(500)]
    expect(many).toBeLessThan(20 * Math.max(few, 5))
  })
})
