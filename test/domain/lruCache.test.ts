import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LruCache } from '../../src/domain/lruCache.ts'

type Entry = { readonly key: number; value: number; size: number }

/** Reference with the same behaviour: a list in order of use, oldest first. */
class EntryList {
  entries: Entry[] = []
  readonly maxEntries: number
  readonly maxTotalSize: number

  constructor(maxEntries: number, maxTotalSize: number) {
    this.maxEntries = maxEntries
    this.maxTotalSize = maxTotalSize
  }

  get totalSize(): number {
    return this.entries.reduce((sum, { size }) => sum + size, 0)
  }

  get(key: number): number | undefined {
    const found = this.entries.find((entry) => entry.key === key)
    if (found !== undefined) this.entries = [...this.entries.filter((entry) => entry !== found), found]
    return found?.value
  }

  set(key: number, value: number, size: number): void {
    this.deleteWhere((other) => other === key)
    this.entries.push({ key, value, size })
    while (this.entries.length > 1 && (this.entries.length > this.maxEntries || this.totalSize > this.maxTotalSize))
      this.entries.shift()
  }

  deleteWhere(matches: (key: number) => boolean): void {
    this.entries = this.entries.filter(({ key }) => !matches(key))
  }
}

const key = fc.integer({ min: 0, max: 7 })
const operation = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constant('set' as const), key, size: fc.integer({ min: 0, max: 6 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constantFrom('get' as const, 'peek' as const, 'delete' as const), key }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('deleteWhere' as const, 'clear' as const), key }) },
)

describe('LruCache', () => {
  it('with any operations › holds the same entries in the same order as a list', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 6 }),
        fc.integer({ min: 0, max: 20 }),
        fc.array(operation, { maxLength: 60 }),
        (maxEntries, maxTotalSize, operations) => {
          const cache = new LruCache<number, number>({ maxEntries, maxTotalSize })
          const list = new EntryList(maxEntries, maxTotalSize)
          for (const [step, { key, ...operation }] of operations.entries()) {
            const isMatch = (other: number): boolean => other % 3 === key % 3
            if (operation.type === 'set') {
              cache.set(key, step, operation.size)
              list.set(key, step, operation.size)
            } else if (operation.type === 'get') expect(cache.get(key)).toBe(list.get(key))
            else if (operation.type === 'peek')
              expect(cache.peek(key)).toBe(list.entries.find((entry) => entry.key === key)?.value)
            else if (operation.type === 'delete') {
              cache.delete(key)
              list.deleteWhere((other) => other === key)
            } else if (operation.type === 'deleteWhere') {
              cache.deleteWhere(isMatch)
              list.deleteWhere(isMatch)
            } else {
              cache.clear()
              list.entries = []
            }
            expect([...cache]).toEqual(list.entries.map(({ key, value }) => [key, value]))
            expect(cache.oldest).toEqual([...cache][0])
            expect([cache.size, cache.totalSize]).toEqual([list.entries.length, list.totalSize])
            expect(cache.has(key)).toBe(list.entries.some((entry) => entry.key === key))
          }
        },
      ),
    )
  })

  it('iteration › with the current entry deleted › continues with the next', () => {
    const cache = new LruCache<string, number>()
    for (const [index, name] of ['a', 'b', 'c'].entries()) cache.set(name, index)
    const visited: string[] = []
    for (const [name] of cache) {
      visited.push(name)
      cache.delete(name)
    }
    expect(visited).toEqual(['a', 'b', 'c'])
    expect(cache.size).toBe(0)
  })

  it('set › with an entry above the total size › keeps only this entry', () => {
    const cache = new LruCache<string, number>({ maxTotalSize: 10 })
    cache.set('a', 1, 4)
    cache.set('b', 2, 11)
    expect([...cache]).toEqual([['b', 2]])
  })
})
