import type { Derived, Fact, Json, Millis, Summary } from '../domain/entry.ts'
import { countBetween, type Gap } from '../domain/session.ts'
import { type Field, fields, isKeyed } from './extract/found.ts'
import { constraints } from './extract/statements.ts'
import { bySaid, factsAsOf } from './merge.ts'

type JsonObject = { [key: string]: Json }
type ImportantData = {
  readonly [F in Field]: F extends 'user_preferences' | 'document_structure' | 'custom_fields' ? JsonObject : Json[]
}

/** What is kept of a conversation besides its messages, as one piece of plain data. */
export type MemoryRecord = {
  readonly important_data: ImportantData
  readonly conversation_summary: string
  readonly summary_version: number
  readonly last_summarized_at: string | null
  readonly messages_summarized_count: number
  /** Sequence number of the last message that was summed up, 0 if none was. */
  readonly last_keep_window_index: number
}

/**
 * The record of a session whose messages have these gaps, as it is or as it was at a time. A session nothing is known of has the empty record.
 *
 * @example
 * recordOf([]).important_data.user_preferences // {}
 */
export function recordOf(derived: readonly Derived[], asOf?: Millis, gaps: readonly Gap[] = []): MemoryRecord {
  const facts = derived.filter((entry): entry is Fact => entry.kind === 'fact')
  const held = asOf === undefined ? facts.filter((fact) => fact.until === undefined) : factsAsOf(facts, asOf)
  const summary = newest(derived, asOf)
  return {
    important_data: dataOf([...held].sort(bySaid)),
    conversation_summary: summary?.text ?? '',
    summary_version: summary?.version ?? 0,
    last_summarized_at: summary === undefined ? null : isoOf(summary.at),
    messages_summarized_count: summary === undefined ? 0 : countBetween(gaps, ...summary.covers),
    last_keep_window_index: summary?.covers[1] ?? 0,
  }
}

function newest(derived: readonly Derived[], asOf: Millis = Number.POSITIVE_INFINITY): Summary | undefined {
  let found: Summary | undefined
  for (const entry of derived)
    if (
      entry.kind === 'summary' &&
      entry.tier === 'progressive' &&
      entry.at <= asOf &&
      entry.version > (found?.version ?? -1)
    )
      found = entry
  return found
}

function dataOf(facts: readonly Fact[]): ImportantData {
  const data = Object.fromEntries(
    fields.map((field) => [field, isKeyed(field) ? Object.create(null) : []]),
  ) as ImportantData
  for (const { field, key, value } of facts) {
    const place = Object.hasOwn(data, field) ? data[field as Field] : undefined
    if (Array.isArray(place)) place.push(value)
    else if (place !== undefined) set(place, field, key, value)
  }
  return data
}

/** Rules are kept one by one, so that each can be superseded, and shown together. */
function set(object: JsonObject, field: string, key: string, value: Json): void {
  const isRule = field === 'custom_fields' && key.startsWith(`${constraints}.`)
  if (isRule) object[constraints] = [...[object[constraints] ?? []].flat(), value]
  else object[key] = value
}

/** A time no calendar has is none. */
const isoOf = (at: Millis): string | null => (Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : null)
