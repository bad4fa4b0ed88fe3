import type { Message, Role } from '../../src/domain/entry.ts'
import type { ContextItem } from '../../src/handoff/item.ts'
import type { HandoffMaterial } from '../../src/handoff/render/sections.ts'

export type Turn = readonly [role: Role, content: string]

/** Creates messages m1, m2 and so on from turns such as `['user', 'Hello']`. */
export const conversation = (...turns: readonly Turn[]): readonly Message[] =>
  turns.map(([role, content], index) => ({
    kind: 'message',
    id: `m${index + 1}`,
    sequence: index + 1,
    offset: 0,
    at: 0,
    role,
    content,
    tokens: 0,
    lineTokens: 0,
    tokenizer: 'o200k_base',
    weight: 0,
  }))

/** Creates material with defaults for everything that is not given. */
export const material = (given: Partial<HandoffMaterial>): HandoffMaterial => ({
  title: 'Login page',
  messages: [],
  items: [],
  files: [],
  summaries: [],
  earlier: [],
  provided: [],
  ...given,
})

/** Creates a context item with defaults for everything that is not given. */
export const item = (given: Partial<ContextItem>): ContextItem => ({
  id: 'i1',
  category: 'concept',
  content: 'We use tabs.',
  importance: 5,
  tokens: 4,
  marked: false,
  factors: { recency: 0.5, frequency: 0, specificity: 0.5, type: 0.5, marking: 0 },
  sources: [],
  ...given,
})
