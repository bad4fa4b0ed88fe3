import type { TuningParameters, TuningRun, TuningState } from '../../domain/entry.ts'
import {
  formatPromotedId,
  type Item,
  type Message,
  type Millis,
  type Tokens,
  type UpkeepNotes,
} from '../../domain/entry.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { isInRanges, type SessionHead } from '../../domain/session.ts'
import type { Work } from '../../domain/work.ts'
import { digest } from '../../text/digest.ts'
import { addToRuns } from '../runs.ts'
import { type TriageActions, type TriageMarks, triageInSteps } from './triage.ts'

type OptimizeOptions = { readonly budget: Tokens; readonly tokenizer: Tokenizer; readonly now: Millis }

const noMarks: TriageMarks = { compressed: [], dropped: [], promoted: [] }

/**
 * Runs the optimizer over the newest messages: marks them, promotes some to long-term memory and tunes the parameters.
 */
export function* optimizeInSteps(
  messages: readonly Message[],
  head: SessionHead,
  { budget, tokenizer, now }: OptimizeOptions,
): Work<{ readonly items: readonly Item[]; readonly notes: Pick<UpkeepNotes, 'triage' | 'tuning'> }> {
  const { triage: marks = noMarks, tuning } = head.derived.find((entry) => entry.kind === 'notes') ?? {}
  const parameters = tuning?.parameters ?? initialParameters
  const actions = yield* triageInSteps(messages, marks, parameters, now)
  const after = addMarks(marks, actions)
  const costs = new TokenCosts(messages, tokenizer)
  const [tokensBefore, tokensAfter] = [yield* costs.totalWith(marks), yield* costs.totalWith(after)]
  const saved = tokensBefore === 0 ? 0 : Math.max(0, tokensBefore - tokensAfter) / tokensBefore
  const { compress, drop, promote } = actions
  const counts = { compressed: compress.length, dropped: drop.length, promoted: promote.length }
  const next = tuneParameters(parameters, { usage: tokensBefore / budget, saved })
  const snapshot = { at: now, tokensBefore, tokensAfter, ...counts, ...next }
  const tuned = recordRun(tuning, snapshot, next)
  return { items: yield* promoteMessages(messages, promote, now), notes: { triage: after, tuning: tuned } }
}

function addMarks(marks: TriageMarks, { compress, drop, promote }: TriageActions): TriageMarks {
  return {
    compressed: addToRuns(marks.compressed, compress),
    dropped: addToRuns(marks.dropped, drop),
    promoted: addToRuns(marks.promoted, promote),
  }
}

/** Creates long-term items from messages, in their own words. */
function* promoteMessages(
  messages: readonly Message[],
  sequences: readonly number[],
  now: Millis,
): Work<readonly Item[]> {
  const chosen = new Set(sequences)
  const items: Item[] = []
  for (const { id, role, content, sequence } of messages) {
    if (!chosen.has(sequence)) continue
    items.push({
      kind: 'item',
      id: formatPromotedId(id),
      at: now,
      category: 'data',
      content: digest(content, role),
      importance: 10,
      marked: false,
      sources: [{ message: id }],
    })
    yield content.length
  }
  return items
}

/** Computes the tokens of messages under given marks; each digest is counted once. */
class TokenCosts {
  private readonly messages: readonly Message[]
  private readonly tokenizer: Tokenizer
  private readonly digestTokens = new Map<number, Tokens>()

  constructor(messages: readonly Message[], tokenizer: Tokenizer) {
    this.messages = messages
    this.tokenizer = tokenizer
  }

  *totalWith({ compressed, dropped }: TriageMarks): Work<Tokens> {
    let total = 0
    for (const message of this.messages) {
      if (isInRanges(dropped, message.sequence)) continue
      const isCompressed = isInRanges(compressed, message.sequence)
      total += isCompressed ? this.tokensOfDigest(message) : message.tokens
      if (isCompressed) yield message.content.length
    }
    return total
  }

