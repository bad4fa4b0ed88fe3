import type { Profile } from '../domain/profile.ts'
import { atAnyPrice, day, peopleOnly } from './parts.ts'

/** A browser tab: in RAM only, the first message, the last three, and glimpses of what lies between. */
export const ephemeral: Profile = {
  name: 'ephemeral',
  durability: 'ram',
  budget: 2_000,
  tokenizer: 'exact',
  framing: 'silent',
  sees: ['session'],
  // never leaves RAM, and is gone with the tab
  secrets: 'keep',
  learns: peopleOnly,
  bands: [
    { name: 'seed', claim: { first: 1 }, ladder: atAnyPrice, fill: 1, show: 'block', share: 0.4 },
    {
      name: 'middle',
      claim: { rest: true },
      ladder: [{ as: 'clip', characters: 100 }],
      fill: 3,
      show: 'block',
      label: '(Past) ',
    },
    {
      name: 'tail',
      claim: { last: 3 },
      ladder: atAnyPrice,
      fill: 2,
      show: 'block',
      heading: '--- Recent Exchange ---',
    },
  ],
  upkeep: [],
  lifetime: { age: day, messages: 50, sessions: 100, whenFull: 'evict' },
}
