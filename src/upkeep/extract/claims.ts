import { isObject } from '../../domain/checks.ts'
import type { Json } from '../../domain/entry.ts'
import { type Field, fields, isKeyed } from './found.ts'
import { constraintKey, constraints } from './statements.ts'
import { topicCalled, topicIn } from './topics.ts'
import { keyFrom, longestValue } from './wording.ts'

/** What a model says it has found; without a value if it has a shape that says nothing. */
export type Claim = { readonly field: Field; readonly key: string; readonly value: Json | undefined }

/** More than this is not looked at: nobody says so much that must not be forgotten. */
const most = 400
const longestList = 40

/**
 * The claims in a model's answer, which may have other shapes than it was asked for: one text for a list, a list for an
 * object, an object for a text, one level more than there should be.
 */
export function claimsIn(answer: unknown): readonly Claim[] {
  if (!isObject(answer)) return []
  const wrapped = own(answer, 'important_data')
  const data = isObject(wrapped) ? wrapped : answer
  return fields
    .flatMap((field) => (isKeyed(field) ? keyedClaims(field, own(data, field)) : listClaims(field, own(data, field))))
    .slice(0, most)
}

const own = (object: Record<string, unknown>, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined

function listClaims(field: Field, given: unknown): readonly Claim[] {
  if (given === undefined || given === null) return []
  const items = Array.isArray(given) ? given : isObject(given) ? Object.values(given).flat() : [given]
  return items.map((item) => ({ field, key: '', value: textIn(item) }))
}

/** The fields in which models put what a thing is called when they describe it. */
const namings = ['name', 'value', 'text', 'fact', 'decision', 'url', 'title', 'description', 'content']

function textIn(item: unknown): string | undefined {
  if (!isObject(item)) return scalar(item)
  const naming = namings.find((name) => typeof own(item, name) === 'string')
  return naming === undefined ? undefined : scalar(own(item, naming))
}

const scalar = (value: unknown): string | undefined => {
  const text =
    typeof value === 'string' ? value.trim() : typeof value === 'number' && Number.isFinite(value) ? String(value) : ''
  return text === '' || text.length > longestValue ? undefined : text
}

function keyedClaims(field: Field, given: unknown): readonly Claim[] {
  if (given === undefined || given === null) return []
  if (isObject(given)) return Object.entries(given).flatMap(([key, value]) => entryClaims(field, keyOf(key), value, 1))
  if (field === 'document_structure' && Array.isArray(given)) return [{ field, key: 'sections', value: listIn(given) }]
  return [given].flat().map((item) => unnamed(field, textIn(item)))
}

/** A text where a key and a value should be: the key is made as the rules would make it. */
function unnamed(field: Field, text: string | undefined): Claim {
  if (text === undefined) return { field, key: '', value: undefined }
  const topic =
    field === 'user_preferences' ? topicIn(text.replace(/^.*\b(?:prefers?|uses?|likes?) /i, ''), 'chosen') : undefined
  return topic === undefined ? { field, key: keyFrom(text), value: text } : { field, ...topic }
}

function entryClaims(field: Field, key: string, value: unknown, levels: number): readonly Claim[] {
  if (isObject(value))
    return levels === 0
      ? [{ field, key, value: undefined }]
      : Object.entries(value).flatMap(([name, inner]) => entryClaims(field, `${key}.${keyOf(name)}`, inner, 0))
  if (field === 'custom_fields' && key === constraints) return [value].flat().map((rule) => ruleClaim(textIn(rule)))
  return [{ field, key, value: Array.isArray(value) ? listIn(value) : (scalar(value) ?? undefined) }]
}

/** Rules have a key each, as those that are found without a model. */
const ruleClaim = (text: string | undefined): Claim => ({
  field: 'custom_fields',
  key: constraintKey(text ?? '') ?? '',
  value: text,
})

function listIn(items: readonly unknown[]): Json | undefined {
  const texts = items.map(textIn)
  return texts.length === 0 || texts.length > longestList || texts.some((text) => text === undefined)
    ? undefined
    : (texts as string[])
}

/** `programmingLanguage`, `Time zone` and `IDE` as the rules write them: `programming_language`, `timezone`, `editor`. */
function keyOf(name: string): string {
  const key = name
    .slice(0, 60)
    .replace(/(?<=[a-z])(?=[A-Z])/g, '_')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}.]+/gu, '_')
    .replace(/^_+|_+$/g, '')
  return /^constraints?$/.test(key) ? constraints : (topicCalled(key) ?? key)
}
