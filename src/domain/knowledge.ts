import type { Json } from './entry.ts'
import { checkOption } from './error.ts'

export const knowledgeCategories = [
  'domain',
  'execution_pattern',
  'user_preference',
  'website_knowledge',
  'error_pattern',
] as const
export type KnowledgeCategory = (typeof knowledgeCategories)[number]

type KnowledgeInput = {
  readonly category: KnowledgeCategory
  readonly key: string
  readonly value: Json
  readonly confidence?: number
}

/** Validates knowledge from a caller; throws `bad-option` naming the field. */
export function parseKnowledge(input: KnowledgeInput): KnowledgeInput {
  const { category, key, value, confidence } = input
  checkOption('category', category, knowledgeCategories.includes(category), `one of ${knowledgeCategories.join(', ')}`)
  checkOption('key', key, typeof key === 'string' && key.trim() !== '', 'text that is not empty')
  checkOption('value', value, value !== undefined, 'text or JSON')
  const isConfidenceValid = confidence === undefined || (confidence >= 0 && confidence <= 1)
  checkOption('confidence', confidence, isConfidenceValid, 'a number from 0 to 1')
  return input
}
