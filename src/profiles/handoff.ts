import type { Profile } from '../domain/profile.ts'
import { alwaysFits, approveAssistant, dayMs } from './shared.ts'

/** Continuation in a new chat: code, conversation and metadata, each with a share of the budget. */
export const handoff: Profile = {
  name: 'handoff',
  durability: 'durable',
  budget: 8_000,
  tokenizer: 'exact',
  framing: 'open',
  sees: ['session'],
  secrets: 'mask',
  learns: approveAssistant,
  bands: [
    {
      name: 'metadata',
      claim: { kind: 'item', top: 50, atLeast: 3, except: ['code'] },
      ladder: [{ as: 'whole' }, { as: 'squeeze' }, { as: 'sections' }],
      fill: 3,
      show: 'block',
      heading: '## Notes',
      share: { withCode: 0.1, without: 0.3 },
      patience: 8,
    },
    {
      name: 'code',
      claim: { kind: 'item', top: 50, atLeast: 3, only: ['code'] },
      ladder: [{ as: 'whole' }, { as: 'squeeze' }, { as: 'uncomment' }, { as: 'sections' }],
      fill: 1,
      show: 'block',
      heading: '## Code',
      share: { withCode: 0.6, without: 0 },
      patience: 8,
    },
    {
      name: 'conversation',
      claim: { rest: true },
      ladder: alwaysFits,
      fill: 2,
      show: 'turns',
      share: { withCode: 0.3, without: 0.7 },
    },
  ],
  upkeep: [],
  lifetime: { age: 30 * dayMs, whenFull: 'refuse' },
}
