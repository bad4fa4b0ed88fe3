import { vi } from 'vitest'

/** Longer than a turn of the event loop may take before long work pauses. */
const stepMs = 9

/** Advances the clock with every look at it, so that long work pauses as often on a fast machine as on a slow one. */
export function useSlowClock(): Disposable {
  let now = performance.now()
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += stepMs))
  return { [Symbol.dispose]: () => clock.mockRestore() }
}
