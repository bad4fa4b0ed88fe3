import type { DerivedEntry, Fact, Item, Millis, Summary, UpkeepNotes } from '../domain/entry.ts'
import { countExisting, type SessionHead } from '../domain/session.ts'
import type { Work } from '../domain/work.ts'
import type { FactCandidate } from './extract/fields.ts'
import { isSameFact, type MergeResult, mergeFactsInSteps } from './extract/merge.ts'
import type { KnowledgeProposal } from './learn/learn.ts'

/** Result of a step, and the state it is based on. It is valid only while that state is unchanged. */
export type StepOutcome = {
  readonly basis: {
    readonly epoch: number
    /** Sequence numbers of the messages that were read. */
    readonly messages: readonly number[]
    /** Summaries that are continued. The text is compared too: rederiving after a deletion keeps id and version. */
    readonly summaries: readonly Pick<Summary, 'id' | 'version' | 'text'>[]
    /** Number of optimizer runs before this one; set by the optimizer only. */
    readonly optimizerRuns?: number
  }
  readonly put: readonly (Summary | Item)[]
  readonly drop: readonly string[]
  readonly facts: readonly FactCandidate[]
  readonly notes: Partial<Pick<UpkeepNotes, 'faults' | 'triage' | 'tuning' | 'facts' | 'learned'>>
  /** Knowledge to store for the scope once the outcome is committed. */
  readonly knowledge?: readonly KnowledgeProposal[]
}

/** The change that applies an outcome to a session. */
type OutcomeChange = { readonly put: readonly DerivedEntry[]; readonly drop: readonly string[] }

/**
 * Creates a function that returns the change that applies an outcome to a session; undefined if its basis has changed.
 * Later calls merge facts again only if those of the session have changed: messages that are appended during a long
 * merge leave them as they are.
 */
export function createOutcomeApplier(
  outcome: StepOutcome,
): (head: SessionHead, now: Millis) => Work<OutcomeChange | undefined> {
  let merged: { readonly existing: readonly Fact[]; readonly result: MergeResult } | undefined
  return function* (head, now) {
    if (!isStillValid(head, outcome)) return undefined
    const existing = head.derived.filter((entry): entry is Fact => entry.kind === 'fact')
    if (merged === undefined || !areSameFacts(existing, merged.existing)) {
      const createId = (index: number): string => `f${head.revision + 1}.${index}`
      merged = { existing, result: yield* mergeFactsInSteps(existing, outcome.facts, { at: now, createId }) }
    }
    const { put, drop } = merged.result
    const dropped = new Set(drop)
    const count = new Set([...existing, ...put].map(({ id }) => id).filter((id) => !dropped.has(id))).size
    const notes = updateNotes(head, { ...outcome.notes, ...(count === 0 ? {} : { facts: count }) }, now)
    return { put: [...outcome.put, ...put, ...notes.put], drop: [...outcome.drop, ...drop, ...notes.drop] }
  }
}

const areSameFacts = (some: readonly Fact[], others: readonly Fact[]): boolean =>
  some.length === others.length && some.every((fact, index) => isSameFact(fact, others[index]))

function isStillValid(head: SessionHead, { basis, put }: StepOutcome): boolean {
  if (head.epoch !== basis.epoch) return false
  if (
    basis.messages.some(
      (sequence) => sequence > head.lastSequence || countExisting(head.gaps, sequence, sequence) === 0,
    )
  )
    return false
  if (basis.optimizerRuns !== undefined && basis.optimizerRuns !== optimizerRuns(head)) return false
  const summaries = head.derived.filter((entry) => entry.kind === 'summary')
  const isUnchanged = ({ id, version, text }: Pick<Summary, 'id' | 'version' | 'text'>) =>
    summaries.some((summary) => summary.id === id && summary.version === version && summary.text === text)
  if (!basis.summaries.every(isUnchanged)) return false
  // Rejects messages that another summary covers by now, unless this outcome continues that one.
  const continued = new Set(basis.summaries.map(({ id }) => id))
  const others = summaries.filter(({ id, tier }) => !continued.has(id) && tier !== 'batch')
  return !put.some((entry) => entry.kind === 'summary' && others.some((other) => summariesOverlap(entry, other)))
}

/** True if two summaries have the same id or cover some of the same messages. */
export const summariesOverlap = (one: Summary, other: Summary): boolean =>
  one.id === other.id || (one.covers[0] <= other.covers[1] && other.covers[0] <= one.covers[1])

export const optimizerRuns = ({ derived }: SessionHead): number =>
  derived.find((entry) => entry.kind === 'notes')?.tuning?.runs ?? 0

/** Returns the change that updates the notes and releases the lease. Empty notes are dropped. */
export function updateNotes(
  head: SessionHead,
  changes: StepOutcome['notes'],
  now: Millis,
): { readonly put: readonly UpkeepNotes[]; readonly drop: readonly string[] } {
  const notes = head.derived.find((entry) => entry.kind === 'notes')
  const { lease, faults = [], facts: _, ...rest } = { ...notes, ...changes }
  const next: UpkeepNotes = {
    ...rest,
    ...(changes.facts === undefined ? {} : { facts: changes.facts }),
    ...(faults.length === 0 ? {} : { faults }),
    kind: 'notes',
    id: 'notes',
    at: now,
    sources: [],
  }
  const isUnchanged =
    lease === undefined &&
    notes?.facts === next.facts &&
    notes?.triage === next.triage &&
    notes?.tuning === next.tuning &&
    notes?.learned === next.learned &&
    JSON.stringify(notes?.faults) === JSON.stringify(next.faults)
  if (isUnchanged) return { put: [], drop: [] }
  if ([next.faults, next.triage, next.tuning, next.facts, next.learned].some((part) => part !== undefined))
    return { put: [next], drop: [] }
  return { put: [], drop: notes === undefined ? [] : [notes.id] }
}
