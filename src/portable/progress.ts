import { MemoryError } from '../domain/error.ts'

/** How far a transfer has come. */
export type Progress = { readonly sessions: number; readonly messages: number }

/** A transfer that can be watched and stopped. */
export type Tended = { readonly progress?: (done: Progress) => void; readonly signal?: AbortSignal }

/** Ends a transfer that its caller has stopped; the message says what that left behind. */
export function stopIf(signal: AbortSignal | undefined, message: string): void {
  if (signal?.aborted) throw new MemoryError('aborted', message, { cause: signal.reason })
}
