import { MemoryError } from '../../domain/error.ts'

/** Exit code of a process that a user interrupts with Ctrl-C. */
export const interruptedExitCode = 130

let running: AbortController | undefined

const onInterrupt = (): void => {
  if (running === undefined || running.signal.aborted) process.exit(interruptedExitCode)
  running.abort()
}

/** Ends the process with the documented exit code on Ctrl-C. */
export const installInterruptHandler = (): void => void process.on('SIGINT', onInterrupt)

/** Leaves Ctrl-C to a command that handles it itself. */
export const releaseInterruptHandler = (): void => void process.off('SIGINT', onInterrupt)

/**
 * Runs work that stops cleanly when its signal is aborted by Ctrl-C; a second Ctrl-C ends the process at once. An error
 * of interrupted work is reported as `aborted`.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  running = controller
  try {
    return await work(controller.signal)
  } catch (error) {
    throw controller.signal.aborted && !isAborted(error) ? interruptedError(error) : error
  } finally {
    running = undefined
  }
}

const isAborted = (error: unknown): boolean => error instanceof MemoryError && error.code === 'aborted'

export const interruptedError = (cause?: unknown, message = 'Interrupted.'): MemoryError =>
  new MemoryError('aborted', message, { cause })
