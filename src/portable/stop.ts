import { MemoryError } from '../domain/error.ts'

/** Ends a transfer that its caller has stopped; the message says what that left behind. */
export function stopIf(signal: AbortSignal | undefined, message: string): void {
  if (signal?.aborted) throw new MemoryError('aborted', message, { cause: signal.reason })
}
