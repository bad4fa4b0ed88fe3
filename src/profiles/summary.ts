import type { Profile } from '../domain/profile.ts'
import { alwaysFits, approveAssistant, earlierMessages, progressiveWords, summaryRenderings } from './shared.ts'

/** Long chat: important data, a growing summary, a window of recent messages, and earlier ones in larger budgets. */
export const summary: Profile = {
  name: 'summary',
  durability: 'durable',
  budget: 3_000,
  tokenizer: 'exact',
  framing: 'sections',
  scopes: ['session'],
  secrets: 'mask',
  knowledgePolicy: approveAssistant,
  bands: [
    {
      name: 'important data',
      claim: { kind: 'fact' },
      renderings: [{ as: 'whole' }, { as: 'clip', characters: 100 }],
      priority: 2,
      renderAs: 'block',
      heading: '[IMPORTANT DATA FROM PREVIOUS CONVERSATIONS]',
      maxTokens: 500,
      maxMisses: 8,
    },
    {
      name: 'summary',
      claim: { kind: 'summary' },
      renderings: summaryRenderings,
      priority: 3,
      renderAs: 'block',
      heading: '[CONVERSATION SUMMARY]',
      maxTokens: 1_200,
    },
    {
      name: 'recent',
      claim: { lastTokens: 3_000, uncovered: true },
      renderings: alwaysFits,
      priority: 1,
      renderAs: 'turns',
      heading: '[RECENT MESSAGES]',
    },
    // A compaction makes the prompt small on purpose; a budget above the threshold is meant to be used.
    { ...earlierMessages, maxShare: { budget: 3_000, upTo: 0, beyond: 1 } },
  ],
  upkeep: [
    {
      when: { tokens: 3_000 },
      do: { summarise: 'progressive', words: progressiveWords, keep: { tokens: 500 }, facts: true },
      blocking: true,
    },
  ],
  lifetime: { whenFull: 'refuse' },
}
