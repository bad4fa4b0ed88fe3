import { MemoryError } from '../domain/error.ts'

/** Throws `aborted` if the signal is aborted; the message says what was left behind. */
export function throwIfAborted(signal: AbortSignal | undefined, message: string): void {
  if (signal?.aborted) throw new MemoryError('aborted', message, { cause: signal.reason })
}
