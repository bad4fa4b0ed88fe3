import type { Band, KnowledgePolicy, RenderStep, SummaryWordRanges } from '../domain/profile.ts'

export const minuteMs = 60_000
export const dayMs = 1_440 * minuteMs

export const wholeOnly: readonly RenderStep[] = [{ as: 'whole' }]
/** Shortens a summary to its best sentences rather than leaving it out. */
export const summaryRenderings: readonly RenderStep[] = [{ as: 'whole' }, { as: 'sections' }]
/** Shortens an entry as far as necessary; it is never left out. */
export const alwaysFits: readonly RenderStep[] = [{ as: 'whole' }, { as: 'json' }, { as: 'squeeze' }, { as: 'fit' }]

/** Fills the budget that the other bands leave: older messages that are relevant to the question, then the newest. */
export const earlierMessages: Band = {
  name: 'recalled',
  claim: { recalled: { limit: 1_000 } },
  renderings: wholeOnly,
  priority: 9,
  renderAs: 'block',
  volatile: true,
  maxMisses: 400,
}

/** Word limits of a progressive summary by version. */
export const progressiveWords: SummaryWordRanges = [
  [100, 150],
  [200, 250],
  [300, 350],
  [400, 450],
  [500, 750],
]

/**
 * Stores knowledge from users; knowledge from the assistant waits for approval; tool output never becomes knowledge.
 */
export const approveAssistant: KnowledgePolicy = { user: 'yes', assistant: 'ask', tool: 'no' }
/** Stores knowledge from users only. */
export const usersOnly: KnowledgePolicy = { user: 'yes', assistant: 'no', tool: 'no' }
