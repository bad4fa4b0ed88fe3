import type { Profile } from '../domain/profile.ts'
import { alwaysFits, approveAssistant, dayMs } from './shared.ts'

/** Continuation in a new chat: code, conversation and metadata, each with a share of the budget. */
export const handoff: Profile = {
  name: 'handoff',
  durability: 'durable',
  budget: 8_000,
  tokenizer: 'exact',
  framing: 'open',
  scopes: ['session'],
  secrets: 'mask',
  knowledgePolicy: approveAssistant,
  bands: [
    {
      name: 'metadata',
      claim: { kind: 'item', top: 50, atLeast: 3, except: ['code'] },
      renderings: [{ as: 'whole' }, { as: 'squeeze' }, { as: 'sections' }],
      priority: 3,
      renderAs: 'block',
      heading: '## Notes',
      share: { withCode: 0.1, without: 0.3 },
      maxMisses: 8,
    },
    {
      name: 'code',
      claim: { kind: 'item', top: 50, atLeast: 3, only: ['code'] },
      renderings: [{ as: 'whole' }, { as: 'squeeze' }, { as: 'uncomment' }, { as: 'sections' }],
      priority: 1,
      renderAs: 'block',
      heading: '## Code',
      share: { withCode: 0.6, without: 0 },
      maxMisses: 8,
    },
    {
      name: 'conversation',
      claim: { rest: true },
      renderings: alwaysFits,
      priority: 2,
      renderAs: 'turns',
      share: { withCode: 0.3, without: 0.7 },
    },
  ],
  upkeep: [],
  lifetime: { age: 30 * dayMs, whenFull: 'refuse' },
}
