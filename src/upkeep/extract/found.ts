import type { Json, Message, Millis, Source } from '../../domain/entry.ts'

/** The fields of important data, in the order in which they are shown. */
export const fields = [
  'user_preferences',
  'key_decisions',
  'important_facts',
  'source_urls',
  'document_structure',
  'entities',
  'custom_fields',
] as const
export type Field = (typeof fields)[number]

const keyed: ReadonlySet<string> = new Set<Field>(['user_preferences', 'document_structure', 'custom_fields'])

/** Whether a field is an object, so that a newer value takes the place of an older one; the others are lists. */
export const isKeyed = (field: string): boolean => keyed.has(field)

/** What extraction needs to know of a message. */
export type Told = Pick<Message, 'id' | 'role' | 'name' | 'content' | 'at'>

/** Something found, with where and when it was said. What objects hold has a key; what lists hold has `''`. */
export type Found = {
  readonly field: Field
  readonly key: string
  readonly value: Json
  readonly importance: number
  readonly at: Millis
  readonly source: Source
}

/** Something found in one text: `text.slice(from, to)` is the clause or the value it was taken from. */
export type Noted = Pick<Found, 'field' | 'key' | 'value' | 'importance'> & {
  readonly from: number
  readonly to: number
}

/** How much each field matters from 0 to 10, when nothing else is said about it. */
export const importanceOf: Readonly<Record<Field, number>> = {
  user_preferences: 8,
  key_decisions: 8,
  important_facts: 6,
  source_urls: 5,
  document_structure: 7,
  entities: 3,
  custom_fields: 8,
}
