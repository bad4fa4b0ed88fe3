import type { Derived, Fact, Item, Millis, Notes, Summary } from '../domain/entry.ts'
import { countBetween, type Head } from '../domain/session.ts'
import type { Found } from './extract.ts'
import { mergeFacts } from './merge.ts'

/** What a step would change, and what it was decided on: it counts only as long as that is still so. */
export type Outcome = {
  readonly basis: {
    readonly epoch: number
    /** Sequence numbers of the messages that were read. */
    readonly messages: readonly number[]
    /** Summaries it continues, as they were: one made anew after something was forgotten is another. */
    readonly summaries: readonly Pick<Summary, 'id' | 'version' | 'text'>[]
    /** How often the optimizer had run, where that matters. */
    readonly runs?: number
  }
  readonly put: readonly (Summary | Item)[]
  readonly drop: readonly string[]
  readonly found: readonly Found[]
  readonly notes: Partial<Pick<Notes, 'faults' | 'triage' | 'tuning' | 'facts'>>
}

/** The change that brings an outcome into a session as it is now; undefined if what it was decided on is no longer so. */
export function fold(
  head: Head,
  outcome: Outcome,
  now: Millis,
): { readonly put: readonly Derived[]; readonly drop: readonly string[] } | undefined {
  if (!stillHolds(head, outcome)) return undefined
  const facts = head.derived.filter((entry): entry is Fact => entry.kind === 'fact')
  const merged = mergeFacts(facts, outcome.found, { at: now, id: (place) => `f${head.revision + 1}.${place}` })
  const gone = new Set(merged.drop)
  const count = new Set([...facts, ...merged.put].map(({ id }) => id).filter((id) => !gone.has(id))).size
  const notes = noted(head, { ...outcome.notes, ...(count === 0 ? {} : { facts: count }) }, now)
  return { put: [...outcome.put, ...merged.put, ...notes.put], drop: [...outcome.drop, ...merged.drop, ...notes.drop] }
}

function stillHolds(head: Head, { basis, put }: Outcome): boolean {
  if (head.epoch !== basis.epoch) return false
  if (basis.messages.some((sequence) => sequence > head.last || countBetween(head.gaps, sequence, sequence) === 0))
    return false
  if (basis.runs !== undefined && basis.runs !== runsIn(head)) return false
  const summaries = head.derived.filter((entry) => entry.kind === 'summary')
  const isSame = ({ id, version, text }: Pick<Summary, 'id' | 'version' | 'text'>) =>
    summaries.some((one) => one.id === id && one.version === version && one.text === text)
  if (!basis.summaries.every(isSame)) return false
  // What another summary stands for by now, that this one does not continue, is not summed up twice.
  const continued = new Set(basis.summaries.map(({ id }) => id))
  const others = summaries.filter(({ id, tier }) => !continued.has(id) && tier !== 'batch')
  return !put.some((entry) => entry.kind === 'summary' && others.some((other) => overlaps(entry, other)))
}

/** Whether two summaries are one, or stand for some of the same messages. */
export const overlaps = (one: Summary, other: Summary): boolean =>
  one.id === other.id || (one.covers[0] <= other.covers[1] && other.covers[0] <= one.covers[1])

export const runsIn = ({ derived }: Head): number => derived.find((entry) => entry.kind === 'notes')?.tuning?.runs ?? 0

/** The notes with what is new in them, without the lease: the work is done. None are kept that say nothing. */
export function noted(
  head: Head,
  news: Outcome['notes'],
  now: Millis,
): { readonly put: readonly Notes[]; readonly drop: readonly string[] } {
  const notes = head.derived.find((entry) => entry.kind === 'notes')
  const { lease, faults = [], facts: _, ...kept } = { ...notes, ...news }
  const counted = news.facts === undefined ? {} : { facts: news.facts }
  const next: Notes = {
    ...kept,
    ...counted,
    ...(faults.length === 0 ? {} : { faults }),
    kind: 'notes',
    id: 'notes',
    at: now,
    sources: [],
  }
  const isSame =
    lease === undefined &&
    notes?.facts === next.facts &&
    notes?.triage === next.triage &&
    notes?.tuning === next.tuning &&
    JSON.stringify(notes?.faults) === JSON.stringify(next.faults)
  if (isSame) return { put: [], drop: [] }
  if (next.faults !== undefined || next.triage !== undefined || next.tuning !== undefined || next.facts !== undefined)
    return { put: [next], drop: [] }
  return { put: [], drop: notes === undefined ? [] : [notes.id] }
}
