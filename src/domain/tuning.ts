import type { Millis, Tokens } from './entry.ts'

/** What the optimizer may turn: when entries begin to be shown shorter, how many never are, and what counts as worth keeping. */
export type Parameters = {
  /** The part of the budget which, once the history would take it, makes it shorten. */
  readonly trigger: number
  /** How many of the newest messages are always whole. */
  readonly window: number
  readonly minRelevance: number
}

/** What one run of the optimizer found and did. */
export type Snapshot = Parameters & {
  readonly at: Millis
  readonly tokensBefore: Tokens
  readonly tokensAfter: Tokens
  readonly compressed: number
  readonly dropped: number
  readonly promoted: number
}

/** What the optimizer has learnt about a session. */
export type Tuning = {
  readonly parameters: Parameters
  readonly runs: number
  readonly saved: Tokens
  /** The newest ones, in order. */
  readonly snapshots: readonly Snapshot[]
}
