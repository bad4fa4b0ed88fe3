/** Work that may be interrupted: after each step it tells how many characters it has gone through. */
export type Work<T> = Generator<number, T, void>

/** Lets others have their turn. */
export type Pause = () => Promise<void>

/** So many characters are gone through at a time, which takes some 50 ms: whoever waits for an answer hardly notices. */
const stint = 32_768

/**
 * Does work with a pause after each stint.
 *
 * @example
 * await paced(extracting(messages), () => new Promise((resume) => setImmediate(resume)))
 */
export async function paced<T>(work: Work<T>, pause: Pause): Promise<T> {
  let done = 0
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    done += step.value
    if (done < stint) continue
    done = 0
    await pause()
  }
}

/** Does work in one go. */
export function finished<T>(work: Work<T>): T {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}
