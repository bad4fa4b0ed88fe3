import type { Profile } from '../domain/profile.ts'
import { atAnyPrice, growing, people, summed } from './parts.ts'

/** A long chat: important data, a summary that grows with it, and a window of recent messages. */
export const summary: Profile = {
  name: 'summary',
  durability: 'durable',
  budget: 3_000,
  tokenizer: 'exact',
  framing: 'sections',
  sees: ['session'],
  secrets: 'mask',
  learns: people,
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
      ladder: summed,
      fill: 3,
      show: 'block',
      heading: '[CONVERSATION SUMMARY]',
      max: 1_200,
    },
    {
      name: 'recent',
      claim: { lastTokens: 3_000, uncovered: true },
      ladder: atAnyPrice,
      fill: 1,
      show: 'turns',
      heading: '[RECENT MESSAGES]',
    },
  ],
  upkeep: [
    {
      when: { tokens: 3_000 },
      do: { summarise: 'progressive', words: growing, keep: { tokens: 500 }, facts: true },
      blocking: true,
    },
  ],
  lifetime: { whenFull: 'refuse' },
}
