/** Items that may be skipped because they do not fit, before packing stops. */
const maxMisses = 6

/**
 * Takes items from the front as long as they fit together; skips a few that do not. `fits` must be monotonic and is called
 * rarely. `guess` is the expected number of items.
 */
export function pack<T>(items: readonly T[], fits: (taken: readonly T[]) => boolean, guess: number): readonly T[] {
  const count = largest(items.length, (taken) => fits(items.slice(0, taken)), guess)
  let packed = items.slice(0, count)
  let misses = 0
  for (const next of items.slice(count + 1)) {
    if (misses > maxMisses) break
    const more = [...packed, next]
    if (fits(more)) packed = more
    else misses++
  }
  return packed
}

/** Finds the largest count up to `limit` for which a monotonic condition holds, searching outwards from a guess. */
export function largest(limit: number, holds: (count: number) => boolean, guess = 1): number {
  let low = 0
  let high = limit + 1
  let step = Math.max(1, guess >> 4)
  let next = Math.min(Math.max(1, guess), limit)
  while (high - low > 1) {
    if (holds(next)) low = next
    else high = next
    const isBracketed = low > 0 && high <= limit
    step *= 2
    next = isBracketed ? (low + high) >> 1 : low > 0 ? Math.min(low + step, limit) : Math.max(high - step, 1)
    if (next <= low || next >= high) next = (low + high) >> 1
  }
  return low
}
