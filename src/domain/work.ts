/** A computation in steps; each step yields the number of characters it has processed. */
export type Work<T> = Generator<number, T, void>

/** Yields to other work on the event loop, or returns undefined if that is not due yet. */
export type Pause = () => Promise<void> | undefined

/** Characters processed between two pauses: 1 to 2 ms of the slowest work. */
const sliceChars = 1_024

/**
 * Runs a computation with a pause after each slice.
 *
 * @example
 * await runInSlices(summariseInSteps(messages, undefined, target), () => new Promise((resume) => setImmediate(resume)))
 */
export async function runInSlices<T>(work: Work<T>, pause: Pause): Promise<T> {
  const slices = toSlices(work)
  for (;;) {
    const step = slices.next()
    if (step.done === true) return step.value
    const waiting = pause()
    if (waiting !== undefined) await waiting
  }
}

/** Runs a computation and yields where it should pause. */
export function* toSlices<T>(work: Work<T>): Generator<void, T, void> {
  let processed = 0
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    processed += step.value
    if (processed < sliceChars) continue
    processed = 0
    yield
  }
}

/** Runs a computation without pauses. */
export function runSync<T>(work: Work<T>): T {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}
