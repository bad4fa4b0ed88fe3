import type { Profile } from '../domain/profile.ts'
import { alwaysFits, approveAssistant, progressiveWords, summaryRenderings } from './shared.ts'

/** Long chat: important data, a growing summary and a window of recent messages. */
export const summary: Profile = {
  name: 'summary',
  durability: 'durable',
  budget: 3_000,
  tokenizer: 'exact',
  framing: 'sections',
  sees: ['session'],
  secrets: 'mask',
  learns: approveAssistant,
  bands: [
    {
      name: 'important data',
      claim: { kind: 'fact' },
      ladder: [{ as: 'whole' }, { as: 'clip', characters: 100 }],
      fill: 2,
      show: 'block',
      heading: '[IMPORTANT DATA FROM PREVIOUS CONVERSATIONS]',
      max: 500,
      patience: 8,
    },
    {
      name: 'summary',
      claim: { kind: 'summary' },
      ladder: summaryRenderings,
      fill: 3,
      show: 'block',
      heading: '[CONVERSATION SUMMARY]',
      max: 1_200,
    },
    {
      name: 'recent',
      claim: { lastTokens: 3_000, uncovered: true },
      ladder: alwaysFits,
      fill: 1,
      show: 'turns',
      heading: '[RECENT MESSAGES]',
    },
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
