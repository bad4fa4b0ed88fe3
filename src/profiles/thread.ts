import type { Profile } from '../domain/profile.ts'
import { alwaysFits, approveAssistant, dayMs, progressiveWords, summaryRenderings, wholeOnly } from './shared.ts'

const maxMessageTokens = 4_096

/**
 * Default profile: a prefix that stays the same from turn to turn (facts, summary, first message, a tail that grows
 * until it is cut back) and, just before the newest turn, older messages that are relevant to it.
 */
export const thread: Profile = {
  name: 'thread',
  durability: 'durable',
  budget: 16_000,
  tokenizer: 'exact',
  framing: 'open',
  scopes: ['session', 'scope'],
  secrets: 'mask',
  knowledgePolicy: approveAssistant,
  maxMessageTokens,
  bands: [
    {
      name: 'facts',
      // Names alone say nothing.
      claim: { kind: 'fact', except: ['entities'] },
      renderings: [{ as: 'whole' }, { as: 'clip', characters: 100 }],
      priority: 4,
      renderAs: 'block',
      heading: '## Facts',
      maxShare: { budget: 8_000, upTo: 0.04, beyond: 0.06 },
      maxMisses: 8,
    },
    {
      name: 'summary',
      claim: { kind: 'summary' },
      renderings: summaryRenderings,
      priority: 3,
      renderAs: 'block',
      heading: '## Summary',
      maxShare: { budget: 8_000, upTo: 0.05, beyond: 0.1 },
    },
    {
      name: 'seed',
      claim: { first: 1 },
      renderings: alwaysFits,
      priority: 2,
      renderAs: 'turns',
      maxShare: { budget: 8_000, upTo: 0, beyond: 0.01 },
    },
    {
      name: 'tail',
      claim: {
        tail: {
          low: 0.7,
          high: 0.98,
          keepAll: 0.94,
          smallBudget: { budget: 8_000, question: 0.05, statement: 0.2, otherwise: 0.75 },
        },
      },
      renderings: [{ as: 'fit', tokens: maxMessageTokens }],
      priority: 1,
      renderAs: 'turns',
    },
    {
      name: 'recalled',
      claim: { recalled: { limit: 1_000 } },
      renderings: wholeOnly,
      priority: 6,
      renderAs: 'block',
      maxShare: { budget: 8_000, upTo: 1, beyond: 0.03 },
      fillTo: 0.905,
      volatile: true,
      maxMisses: 400,
    },
    {
      name: 'knowledge',
      claim: { kind: 'knowledge', top: 8 },
      renderings: wholeOnly,
      priority: 5,
      renderAs: 'block',
      heading: 'Known from other sessions:',
      maxShare: 0.1,
      volatile: true,
    },
  ],
  upkeep: [
    {
      when: { usage: 0.9 },
      do: { summarise: 'progressive', words: progressiveWords, keep: { usage: 0.2 }, facts: true },
    },
    { when: { every: dayMs }, do: { age: 'knowledge' } },
  ],
  lifetime: { whenFull: 'refuse' },
}
