import type { Message, Role } from '../../src/domain/entry.ts'
import type { ContextItem } from '../../src/handoff/item.ts'
import type { Material } from '../../src/handoff/render.ts'

export type Turn = readonly [role: Role, content: string]

/** A conversation: who says what, `['user', 'Hello']`, in messages m1, m2 and so on. */
export const conversation = (...said: readonly Turn[]): readonly Message[] =>
  said.map(([role, content], at) => ({
    kind: 'message',
    id: `m${at + 1}`,
    sequence: at + 1,
    offset: 0,
    at: 0,
    role,
    content,
    tokens: 0,
    lineTokens: 0,
    tokenizer: 'o200k_base',
    weight: 0,
  }))

/** Material of which only what a test is about is given. */
export const material = (given: Partial<Material>): Material => ({
  title: 'Login page',
  messages: [],
  items: [],
  files: [],
  summaries: [],
  earlier: [],
  provided: [],
  ...given,
})

/** A context item of which only what a test is about is given. */
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
