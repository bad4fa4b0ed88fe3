import type { Derived, Notes, Run, Tokens } from '../domain/entry.ts'
import type { Profile } from '../domain/profile.ts'
import type { Head } from '../domain/session.ts'

/** How the optimizer's findings steer what is shown of a session. */
export type Pressure = {
  /** How many of the newest messages are whole, where a band counts them. */
  readonly window: number | undefined
  /** What the whole history would cost, and whether that is enough to show some of it shorter. */
  readonly history: Tokens
  readonly due: boolean
  /** Messages that are shown shorter, left out, or shown as long-term memory; none while there is room for all. */
  readonly compressed: readonly Run[]
  readonly dropped: readonly Run[]
  readonly promoted: readonly Run[]
}

export function pressureOn(head: Head, profile: Profile, budget: Tokens): Pressure {
  const newest = head.recent.at(-1)
  const history = newest === undefined ? 0 : newest.offset + newest.weight
  const isTuned = profile.upkeep.some((rule) => 'optimise' in rule.do)
  const notes = isTuned ? notesIn(head.derived) : undefined
  const trigger = notes?.tuning?.parameters.trigger ?? profile.trigger
  const due = trigger !== undefined && history >= trigger * budget
  const { compressed, dropped, promoted } = (due ? notes?.triage : undefined) ?? none
  return { window: notes?.tuning?.parameters.window, history, due, compressed, dropped, promoted }
}

const none = { compressed: [], dropped: [], promoted: [] }

export const notesIn = (derived: readonly Derived[]): Notes | undefined =>
  derived.find((entry) => entry.kind === 'notes')
