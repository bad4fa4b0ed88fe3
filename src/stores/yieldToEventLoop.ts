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

/** Maps items in their order, and lets other requests run when the current turn of the event loop has taken long. */
export async function mapInTurns<T, U>(items: readonly T[], map: (item: T) => U): Promise<U[]> {
  const mapped: U[] = []
  for (const item of items) {
    if (isTurnLong()) await yieldToEventLoop()
    mapped.push(map(item))
  }
  return mapped
}

/** Maps items one after the other. */
export async function mapInOrder<T, U>(items: readonly T[], map: (item: T) => Promise<U>): Promise<U[]> {
  const mapped: U[] = []
  for (const item of items) mapped.push(await map(item))
  return mapped
}

/** Reads that wait for a turn, oldest first. */
const waitingReads: (() => void)[] = []
let isRunScheduled = false

/**
 * Lets a short read wait while the current turn of the event loop has taken long, or older reads wait. Every turn runs
 * some of them: long work would otherwise use up each turn before they have theirs.
 */
export function waitForTurn(): Promise<void> | undefined {
  if (waitingReads.length === 0 && !isTurnLong()) return undefined
  scheduleReads()
  return new Promise((resume) => waitingReads.push(resume))
}

function scheduleReads(): void {
  if (isRunScheduled) return
  isRunScheduled = true
  setImmediate(runWaitingReads)
}

async function runWaitingReads(): Promise<void> {
  const startedAt = performance.now()
  // The time before belongs to other work.
  if (turnStartedAt !== undefined) turnStartedAt = startedAt
  do {
    waitingReads.shift()?.()
    // The read runs before this function continues.
    await undefined
  } while (waitingReads.length > 0 && performance.now() - startedAt <= maxTurnMs)
  isRunScheduled = false
  if (waitingReads.length > 0) scheduleReads()
}
