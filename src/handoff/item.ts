import type { Tokens } from '../domain/entry.ts'

/** What a context item is: a piece of code, a file, data, a thing that was named or decided, or something left to do. */
export const categories = ['code', 'file', 'data', 'concept', 'task'] as const
export type Category = (typeof categories)[number]

/** Why an item matters, each from 0 to 1; `similarity` only where somebody could tell. */
export type Factors = {
  readonly recency: number
  readonly frequency: number
  readonly specificity: number
  readonly type: number
  readonly marking: number
  readonly similarity?: number
}

/** Something of a conversation that is worth having on its own when it goes on elsewhere. */
export type ContextItem = {
  readonly id: string
  readonly category: Category
  readonly content: string
  /** From 1 to 10. */
  readonly importance: number
  readonly tokens: Tokens
  readonly marked: boolean
  readonly factors: Factors
  /** The messages it was drawn from, oldest first. */
  readonly sources: readonly string[]
}

/** How much each category counts: from 0.5 to 2 each, and as many in all as there are categories. */
export type Weights = Readonly<Record<Category, number>>

/** Every category counts the same until something else has been learned. */
export const evenWeights: Weights = { code: 1, file: 1, data: 1, concept: 1, task: 1 }
