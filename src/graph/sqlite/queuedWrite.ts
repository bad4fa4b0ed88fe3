import { setTimeout as wait } from 'node:timers/promises'
import type { Work } from '../../domain/work.ts'
import { commitPoint } from '../../stores/sqlite/wipe/mergeIndexes.ts'
import { yieldToEventLoop } from '../../stores/yieldToEventLoop.ts'

/** Result of work; undefined if it is to continue in another transaction. */
export type PartResult<T> = { readonly result: T } | undefined
export type QueuedWrite = {
  readonly work: () => Work<PartResult<unknown>>
  /** True if later writes wait until it has ended. Otherwise they come before its next part. */
  readonly keepsOrder: boolean
  readonly resolve: (result: never) => void
  readonly reject: (error: unknown) => void
}
export type Outcome = PartResult<unknown> | { readonly error: unknown }

/** Time after which a deletion commits what it has done. */
const maxPartMs = 1_000
/**
 * Commit points after which it does. SQLite reads every page of a transaction in its log again when it commits: 20 ms
 * for the 12,000 pages of 8,000 rows among a million.
 */
const maxPartCommitPoints = 40
/** Time in which others take the lock between two parts: they look for it every 100 ms. */
const betweenPartsMs = 150
/** Time for which parts may follow each other without it. */
const maxLockedMs = 1_000

/** Runs a write that is one part. */
export function* runWhole<T>(work: Work<T>): Work<PartResult<T>> {
  return { result: yield* work }
}

/** Runs a deletion to its end, or to a point at which it may commit once it has done much. */
export function* runPart<T>(work: Work<T>): Work<PartResult<T>> {
  const end = performance.now() + maxPartMs
  for (let [step, passed] = [work.next(), 0]; ; step = work.next()) {
    if (step.done === true) return { result: step.value }
    if (step.value === commitPoint && (++passed === maxPartCommitPoints || performance.now() > end)) return undefined
    yield step.value
  }
}

/** Ends a write after its transaction, or puts it into the queue again. */
export function settle(write: QueuedWrite, outcome: Outcome, queue: QueuedWrite[]): void {
  if (outcome === undefined) {
    if (write.keepsOrder) queue.unshift(write)
    else queue.push(write)
  } else if ('error' in outcome) write.reject(outcome.error)
  else write.resolve(outcome.result as never)
}

/**
 * Lets reads run and, if parts have held the lock for long, others take it. Returns the time since which they hold it.
 */
export async function waitBetweenParts(lockedSince: number): Promise<number> {
  if (performance.now() - lockedSince < maxLockedMs) {
    await yieldToEventLoop()
    return lockedSince
  }
  await wait(betweenPartsMs)
  return performance.now()
}
