import type { Profile } from '../domain/profile.ts'
import { atAnyPrice, whole } from './ladders.ts'

/** A long chat: important data, a summary that grows with it, and a window of recent messages. */
export const summary: Profile = {
  name: 'summary',
  durability: 'durable',
  budget: 3_000,
  tokenizer: 'exact',
  framing: 'sections',
  sees: ['session'],
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
    { name: 'summary', claim: { kind: 'summary' }, ladder: whole, fill: 3, show: 'block', heading: '[CONVERSATION SUMMARY]', max: 1_000 },
    { name: 'recent', claim: { lastTokens: 2_500 }, ladder: atAnyPrice, fill: 1, show: 'turns', heading: '[RECENT MESSAGES]' },
  ],
  lifetime: { whenFull: 'refuse' },
}
