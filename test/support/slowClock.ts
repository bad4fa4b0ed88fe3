import { vi } from 'vitest'

/** Longer than a turn of the event loop may take before long work pauses. */
const longerThanTurnMs = 9

/** Advances the clock with every look at it, so that long work pauses as often on a fast machine as on a slow one. */
export function useSlowClock(stepMs = longerThanTurnMs): Disposable {
  let now = performance.now()
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += stepMs))
  return { [Symbol.dispose]: () => clock.mockRestore() }
}

/** Waits for a promise; returns its value and the number of turns of the event loop meanwhile. */
export async function countTurns<T>(promise: Promise<T>): Promise<{ readonly value: T; readonly turns: number }> {
  let isDone = false
  let turns = 0
  const waiting = promise.finally(() => (isDone = true))
  for (; !isDone; turns++) await new Promise((resolve) => setImmediate(resolve))
  return { value: await waiting, turns }
}
