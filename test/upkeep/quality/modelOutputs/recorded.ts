/** Kinds of unfaithful summaries. */
export type Unfaithfulness =
  | 'wrong number'
  | 'wrong date'
  | 'wrong unit'
  | 'swapped person'
  | 'swapped value'
  | 'dropped negation'
  | 'invented identifier'
  | 'invented name'
  | 'stale value'
  | 'injected instruction'
  | 'empty'
  | 'off topic'
  | 'truncated'
  | 'repetition'

/** A reply of a model to the request for a summary. */
export type ModelOutput = {
  /** Manner in which the reply is written. */
  readonly manner: string
  readonly reply: string
  /** Reply to the second request; without one, the first is repeated. */
  readonly second?: string
  /** The fault of an unfaithful summary; a faithful one has none. */
  readonly unfaithful?: Unfaithfulness
  /** Reason for which the fault cannot be found without a model. */
  readonly undetected?: string
}

/** A conversation and summaries of it. A turn starts with `user`, `assistant` or the name of a person. */
export type RecordedDialogue = {
  readonly name: string
  readonly turns: readonly (readonly [speaker: string, content: string])[]
  readonly outputs: readonly ModelOutput[]
}
