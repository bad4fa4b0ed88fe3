import type { Json } from './entry.ts'
import { check } from './error.ts'

export const categories = [
  'domain',
  'execution_pattern',
  'user_preference',
  'website_knowledge',
  'error_pattern',
] as const
export type Category = (typeof categories)[number]

type KnowledgeInput = {
  readonly category: Category
  readonly key: string
  readonly value: Json
  readonly confidence?: number
}

/** Validates knowledge from a caller; throws `bad-option` naming the field. */
export function parseKnowledge(input: KnowledgeInput): KnowledgeInput {
  const { category, key, value, confidence } = input
  check('category', category, categories.includes(category), `one of ${categories.join(', ')}`)
  check('key', key, typeof key === 'string' && key.trim() !== '', 'text that is not empty')
  check('value', value, value !== undefined, 'text or JSON')
  const isConfidenceValid = confidence === undefined || (confidence >= 0 && confidence <= 1)
  check('confidence', confidence, isConfidenceValid, 'a number from 0 to 1')
  return input
}
