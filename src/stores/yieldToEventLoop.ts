import { performance } from 'node:perf_hooks'
import { setImmediate } from 'node:timers'
import type { Millis } from '../domain/entry.ts'

/** Lets other requests run. `setImmediate` returns after pending input and output were handled. */
export const yieldToEventLoop = (): Promise<void> => new Promise((resume) => setImmediate(resume))

/** Time that a turn of the event loop may take before long work and further reads of a store wait for the next one. */
const maxTurnMs: Millis = 8
let turnStartedAt: Millis | undefined

/**
 * True if the current turn of the event loop has taken long, as when many short reads follow each other without a
 * pause: their promises resolve within the same turn.
 */
export function isTurnLong(): boolean {
  const now = performance.now()
  if (turnStartedAt !== undefined) return now - turnStartedAt > maxTurnMs
  turnStartedAt = now
  setImmediate(() => {
    turnStartedAt = undefined
  })
  return false
}

/** Lets other requests run if the current turn of the event loop has taken long. */
export const yieldWhenLong = (): Promise<void> | undefined => (isTurnLong() ? yieldToEventLoop() : undefined)
