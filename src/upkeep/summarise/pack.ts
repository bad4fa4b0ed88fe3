/** How often something that no longer fits is passed over for what comes after it. */
const patience = 6

/**
 * As many as hold together, taken from the front; a few that do not hold are passed over. What holds must hold for less too:
 * it is asked a few times only. `guess` is about how many there will be.
 */
export function pack<T>(order: readonly T[], holds: (taken: readonly T[]) => boolean, guess: number): readonly T[] {
  const count = largest(order.length, (taken) => holds(order.slice(0, taken)), guess)
  let kept = order.slice(0, count)
  let passed = 0
  for (const next of order.slice(count + 1)) {
    if (passed > patience) break
    const more = [...kept, next]
    if (holds(more)) kept = more
    else passed++
  }
  return kept
}

/** The largest count up to a limit for which a condition holds that, once false, stays false; tried from a guess outwards. */
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
