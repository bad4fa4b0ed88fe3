import type { Profile } from '../domain/profile.ts'
import { alwaysFits, approveAssistant, dayMs, progressiveWords, summaryRenderings, wholeOnly } from './shared.ts'

const maxMessageTokens = 4_096

/**
 * Default profile: a prefix that stays the same from turn to turn (facts, summary, first message, a tail that grows until
 * it is cut back) and, just before the newest turn, older messages that are relevant to it.
 */
export const thread: Profile = {
  name: 'thread',
  durability: 'durable',
  budget: 16_000,
  tokenizer: 'exact',
  framing: 'open',
  sees: ['session', 'scope'],
  secrets: 'mask',
  learns: approveAssistant,
  cap: maxMessageTokens,
  bands: [
    {
      name: 'facts',
      claim: { kind: 'fact' },
      ladder: [{ as: 'whole' }, { as: 'clip', characters: 100 }],
      fill: 4,
      show: 'block',
      heading: '## Facts',
      maxShare: { budget: 1_000, upTo: 0, beyond: 0.06 },
      patience: 8,
    },
    {
      name: 'summary',
      claim: { kind: 'summary' },
      ladder: summaryRenderings,
      fill: 3,
      show: 'block',
      heading: '## Summary',
      maxShare: { budget: 8_000, upTo: 0, beyond: 0.1 },
    },
    { name: 'seed', claim: { first: 1 }, ladder: alwaysFits, fill: 2, show: 'turns', maxShare: 0.1 },
    {
      name: 'tail',
      claim: { tail: { low: 0.35, high: 0.8, all: 0.85, scarce: { budget: 8_000, question: 0.1, otherwise: 0.75 } } },
      ladder: [{ as: 'fit', tokens: maxMessageTokens }],
      fill: 1,
      show: 'turns',
    },
    {
      name: 'recalled',
      claim: { recalled: { limit: 150 } },
      ladder: [{ as: 'whole' }, { as: 'digest' }],
      fill: 5,
      show: 'block',
      maxShare: { budget: 8_000, upTo: 1, beyond: 0.08 },
      volatile: true,
      patience: 8,
    },
    {
      name: 'knowledge',
      claim: { kind: 'knowledge', top: 8 },
      ladder: wholeOnly,
      fill: 6,
      show: 'block',
      heading: 'Known from other sessions:',
      maxShare: 0.1,
      volatile: true,
    },
  ],
  upkeep: [
    {
      when: { usage: 0.8 },
      do: { summarise: 'progressive', words: progressiveWords, keep: { usage: 0.35 }, facts: true },
    },
    { when: { every: dayMs }, do: { age: 'knowledge' } },
  ],
  lifetime: { whenFull: 'refuse' },
}
