import type { Json } from './entry.ts'
import { MemoryError } from './error.ts'

/** What knowledge can be about. */
export const categories = [
  'domain',
  'execution_pattern',
  'user_preference',
  'website_knowledge',
  'error_pattern',
] as const
export type Category = (typeof categories)[number]

type Given = { readonly category: Category; readonly key: string; readonly value: Json; readonly confidence?: number }

/** Checks a piece of knowledge at the edge. */
export function parseKnowledge(given: Given): Given {
  const { category, key, value, confidence } = given
  if (!categories.includes(category)) throw bad('category', category, `one of ${categories.join(', ')}`)
  if (typeof key !== 'string' || key.trim() === '') throw bad('key', key, 'text that is not empty')
  if (value === undefined) throw bad('value', value, 'text or JSON')
  if (confidence !== undefined && !(confidence >= 0 && confidence <= 1))
    throw bad('confidence', confidence, 'a number from 0 to 1')
  return given
}

const bad = (param: string, value: unknown, right: string): MemoryError =>
  new MemoryError('bad-option', `${param} is ${JSON.stringify(value)}; it must be ${right}.`, { param })
