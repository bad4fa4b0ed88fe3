import type { Profile } from '../domain/profile.ts'
import { atAnyPrice, day, minute, whole } from './parts.ts'

/** A tool-using agent: the last thirty messages whole, older ones whole up to 85 % of the budget and digested up to 95 %. */
export const agent: Profile = {
  name: 'agent',
  durability: 'durable',
  // 200,000 of context, less 5,000 for the system prompt and 4,096 for the reply
  budget: 190_904,
  tokenizer: 'exact',
  framing: 'sections',
  sees: ['session', 'scope'],
  secrets: 'mask',
  // what an agent finds out it may keep; what a page says it may not
  learns: { user: 'yes', assistant: 'yes', tool: 'no' },
  trigger: 0.7,
  bands: [
    {
      name: 'knowledge',
      claim: { kind: 'knowledge', top: 20 },
      ladder: whole,
      fill: 2,
      show: 'block',
      heading: '[KNOWLEDGE FROM EARLIER SESSIONS]',
      maxShare: 0.05,
      patience: 8,
    },
    {
      name: 'long-term',
      claim: { kind: 'item' },
      ladder: [{ as: 'whole' }, { as: 'digest' }],
      fill: 2.5,
      show: 'block',
      heading: '[LONG-TERM MEMORY]',
      maxShare: 0.1,
      patience: 8,
    },
    {
      name: 'older',
      claim: { rest: true },
      ladder: [
        { as: 'whole', upTo: 0.85 },
        { as: 'digest', upTo: 0.95 },
      ],
      fill: 3,
      show: 'turns',
      patience: 8,
    },
    { name: 'recent', claim: { last: 30 }, ladder: atAnyPrice, fill: 1, show: 'turns' },
  ],
  upkeep: [
    { when: { every: 2 * minute }, do: { optimise: 'session' } },
    { when: { every: day }, do: { age: 'knowledge' } },
  ],
  lifetime: { whenFull: 'refuse' },
}
