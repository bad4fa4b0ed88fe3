import type { Json, Message, Millis, Source } from '../../domain/entry.ts'

/** Fields of `important_data` in display order. */
export const factFields = [
  'user_preferences',
  'key_decisions',
  'important_facts',
  'source_urls',
  'document_structure',
  'entities',
  'custom_fields',
] as const
/** Group of facts in the record of a session. */
export type FactField = (typeof factFields)[number]

const keyedFields: ReadonlySet<string> = new Set<FactField>(['user_preferences', 'document_structure', 'custom_fields'])

/** True for fields that are objects, in which a newer value replaces an older one. The other fields are lists. */
export const isKeyedField = (field: string): boolean => keyedFields.has(field)

/** Fields of a message that extraction uses. */
export type FactMessage = Pick<Message, 'id' | 'role' | 'name' | 'content' | 'at'>

/**
 * An extracted fact with its source. `key` names the slot that the value fills: an attribute such as `deadline`, with a
 * qualifier (`deadline.report`) or, for attributes with several values, the value (`allergy.nuts`). Facts of a list
 * without a slot have no key.
 */
export type FactCandidate = {
  readonly field: FactField
  readonly key: string
  readonly value: Json
  readonly importance: number
  readonly at: Millis
  readonly source: Source
  /** The statement says that it changes an earlier one. */
  readonly revises?: true
  /** Value that the statement says it replaces. */
  readonly replaces?: string
}

/** A fact found in one text: `text.slice(from, to)` is the clause or value it was taken from. */
export type TextFact = Pick<FactCandidate, 'field' | 'key' | 'value' | 'importance' | 'revises' | 'replaces'> & {
  readonly from: number
  readonly to: number
  /** The user asked to remember it. */
  readonly isReminder?: true
}

/** Default importance of each field, from 0 to 10. */
export const defaultImportance: Readonly<Record<FactField, number>> = {
  user_preferences: 8,
  key_decisions: 8,
  important_facts: 6,
  source_urls: 5,
  document_structure: 7,
  entities: 3,
  custom_fields: 8,
}