  private tokensOfDigest({ sequence, content, role, tokens }: Message): Tokens {
    const known = this.digestTokens.get(sequence)
    if (known !== undefined) return known
    const cost = Math.min(tokens, this.tokenizer.count(digest(content, role)))
    this.digestTokens.set(sequence, cost)
    return cost
  }
}

export const initialParameters: TuningParameters = { trigger: 0.7, window: 30, minRelevance: 0.3 }

/** Fraction of the budget that the history should use. */
export const targetUsage = 0.65

type Range = readonly [min: number, max: number]
const ranges: Readonly<Record<keyof TuningParameters, Range>> = {
  trigger: [0.35, 0.85],
  window: [10, 50],
  minRelevance: [0.15, 0.7],
}

const stepSize = 0.05
const maxSnapshots = 500

/**
 * Returns the parameters for the next run: stricter when the history used too much of the budget, looser when it used
 * little. `usage` is the fraction of the budget used before the run, `saved` the fraction of those tokens the run
 * saved.
 *
 * @example
 * tuneParameters(initialParameters, { usage: 0.8, saved: 0.2 }) // { trigger: 0.65, window: 28, minRelevance: 0.35 }
 */
export function tuneParameters(
  parameters: TuningParameters,
  { usage, saved }: { readonly usage: number; readonly saved: number },
): TuningParameters {
  let { trigger, window, minRelevance } = parameters
  if (usage > targetUsage + 0.1) {
    trigger -= stepSize
    window -= 2
    minRelevance += stepSize
  } else if (usage < targetUsage - 0.15) {
    trigger += stepSize * 0.5
    window += 1
    minRelevance -= stepSize * 0.5
  }
  // Over target although the run saved less than 5 %: tighten further.
  if (saved < 0.05 && usage > targetUsage) {
    trigger -= stepSize * 2
    minRelevance += stepSize * 2
  }
  return {
    trigger: clampTo(ranges.trigger, trigger),
    window: clampTo(ranges.window, window),
    minRelevance: clampTo(ranges.minRelevance, minRelevance),
  }
}

/** Rounds to thousandths, so that 0.7 - 0.05 is exactly 0.65. */
const clampTo = ([min, max]: Range, value: number): number =>
  Math.min(max, Math.max(min, Math.round(value * 1_000) / 1_000))

/** Adds a run to the tuning state. */
export function recordRun(
  tuning: TuningState | undefined,
  snapshot: TuningRun,
  parameters: TuningParameters,
): TuningState {
  const { runs = 0, saved = 0, snapshots = [] } = tuning ?? {}
  return {
    parameters,
    runs: runs + 1,
    // A run that made the history longer saved nothing.
    saved: saved + Math.max(0, snapshot.tokensBefore - snapshot.tokensAfter),
    snapshots: [...snapshots, snapshot].slice(-maxSnapshots),
  }
}

/** Optimizer statistics with the field names of `GET /learning/optimizer/status`. */
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

/** Sums statistics over sessions; the parameters are those of the session that was optimized last. */
export function buildOptimizerStatus(tunings: readonly TuningState[]): OptimizerStatus {
  const totalOptimizations = tunings.reduce((sum, { runs }) => sum + runs, 0)
  const totalTokensSaved = tunings.reduce((sum, { saved }) => sum + saved, 0)
  const { trigger, window, minRelevance } = latestTuning(tunings)?.parameters ?? initialParameters
  return {
    totalOptimizations,
    totalTokensSaved,
    avgSavingsPerRun: totalOptimizations === 0 ? 0 : Math.round(totalTokensSaved / totalOptimizations),
    currentParameters: {
      compressionTrigger: trigger,
      fullMessageWindow: window,
      minRelevance,
      targetUsageRatio: targetUsage,
    },
  }
}

const lastRunAt = ({ snapshots }: TuningState): number => snapshots.at(-1)?.at ?? Number.NEGATIVE_INFINITY

function latestTuning(tunings: readonly TuningState[]): TuningState | undefined {
  let latest = tunings[0]
  for (const tuning of tunings) if (latest !== undefined && lastRunAt(tuning) > lastRunAt(latest)) latest = tuning
  return latest
}
