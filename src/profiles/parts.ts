import type { Rung } from '../domain/profile.ts'
import type { Learning, Words } from '../domain/rule.ts'

export const minute = 60_000
export const day = 1_440 * minute

export const whole: readonly Rung[] = [{ as: 'whole' }]
/** A summary stands for what is not shown: rather its best sentences than nothing. */
export const summed: readonly Rung[] = [{ as: 'whole' }, { as: 'sections' }]
/** For what must be in, however short. */
export const atAnyPrice: readonly Rung[] = [{ as: 'whole' }, { as: 'json' }, { as: 'squeeze' }, { as: 'fit' }]

/** A summary that grows with the conversation, version by version. */
export const growing: Words = [
  [100, 150],
  [200, 250],
  [300, 350],
  [400, 450],
  [500, 750],
]

/** What people tell is kept, what a model claims waits for approval, what a tool brings in never becomes knowledge. */
export const people: Learning = { user: 'yes', assistant: 'ask', tool: 'no' }
/** Only what people tell is kept. */
export const peopleOnly: Learning = { user: 'yes', assistant: 'no', tool: 'no' }
