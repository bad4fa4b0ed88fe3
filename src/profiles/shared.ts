import type { Learning, Rung, Words } from '../domain/profile.ts'

export const minuteMs = 60_000
export const dayMs = 1_440 * minuteMs

export const wholeOnly: readonly Rung[] = [{ as: 'whole' }]
/** Shortens a summary to its best sentences rather than leaving it out. */
export const summaryRenderings: readonly Rung[] = [{ as: 'whole' }, { as: 'sections' }]
/** Shortens an entry as far as necessary; it is never left out. */
export const alwaysFits: readonly Rung[] = [{ as: 'whole' }, { as: 'json' }, { as: 'squeeze' }, { as: 'fit' }]

/** Word limits of a progressive summary by version. */
export const progressiveWords: Words = [
  [100, 150],
  [200, 250],
  [300, 350],
  [400, 450],
  [500, 750],
]

/** Stores knowledge from users; knowledge from the assistant waits for approval; tool output never becomes knowledge. */
export const approveAssistant: Learning = { user: 'yes', assistant: 'ask', tool: 'no' }
/** Stores knowledge from users only. */
export const usersOnly: Learning = { user: 'yes', assistant: 'no', tool: 'no' }
