import { availableParallelism } from 'node:os'

/** Does something with every one of these, as many at a time as there are processors; what came of each, in order. */
export async function abreast<T, R>(
  items: Iterable<T>,
  does: (item: T, at: number) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = []
  const left = items[Symbol.iterator]()
  let taken = 0
  // Each is taken only when there is room for it: together they may be large.
  const lane = async (): Promise<void> => {
    for (let next = left.next(); next.done !== true; next = left.next()) {
      const at = taken++
      results[at] = await does(next.value, at)
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, lane))
  return results
}
