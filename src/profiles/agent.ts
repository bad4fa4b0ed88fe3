import type { Profile } from '../domain/profile.ts'
import { atAnyPrice, whole } from './ladders.ts'

/** A tool-using agent: the last thirty messages whole, older ones whole up to 85 % of the budget and digested up to 95 %. */
export const agent: Profile = {
  name: 'agent',
  durability: 'durable',
  // 200,000 of context, less 5,000 for the system prompt and 4,096 for the reply
  budget: 190_904,
  tokenizer: 'exact',
  framing: 'sections',
  sees: ['session', 'scope'],
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
  lifetime: { whenFull: 'refuse' },
}
