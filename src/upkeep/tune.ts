import type { Parameters, Snapshot, Tuning } from '../domain/tuning.ts'

/** What a session starts with. */
export const initial: Parameters = { trigger: 0.7, window: 30, minRelevance: 0.3 }

/** The part of the budget that should be in use. */
export const target = 0.65

type Range = readonly [least: number, most: number]
const ranges: Readonly<Record<keyof Parameters, Range>> = {
  trigger: [0.35, 0.85],
  window: [10, 50],
  minRelevance: [0.15, 0.7],
}

const rate = 0.05
/** How many snapshots are kept. */
const history = 500

/**
 * The parameters after a run: stricter when the history took too much of the budget before it, and looser when it took
 * little. `usage` is the part of the budget taken before the run, `saved` the part of those tokens that the run saved.
 *
 * @example
 * tuned(initial, { usage: 0.8, saved: 0.2 }) // { trigger: 0.65, window: 28, minRelevance: 0.35 }
 */
export function tuned(
  parameters: Parameters,
  { usage, saved }: { readonly usage: number; readonly saved: number },
): Parameters {
  let { trigger, window, minRelevance } = parameters
  if (usage > target + 0.1) {
    trigger -= rate
    window -= 2
    minRelevance += rate
  } else if (usage < target - 0.15) {
    trigger += rate * 0.5
    window += 1
    minRelevance -= rate * 0.5
  }
  // too little came of it: an emergency
  if (saved < 0.05 && usage > target) {
    trigger -= rate * 2
    minRelevance += rate * 2
  }
  return {
    trigger: within(ranges.trigger, trigger),
    window: within(ranges.window, window),
    minRelevance: within(ranges.minRelevance, minRelevance),
  }
}

/** Thousandths are enough for every step, and keep 0.7 - 0.05 from becoming 0.6499999999999999. */
const within = ([least, most]: Range, value: number): number =>
  Math.min(most, Math.max(least, Math.round(value * 1_000) / 1_000))

/** What is known after one more run, which leaves these parameters to the next one. */
export function recorded(tuning: Tuning | undefined, snapshot: Snapshot, parameters: Parameters): Tuning {
  const { runs = 0, saved = 0, snapshots = [] } = tuning ?? {}
  return {
    parameters,
    runs: runs + 1,
    // A run that made the history longer has saved nothing.
    saved: saved + Math.max(0, snapshot.tokensBefore - snapshot.tokensAfter),
    snapshots: [...snapshots, snapshot].slice(-history),
  }
}

/** How the optimizer is doing, with the names a client of `GET /learning/optimizer/status` knows. */
export type OptimizerStatus = {
  readonly totalOptimizations: number
  readonly totalTokensSaved: number
  readonly avgSavingsPerRun: number
  readonly currentParameters: {
    readonly compressionTrigger: number
    readonly fullMessageWindow: number
    readonly minRelevance: number
    readonly targetUsageRatio: number
  }
}

/** The sums over several sessions, with the parameters of the one that was optimized last. */
export function statusOf(tunings: readonly Tuning[]): OptimizerStatus {
  const totalOptimizations = tunings.reduce((sum, { runs }) => sum + runs, 0)
  const totalTokensSaved = tunings.reduce((sum, { saved }) => sum + saved, 0)
  const { trigger, window, minRelevance } = newest(tunings)?.parameters ?? initial
  return {
    totalOptimizations,
    totalTokensSaved,
    avgSavingsPerRun: totalOptimizations === 0 ? 0 : Math.round(totalTokensSaved / totalOptimizations),
    currentParameters: {
      compressionTrigger: trigger,
      fullMessageWindow: window,
      minRelevance,
      targetUsageRatio: target,
    },
  }
}

const lastRun = ({ snapshots }: Tuning): number => snapshots.at(-1)?.at ?? Number.NEGATIVE_INFINITY

function newest(tunings: readonly Tuning[]): Tuning | undefined {
  let found = tunings[0]
  for (const tuning of tunings) if (found !== undefined && lastRun(tuning) > lastRun(found)) found = tuning
  return found
}
