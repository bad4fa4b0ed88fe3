import type { Profile } from '../domain/profile.ts'
import { alwaysFits, approveAssistant, dayMs, earlierMessages, summaryRenderings, wholeOnly } from './shared.ts'

/**
 * Many users of one tenant behind a proxy: tenant knowledge, facts and summaries of older messages, the last 30 to 49
 * messages (up to 100 while nothing is summarised), and earlier ones while they fit.
 */
export const support: Profile = {
  name: 'support',
  durability: 'ram',
  budget: 8_000,
  uploads: 'refuse',
  tokenizer: 'exact',
  framing: 'sections',
  scopes: ['session', 'scope'],
  secrets: 'mask',
  knowledgePolicy: approveAssistant,
  bands: [
    {
      name: 'tenant',
      claim: { kind: 'knowledge', top: 8 },
      renderings: wholeOnly,
      priority: 3,
      renderAs: 'block',
      heading: '[KNOWN ABOUT THIS TENANT]',
      maxShare: 0.3,
      volatile: true,
    },
    {
      name: 'facts',
      // Names alone say nothing.
      claim: { kind: 'fact', except: ['entities'] },
      renderings: [{ as: 'whole' }, { as: 'clip', characters: 100 }],
      priority: 3,
      renderAs: 'block',
      heading: '[KNOWN ABOUT THIS USER]',
      maxShare: 0.06,
      maxMisses: 8,
    },
    {
      name: 'earlier',
      claim: { kind: 'summary' },
      renderings: summaryRenderings,
      priority: 2,
      renderAs: 'block',
      heading: '[CONVERSATION SUMMARY]',
      maxShare: 0.2,
      maxMisses: 8,
    },
    {
      name: 'recent',
      claim: { last: 100, uncovered: true },
      renderings: alwaysFits,
      priority: 1,
      renderAs: 'turns',
      heading: '[RECENT MESSAGES]',
      share: 0.6,
    },
    earlierMessages,
  ],
  upkeep: [
    { when: { messages: 50 }, do: { summarise: 'hour', batch: 20, keep: 30, share: 0.2, facts: true } },
    { when: { age: dayMs }, do: { summarise: 'session', share: 0.2 } },
  ],
  lifetime: {
    idle: dayMs,
    age: 7 * dayMs,
    messages: 1_000,
    bytes: 10_000_000,
    sessionsPerScope: 100,
    whenFull: 'evict',
  },
}
