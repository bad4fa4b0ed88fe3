import type { Profile } from '../domain/profile.ts'
import { alwaysFits, dayMs, minuteMs, wholeOnly } from './shared.ts'

/**
 * Tool-using agent: the last 30 messages in full, older ones in full up to 85 % of the budget and as digests up to 95
 * %.
 */
export const agent: Profile = {
  name: 'agent',
  durability: 'durable',
  // Context window of 200,000 tokens, minus 5,000 for the system prompt and 4,096 for the reply.
  budget: 190_904,
  tokenizer: 'exact',
  framing: 'sections',
  scopes: ['session', 'scope'],
  secrets: 'mask',
  // The agent's own findings may be stored, tool output such as web pages may not.
  knowledgePolicy: { user: 'yes', assistant: 'yes', tool: 'no' },
  upkeepAt: 0.7,
  bands: [
    {
      name: 'knowledge',
      claim: { kind: 'knowledge', top: 20 },
      renderings: wholeOnly,
      priority: 2,
      renderAs: 'block',
      heading: '[KNOWLEDGE FROM EARLIER SESSIONS]',
      maxShare: 0.05,
      maxMisses: 8,
      volatile: true,
    },
    {
      name: 'long-term',
      claim: { kind: 'item' },
      renderings: [{ as: 'whole' }, { as: 'digest' }],
      priority: 2.5,
      renderAs: 'block',
      heading: '[LONG-TERM MEMORY]',
      maxShare: 0.1,
      maxMisses: 8,
      volatile: true,
    },
    {
      name: 'older',
      claim: { rest: true },
      renderings: [
        { as: 'whole', upTo: 0.85 },
        { as: 'digest', upTo: 0.95 },
      ],
      priority: 3,
      renderAs: 'turns',
      maxMisses: 8,
    },
    { name: 'recent', claim: { last: 30 }, renderings: alwaysFits, priority: 1, renderAs: 'turns' },
  ],
  upkeep: [
    { when: { every: 2 * minuteMs }, do: { optimise: 'session' } },
    { when: { turn: 'finished' }, do: { learn: 'knowledge' } },
    { when: { every: dayMs }, do: { age: 'knowledge' } },
  ],
  lifetime: { whenFull: 'refuse' },
}
