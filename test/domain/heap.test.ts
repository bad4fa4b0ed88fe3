import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Heap } from '../../src/domain/heap.ts'
import { verifies } from '../requirements/verifies.ts'

type Item = { readonly name: number; time: number; index: number }

/** Creates a heap by time whose items know their positions. */
const createHeap = (onCompare = (): void => undefined): Heap<Item> =>
  new Heap(
    (a, b) => {
      onCompare()
      return a.time < b.time
    },
    (item, index) => {
      item.index = index
    },
  )

const popAll = (heap: Heap<Item>): number[] => {
  const times: number[] = []
  for (let item = heap.pop(); item !== undefined; item = heap.pop()) times.push(item.time)
  return times
}

const time = fc.integer({ min: 0, max: 20 })
const operation = fc.record({
  type: fc.constantFrom('push', 'push', 'push', 'pop', 'replaceTop', 'update', 'remove'),
  time,
  pick: fc.nat(),
})

describe('Heap', () => {
  it('with any operations › pops the remaining items in order', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 80 }), time, (operations, limit) => {
        const heap = createHeap()
        let items: Item[] = []
        for (const [name, { type, time, pick }] of operations.entries()) {
          const added: Item = { name, time, index: -1 }
          const picked = items[pick % Math.max(1, items.length)]
          const times = items.map((item) => item.time)
          expect(heap.top?.time).toBe(times.length === 0 ? undefined : Math.min(...times))
          if (type === 'push') {
            heap.push(added)
            items.push(added)
          } else if (type === 'pop') {
            const popped = heap.pop()
            items = items.filter((item) => item !== popped)
          } else if (picked === undefined) continue
          else if (type === 'replaceTop') {
            items = [...items.filter((item) => item !== heap.top), added]
            heap.replaceTop(added)
          } else if (type === 'update') {
            picked.time = time
            heap.update(picked.index)
          } else {
            heap.remove(picked.index)
            items = items.filter((item) => item !== picked)
          }
          expect(heap.size).toBe(items.length)
        }
        expect(new Set(heap.listWhile((item) => item.time <= limit))).toEqual(
          new Set(items.filter((item) => item.time <= limit)),
        )
        expect(popAll(heap)).toEqual(items.map((item) => item.time).sort((a, b) => a - b))
      }),
    )
  })

  const shuffled = Array.from({ length: 50_000 }, (_, index): Item => {
    return { name: index, time: ((index * 7_919) % 50_000) + 1, index: -1 }
  })

  verifies('T-06', 'listWhile › with few matching items › visits those and their children only', () => {
    const heap = createHeap()
    for (const item of shuffled) heap.push({ ...item })
    let visits = 0
    const listUntil = (limit: number): readonly Item[] =>
      heap.listWhile(({ time }) => {
        visits++
        return time <= limit
      })
    expect(listUntil(0)).toEqual([])
    expect(visits).toBe(1)
    expect(listUntil(100)).toHaveLength(100)
    expect(visits).toBeLessThanOrEqual(1 + 201)
  })

  it('update and remove › of many items › compare a logarithmic number of items', () => {
    let comparisons = 0
    const heap = createHeap(() => {
      comparisons++
    })
    const items = shuffled.map((item) => ({ ...item }))
    for (const item of items) heap.push(item)
    comparisons = 0
    for (const item of items.slice(0, 1_000)) {
      item.time = 60_000
      heap.update(item.index)
    }
    for (const item of items.slice(1_000, 2_000)) heap.remove(item.index)
    // Sixteen levels with at most two comparisons each.
    expect(comparisons).toBeLessThan(2_000 * 2 * 17)
    expect(heap.size).toBe(49_000)
  })
})
