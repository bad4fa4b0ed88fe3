import type { Tokens } from '../domain/entry.ts'

/** Kinds of context items. */
export const itemCategories = ['code', 'file', 'data', 'concept', 'task'] as const
export type Category = (typeof itemCategories)[number]

/** Factors of an item's importance, each from 0 to 1; `similarity` only if an embedder is configured. */
export type Factors = {
  readonly recency: number
  readonly frequency: number
  readonly specificity: number
  readonly type: number
  readonly marking: number
  readonly similarity?: number
}

/** Part of a conversation that is useful on its own in a later chat. */
export type ContextItem = {
  readonly id: string
  readonly category: Category
  readonly content: string
  /** From 1 to 10. */
  readonly importance: number
  readonly tokens: Tokens
  readonly marked: boolean
  readonly factors: Factors
  /** Ids of the messages it was extracted from, oldest first. */
  readonly sources: readonly string[]
}

/** Weight of each category: 0.5 to 2 each, summing to the number of categories. */
export type CategoryWeights = Readonly<Record<Category, number>>

/** Initial weights, used until restores have been measured. */
export const evenWeights: CategoryWeights = { code: 1, file: 1, data: 1, concept: 1, task: 1 }

/** Distance in tokens at which recency is one half, measured on coding transcripts. */
const recencyHalfLifeTokens = 1_000
/** Number of messages at which frequency reaches 1. */
const saturatedMessageCount = 8

/** Recency factor of something last mentioned `tokensAgo` tokens before the end. */
export const recencyFactor = (tokensAgo: Tokens): number => 1 / (1 + tokensAgo / recencyHalfLifeTokens)

/** Frequency factor of something mentioned in this many messages. */
export const frequencyFactor = (messages: number): number =>
  Math.min(1, Math.log2(Math.max(1, messages)) / Math.log2(saturatedMessageCount))

/** Specificity factor of a text that contains this many names, paths and numbers. */
export const specificityFactor = (names: number): number => 1 - 1 / (1 + names)

/** Type factor: code and structured data rank above prose, which can be rephrased. */
export const typeFactors: Readonly<Record<Category, number>> = {
  code: 1,
  task: 0.9,
  data: 0.8,
  file: 0.6,
  concept: 0.5,
}

const factorShares = { recency: 0.35, type: 0.3, frequency: 0.2, specificity: 0.15 }
/** Share of the similarity factor if present; the other factors are scaled down by it. */
const similarityShare = 0.25

/** Combines all factors except marking into one number from 0 to 1. */
export function scoreFactors(factors: Factors): number {
  const score =
    factorShares.recency * factors.recency +
    factorShares.type * factors.type +
    factorShares.frequency * factors.frequency +
    factorShares.specificity * factors.specificity
  return factors.similarity === undefined ? score : (1 - similarityShare) * score + similarityShare * factors.similarity
}

/**
 * Computes the importance of an item, from 1 to 10. Only items marked by the user reach 10.
 *
 * @example
 * computeImportance({ recency: 1, frequency: 0, specificity: 0.5, type: 1, marking: 0 }) // 7
 */
export function computeImportance(factors: Factors, weight = 1): number {
  if (factors.marking > 0) return 10
  return Math.max(1, Math.min(9, Math.round(1 + 8 * weight * scoreFactors(factors))))
}

type RankedItem = Pick<ContextItem, 'importance' | 'factors' | 'id'>

/** Sorts the most important items first; ties are broken by score, then by id, so that the order is deterministic. */
export function compareByPriority(left: RankedItem, right: RankedItem): number {
  return (
    right.importance - left.importance ||
    scoreFactors(right.factors) - scoreFactors(left.factors) ||
    (left.id < right.id ? -1 : left.id > right.id ? 1 : 0)
  )
}

/** Share of a text that another one preserves, each from 0 to 1: `facts` are names, numbers, paths and constraints. */
export type Preservation = { readonly similarity: number; readonly facts: number }
