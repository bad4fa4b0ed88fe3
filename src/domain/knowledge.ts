import type { Entry, Json, Knowledge, KnowledgeOrigin } from './entry.ts'
import { checkOption, createDepthError } from './error.ts'
import { estimateSize, exceedsDepth, maxJsonDepth } from './stringify.ts'

export const knowledgeCategories = [
  'domain',
  'execution_pattern',
  'user_preference',
  'website_knowledge',
  'error_pattern',
] as const
/** Category of knowledge. */
export type KnowledgeCategory = (typeof knowledgeCategories)[number]

type KnowledgeInput = {
  readonly category: KnowledgeCategory
  readonly key: string
  readonly value: Json
  readonly confidence?: number
  readonly origin?: KnowledgeOrigin
}

/** Size of a value, about: entries are written and read in one piece. */
const maxValueCharacters = 8_000_000
const knowledgeOrigins: readonly KnowledgeOrigin[] = ['operator', 'learned']

/** Validates knowledge from a caller; throws `bad-option` naming the field. */
export function parseKnowledge(input: KnowledgeInput): KnowledgeInput {
  const { category, key, value, confidence, origin } = input
  checkOption('category', category, knowledgeCategories.includes(category), `one of ${knowledgeCategories.join(', ')}`)
  checkOption('key', key, typeof key === 'string' && key.trim() !== '', 'text that is not empty')
  checkOption('value', value, value !== undefined, 'text or JSON')
  if (exceedsDepth(value, maxJsonDepth)) throw createDepthError('value')
  const isSmall = estimateSize(value, maxValueCharacters + 1) <= maxValueCharacters
  checkOption('value', value, isSmall, `text or JSON of at most ${maxValueCharacters} characters`)
  const isConfidenceValid = confidence === undefined || (confidence >= 0 && confidence <= 1)
  checkOption('confidence', confidence, isConfidenceValid, 'a number from 0 to 1')
  checkOption('origin', origin, origin === undefined || knowledgeOrigins.includes(origin), 'operator or learned')
  return input
}

/**
 * True for knowledge that was learned and fades without use. What an operator states holds until it is changed. Entries
 * of earlier versions have no origin: they count as learned only if nothing but sessions stated them.
 */
export const isLearned = ({ origin, sources = [] }: Partial<Pick<Knowledge, 'origin' | 'sources'>>): boolean =>
  origin === undefined
    ? sources.length > 0 && sources.every(({ session = '' }) => session !== '')
    : origin === 'learned'

/** False for knowledge that waits for approval or is archived: neither contexts nor searches use it. */
export const isActive = (entry: Entry): boolean =>
  entry.kind !== 'knowledge' || (entry.pending !== true && entry.archived !== true)
