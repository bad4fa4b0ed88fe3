import type { Derived, Notes, Run, Tokens } from '../domain/entry.ts'
import type { Profile } from '../domain/profile.ts'
import type { Head } from '../domain/session.ts'

/** Results of the optimizer that apply to a context. The runs are empty until the history reaches the profile's trigger. */
export type BudgetPressure = {
  /** Number of newest messages shown whole by a band that counts messages. */
  readonly window: number | undefined
  /** Weight of the whole history, and whether it reaches the trigger. */
  readonly history: Tokens
  readonly due: boolean
  /** Messages to shorten, to leave out, and to show as long-term memory. */
  readonly compressed: readonly Run[]
  readonly dropped: readonly Run[]
  readonly promoted: readonly Run[]
}

export function measurePressure(head: Head, profile: Profile, budget: Tokens): BudgetPressure {
  const newest = head.recent.at(-1)
  const history = newest === undefined ? 0 : newest.offset + newest.weight
  const hasOptimizer = profile.upkeep.some((rule) => 'optimise' in rule.do)
  const notes = hasOptimizer ? findNotes(head.derived) : undefined
  const trigger = notes?.tuning?.parameters.trigger ?? profile.trigger
  const due = trigger !== undefined && history >= trigger * budget
  const { compressed, dropped, promoted } = (due ? notes?.triage : undefined) ?? noTriage
  return { window: notes?.tuning?.parameters.window, history, due, compressed, dropped, promoted }
}

const noTriage = { compressed: [], dropped: [], promoted: [] }

export const findNotes = (derived: readonly Derived[]): Notes | undefined =>
  derived.find((entry) => entry.kind === 'notes')
