/** A computation in steps; each step yields the number of characters it has processed. */
export type Work<T> = Generator<number, T, void>

/** Yields to other work on the event loop. */
export type Pause = () => Promise<void>

/** Characters processed between two pauses: about 50 ms of work. */
const sliceChars = 32_768

/**
 * Runs a computation with a pause after each slice.
 *
 * @example
 * await runInSlices(summariseInSteps(messages, undefined, target), () => new Promise((resume) => setImmediate(resume)))
 */
export async function runInSlices<T>(work: Work<T>, pause: Pause): Promise<T> {
  let processed = 0
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    processed += step.value
    if (processed < sliceChars) continue
    processed = 0
    await pause()
  }
}

/** Runs a computation without pauses. */
export function runSync<T>(work: Work<T>): T {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}
