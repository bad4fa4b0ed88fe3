import type { Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { connectionLostError } from './errors.ts'

/** Timeouts of a request in milliseconds. */
export type Timeouts = {
  /** Until the first byte of the response body. */
  readonly firstByte: Millis
  /** Between two chunks of the response body. */
  readonly idle: Millis
  /** For the whole reply, retries included. */
  readonly total: Millis
}

export const defaultTimeouts: Timeouts = { firstByte: 120_000, idle: 60_000, total: 600_000 }

/** Aborts when the caller aborts or a timeout expires; `signal.reason` is then the error to throw. */
export type Deadline = {
  readonly signal: AbortSignal
  /** Starts the timer of the current step and replaces the previous one; aborts with `message` when it expires. */
  startStep(timeout: Millis, message: string): void
  /** Stops the timer of the current step. */
  endStep(): void
  /** Removes all timers and listeners. */
  dispose(): void
}

/** The largest delay setTimeout supports; larger values fire immediately. */
const maxTimerDelayMs = 2_147_483_647

/** Time for reading the rest of a body after the reply is complete, so that the connection can be reused. */
const drainTimeoutMs: Millis = 250

/** Starts the total timeout of a request. */
export function startDeadline(url: string, total: Millis, callerSignal: AbortSignal | undefined): Deadline {
  const controller = new AbortController()
  const abortByCaller = (): void =>
    controller.abort(
      new MemoryError('aborted', `The request to ${url} was stopped by the caller.`, { cause: callerSignal?.reason }),
    )
  const startTimer = (ms: Millis, message: string) =>
    setTimeout(() => controller.abort(new MemoryError('timeout', message)), Math.min(ms, maxTimerDelayMs))
  const totalTimer = startTimer(
    total,
    `The reply of ${url} took longer than ${total} ms in all. Request a shorter reply, or raise the total timeout.`,
  )
  let stepTimer: ReturnType<typeof setTimeout> | undefined
  if (callerSignal?.aborted) abortByCaller()
  callerSignal?.addEventListener('abort', abortByCaller)
  return {
    signal: controller.signal,
    startStep(timeout, message) {
      clearTimeout(stepTimer)
      stepTimer = startTimer(timeout, message)
    },
    endStep: () => clearTimeout(stepTimer),
    dispose() {
      clearTimeout(stepTimer)
      clearTimeout(totalTimer)
      callerSignal?.removeEventListener('abort', abortByCaller)
    },
  }
}

/** A response body that fails when its deadline expires. */
export type TimedBody = {
  readonly body: ReadableStream<Uint8Array>
  /** Declares the reply complete: the rest is read for a short time only, so that the connection can be reused. */
  drain(): void
}

/**
 * Applies the idle timeout to each read of a response body. Reading to the end or cancelling disposes of the deadline
 * and releases the connection.
 */
export function applyDeadline(response: Response, url: string, deadline: Deadline, idle: Millis): TimedBody {
  const reader = (response.body ?? new Blob([]).stream()).getReader()
  // The first chunk is still covered by the first-byte timeout, which the request started.
  let phase: 'first' | 'streaming' | 'draining' = 'first'
  const source: UnderlyingDefaultSource<Uint8Array> = {
    async pull(controller) {
      if (phase === 'streaming')
        deadline.startStep(
          idle,
          `${url} stopped in the middle of its reply and sent nothing for ${idle} ms. Try again, or raise the idle timeout.`,
        )
      try {
        const chunk = await reader.read()
        if (phase !== 'draining') deadline.endStep()
        if (phase === 'first') phase = 'streaming'
        if (!chunk.done) return controller.enqueue(chunk.value)
        deadline.dispose()
        controller.close()
      } catch (error) {
        deadline.dispose()
        controller.error(deadline.signal.aborted ? deadline.signal.reason : connectionLostError(url, error))
      }
    },
    async cancel() {
      deadline.dispose()
      await reader.cancel()
    },
  }
  const drain = (): void => {
    phase = 'draining'
    deadline.startStep(drainTimeoutMs, `${url} left its reply open.`)
  }
  // A high-water mark of 0 prevents reading ahead, so the idle timer runs only while the consumer waits.
  return { body: new ReadableStream(source, { highWaterMark: 0 }), drain }
}

/** Resolves after `ms`; rejects with the signal's reason when it aborts first. */
export function sleep(ms: Millis, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal.addEventListener('abort', onAbort, { once: true })
  })
}
