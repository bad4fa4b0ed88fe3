import type { Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'

/** How long to wait: for the first byte of an answer, for each next one, and for the whole reply, retries included. */
export type Timeouts = { readonly first: Millis; readonly idle: Millis; readonly total: Millis }

export const defaultTimeouts: Timeouts = { first: 120_000, idle: 60_000, total: 600_000 }

/** Gives up when the caller does or when time is up; `signal.reason` then is the error to throw. */
export type Deadline = {
  readonly signal: AbortSignal
  /** From now on `message` is what went wrong if nothing happens for so long. */
  expect(within: Millis, message: string): void
  /** What was expected has happened. */
  met(): void
  /** Leaves no timer and no listener behind. */
  end(): void
}

/** The longest time a timer can wait; anything longer would fire at once. */
const forever = 2_147_483_647

/** Starts the clock for a whole reply from `where`. */
export function startDeadline(where: string, total: Millis, caller: AbortSignal | undefined): Deadline {
  const controller = new AbortController()
  const stop = (): void =>
    controller.abort(
      new MemoryError('aborted', `The request to ${where} was stopped by the caller.`, { cause: caller?.reason }),
    )
  const after = (ms: Millis, message: string) =>
    setTimeout(() => controller.abort(new MemoryError('timeout', message)), Math.min(ms, forever))
  const whole = after(
    total,
    `The reply of ${where} took longer than ${total} ms in all. Ask for less, or allow a longer total time.`,
  )
  let step: ReturnType<typeof setTimeout> | undefined
  if (caller?.aborted) stop()
  caller?.addEventListener('abort', stop)
  return {
    signal: controller.signal,
    expect(within, message) {
      clearTimeout(step)
      step = after(within, message)
    },
    met: () => clearTimeout(step),
    end() {
      clearTimeout(step)
      clearTimeout(whole)
      caller?.removeEventListener('abort', stop)
    },
  }
}

/** Lets time pass; an abort ends it early. */
export function pause(ms: Millis, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal.addEventListener('abort', stop, { once: true })
  })
}
