import type { Profile } from '../domain/profile.ts'
import { alwaysFits, dayMs, usersOnly } from './shared.ts'

/** Browser tab, in RAM only: the first message, the last three, and the beginnings of the messages between them. */
export const ephemeral: Profile = {
  name: 'ephemeral',
  durability: 'ram',
  budget: 2_000,
  uploads: 'refuse',
  tokenizer: 'exact',
  framing: 'silent',
  scopes: ['session'],
  // Nothing leaves RAM, and everything is deleted with the tab.
  secrets: 'keep',
  knowledgePolicy: usersOnly,
  bands: [
    { name: 'seed', claim: { first: 1 }, renderings: alwaysFits, priority: 1, renderAs: 'block', share: 0.4 },
    {
      name: 'middle',
      claim: { rest: true },
      renderings: [{ as: 'clip', characters: 100 }],
      priority: 3,
      renderAs: 'block',
      label: '(Past) ',
    },
    {
      name: 'tail',
      claim: { last: 3 },
      renderings: alwaysFits,
      priority: 2,
      renderAs: 'block',
      heading: '--- Recent Exchange ---',
    },
  ],
  upkeep: [],
  lifetime: { age: dayMs, messages: 50, sessions: 100, whenFull: 'evict' },
}
