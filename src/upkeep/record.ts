import type { DerivedEntry, Fact, Json, Millis, Summary } from '../domain/entry.ts'
import { countExisting, type Gap } from '../domain/session.ts'
import { type FactField, factFields, isKeyedField } from './extract/fields.ts'
import { byFirstMention, factsAsOf } from './extract/merge.ts'
import { constraintsKey } from './extract/statements.ts'

type JsonObject = { [key: string]: Json }
type ImportantData = {
  readonly [F in FactField]: F extends 'user_preferences' | 'document_structure' | 'custom_fields' ? JsonObject : Json[]
}

/** Facts and summary of a session as plain data. Field names follow the source document. */
export type MemoryRecord = {
  readonly important_data: ImportantData
  readonly conversation_summary: string
  readonly summary_version: number
  readonly last_summarized_at: string | null
  readonly messages_summarized_count: number
  /** Sequence number of the last summarised message; 0 if there is none. */
  readonly last_keep_window_index: number
}

/**
 * Builds the record of a session, optionally as of an earlier time. `gaps` are the deleted ranges of its messages.
 *
 * @example
 * buildRecord([]).important_data.user_preferences // {}
 */
export function buildRecord(derived: readonly DerivedEntry[], asOf?: Millis, gaps: readonly Gap[] = []): MemoryRecord {
  const facts = derived.filter((entry): entry is Fact => entry.kind === 'fact')
  const current = asOf === undefined ? facts.filter(({ until }) => until === undefined) : factsAsOf(facts, asOf)
  const summary = latestSummary(derived, asOf)
  return {
    important_data: buildImportantData([...current].sort(byFirstMention)),
    conversation_summary: summary?.text ?? '',
    summary_version: summary?.version ?? 0,
    last_summarized_at: summary === undefined ? null : toIsoTime(summary.at),
    messages_summarized_count: summary === undefined ? 0 : countExisting(gaps, ...summary.covers),
    last_keep_window_index: summary?.covers[1] ?? 0,
  }
}

function latestSummary(derived: readonly DerivedEntry[], asOf: Millis = Number.POSITIVE_INFINITY): Summary | undefined {
  let latest: Summary | undefined
  for (const entry of derived)
    if (
      entry.kind === 'summary' &&
      entry.tier === 'progressive' &&
      entry.at <= asOf &&
      entry.version > (latest?.version ?? -1)
    )
      latest = entry
  return latest
}

function buildImportantData(facts: readonly Fact[]): ImportantData {
  const data = Object.fromEntries(
    factFields.map((field) => [field, isKeyedField(field) ? Object.create(null) : []]),
  ) as ImportantData
  for (const { field, key, value } of facts) {
    const container = Object.hasOwn(data, field) ? data[field as FactField] : undefined
    if (Array.isArray(container)) container.push(value)
    else if (container !== undefined) setKeyed(container, field, key, value)
  }
  return data
}

/** Sets a keyed value. Constraints are separate facts, so that each can be superseded, and are shown as one list. */
function setKeyed(object: JsonObject, field: string, key: string, value: Json): void {
  const isConstraint = field === 'custom_fields' && key.startsWith(`${constraintsKey}.`)
  if (isConstraint) object[constraintsKey] = [...[object[constraintsKey] ?? []].flat(), value]
  else object[key] = value
}

/** Returns null for a time outside the range of `Date`. */
const toIsoTime = (at: Millis): string | null => (Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : null)
