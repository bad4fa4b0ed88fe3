import { checkOptions } from '../domain/checkOptions.ts'
import type { Json, Millis, Summary } from '../domain/entry.ts'
import { anyValue, isObject, MemoryError } from '../domain/error.ts'
import type { SessionHead } from '../domain/session.ts'
import { defaultImportance, type FactCandidate, type FactField, factFields, isKeyedField } from './extract/fields.ts'
import type { StepOutcome } from './outcome.ts'
import { summariesOfTier } from './plan.ts'

/** Part of a session's record that a caller sets. The other fields of the record are computed. */
export type RecordUpdate = {
  /** Values to add. In objects they replace values of the same name; in lists they are added once. */
  readonly important_data?: { readonly [F in FactField]?: { readonly [key: string]: Json } | readonly Json[] }
  /** Replaces the text of the summary. */
  readonly conversation_summary?: string
  /** Version of that summary; default: one more than before. */
  readonly summary_version?: number
}

const maxValues = 200
const maxValueChars = 4_000
const maxSummaryChars = 20_000

/** Checks an update from a caller. Throws `bad-option` with the name of the field. */
export function checkRecordUpdate(update: unknown): asserts update is RecordUpdate {
  checkOptions<RecordUpdate>('update', update, {
    important_data: anyValue,
    conversation_summary: anyValue,
    summary_version: anyValue,
  })
  const { important_data: data = {}, conversation_summary: text, summary_version: version } = update as RecordUpdate
  if (!isObject(data)) throw badField('important_data', 'must be an object.')
  for (const [field, values] of Object.entries(data)) checkValues(field, values)
  if (listValues(data).length > maxValues) throw badField('important_data', `has more than ${maxValues} values.`)
  if (text !== undefined && (typeof text !== 'string' || text.trim() === '' || text.length > maxSummaryChars))
    throw badField(
      'conversation_summary',
      `must be text of 1 to ${maxSummaryChars} characters. To remove it, clear the record.`,
    )
  if (version === undefined) return
  if (!Number.isSafeInteger(version) || version < 1)
    throw badField('summary_version', 'must be a whole number, 1 or more.')
  if (text === undefined) throw badField('summary_version', 'needs a conversation_summary.')
}

function checkValues(field: string, values: unknown): void {
  const name = `important_data.${field}`
  if (!factFields.some((known) => known === field)) throw badField(name, `is unknown. Use: ${factFields.join(', ')}.`)
  if (isKeyedField(field) ? !isObject(values) : !Array.isArray(values))
    throw badField(name, `must be ${isKeyedField(field) ? 'an object' : 'a list'}.`)
  for (const [key, value] of Object.entries(values as object)) {
    if (key.trim() === '' || isEmpty(value)) throw badField(name, 'has an empty name or value. Leave it out.')
    if (key.length + JSON.stringify(value).length > maxValueChars)
      throw badField(name, `has a value of more than ${maxValueChars} characters.`)
  }
}

const isEmpty = (value: unknown): boolean =>
  value === null || JSON.stringify(value) === undefined || (typeof value === 'string' && value.trim() === '')

const badField = (name: string, problem: string): MemoryError =>
  new MemoryError('bad-option', `${name.slice(0, 80)} ${problem}`, { param: name.slice(0, 80) })

const listValues = (
  data: NonNullable<RecordUpdate['important_data']>,
): readonly (readonly [FactField, string, Json])[] =>
  Object.entries(data).flatMap(([field, values]) =>
    Object.entries(values).map(([key, value]): [FactField, string, Json] => [
      field as FactField,
      isKeyedField(field) ? key : '',
      value,
    ]),
  )

/**
 * Returns the outcome of an update for a session as it is. The source of each fact is the update itself, not a message.
 */
export function planRecordUpdate(head: SessionHead, update: RecordUpdate, now: Millis): StepOutcome {
  const source = { message: `update${head.revision + 1}` }
  const facts = listValues(update.important_data ?? {}).map(
    ([field, key, value]): FactCandidate => ({
      field,
      key,
      value,
      importance: defaultImportance[field],
      at: now,
      source,
    }),
  )
  const [previous] = summariesOfTier(head.derived, 'progressive')
  const put = update.conversation_summary === undefined ? [] : [buildSummary(update, previous, now)]
  const summaries = put.length === 0 || previous === undefined ? [] : [previous]
  return { basis: { epoch: head.epoch, messages: [], summaries }, put, drop: [], facts, notes: {} }
}

function buildSummary(
  { conversation_summary: text = '', summary_version }: RecordUpdate,
  previous: Summary | undefined,
  now: Millis,
): Summary {
  // An empty range: the messages of the session are not summarised yet.
  const { covers = [1, 0] as const, endOffset = 0, version = 0, sources = [] } = previous ?? {}
  return {
    kind: 'summary',
    id: 'summary',
    at: now,
    tier: 'progressive',
    text,
    covers,
    endOffset,
    version: summary_version ?? version + 1,
    by: 'caller',
    sources,
    // The text is not compared with the messages: any of them may have more to tell.
    lossyRanges: covers[1] < covers[0] ? [] : [covers],
  }
}
