import { availableParallelism } from 'node:os'

/**
 * Maps items with several tasks at once, by default one per processor; returns the results in order. Items are taken
 * lazily, because they may be large.
 */
export async function mapConcurrently<T, R>(
  items: Iterable<T>,
  map: (item: T, index: number) => Promise<R>,
  concurrency = availableParallelism(),
): Promise<readonly R[]> {
  const results: R[] = []
  const iterator = items[Symbol.iterator]()
  let taken = 0
  const work = async (): Promise<void> => {
    for (let next = iterator.next(); next.done !== true; next = iterator.next()) {
      const index = taken++
      results[index] = await map(next.value, index)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work))
  return results
}
