import { describe, expect, it } from 'vitest'
import { LruCache } from '../../../src/server/observability/lruCache.ts'

describe('LruCache', () => {
  const cacheAfter = (maxEntries: number, ...keys: readonly string[]): LruCache<{ uses: number }> => {
    const cache = new LruCache(maxEntries, () => ({ uses: 0 }))
    for (const key of keys) cache.getOrCreate(key).uses++
    return cache
  }
  const keysOf = (cache: LruCache<{ uses: number }>) =>
    ['a', 'b', 'c', 'd', 'e'].filter((key) => cache.get(key) !== undefined).join('')

  it('drops the least recently used entry when it is full', () => {
    expect(keysOf(cacheAfter(3, 'a', 'b', 'c', 'a', 'd'))).toBe('acd')
    expect(keysOf(cacheAfter(3, 'a', 'b', 'c', 'b', 'b', 'a', 'd', 'e'))).toBe('ade')
    expect(cacheAfter(3, 'a', 'b', 'a').get('a')).toEqual({ uses: 2 })
  })

  it('get does not mark an entry as used', () => {
    const cache = cacheAfter(2, 'a', 'b')
    cache.get('a')
    cache.getOrCreate('c')
    expect(keysOf(cache)).toBe('bc')
  })

  it.each([
    ['a', 'cde'],
    ['b', 'cde'],
    ['c', 'bde'],
  ])('deleteWhere of %s keeps the order of the others', (deleted, remaining) => {
    const cache = cacheAfter(3, 'a', 'b', 'c')
    cache.deleteWhere((key) => key === deleted)
    for (const key of ['d', 'e']) cache.getOrCreate(key)
    expect(keysOf(cache)).toBe(remaining)
  })

  it('works after all entries were deleted', () => {
    const cache = cacheAfter(2, 'a', 'b')
    cache.deleteWhere(() => true)
    for (const key of ['c', 'd', 'e']) cache.getOrCreate(key)
    expect(keysOf(cache)).toBe('de')
  })
})
