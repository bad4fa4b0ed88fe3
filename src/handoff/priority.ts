import type { Tokens } from '../domain/entry.ts'
import type { Category, ContextItem, Factors } from './item.ts'

/** What is used again was mostly used a moment ago: after so many tokens it is half as likely, as measured on coding transcripts. */
const half = 1_000
/** What is spoken of in so many messages could not be spoken of more. */
const often = 8

/** How much it counts that something was last said so many tokens ago. */
export const recencyOf = (behind: Tokens): number => 1 / (1 + behind / half)

/** How much it counts that something is spoken of in so many messages. */
export const frequencyOf = (messages: number): number =>
  Math.min(1, Math.log2(Math.max(1, messages)) / Math.log2(often))

/** How much it counts that something holds so many names, paths and numbers. */
export const specificityOf = (names: number): number => 1 - 1 / (1 + names)

/** Code and structured data count more than what can be said again in other words. */
export const typeOf: Readonly<Record<Category, number>> = { code: 1, task: 0.9, data: 0.8, file: 0.6, concept: 0.5 }

const shares = { recency: 0.35, type: 0.3, frequency: 0.2, specificity: 0.15 }
/** What similarity to the present counts, where somebody can tell; all others count that much less. */
const similarityShare = 0.25

/** All factors but the marking as one number from 0 to 1. */
export function scoreOf(factors: Factors): number {
  const own =
    shares.recency * factors.recency +
    shares.type * factors.type +
    shares.frequency * factors.frequency +
    shares.specificity * factors.specificity
  return factors.similarity === undefined ? own : (1 - similarityShare) * own + similarityShare * factors.similarity
}

/**
 * The importance of an item, from 1 to 10. What the user marked has 10, and nothing else has.
 *
 * @example
 * importanceOf({ recency: 1, frequency: 0, specificity: 0.5, type: 1, marking: 0 }) // 7
 */
export function importanceOf(factors: Factors, weight = 1): number {
  if (factors.marking > 0) return 10
  return Math.max(1, Math.min(9, Math.round(1 + 8 * weight * scoreOf(factors))))
}

type Ranked = Pick<ContextItem, 'importance' | 'factors' | 'id'>

/** The most important first; of equals the one that scores higher, and at last by id, so that the order is always the same. */
export function byPriority(left: Ranked, right: Ranked): number {
  return (
    right.importance - left.importance ||
    scoreOf(right.factors) - scoreOf(left.factors) ||
    (left.id < right.id ? -1 : left.id > right.id ? 1 : 0)
  )
}
