import type { Knowledge, Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import { isLearned } from '../domain/knowledge.ts'
import type { Store } from '../domain/ports.ts'
import { type RevisionResult, revise } from './revise.ts'

/** Fields of knowledge that determine its confidence. */
export type ConfidenceState = Pick<Knowledge, 'confidence' | 'usedAt' | 'at' | 'agedAt' | 'statedBy' | 'usedBy'> &
  Partial<Pick<Knowledge, 'origin' | 'sources'>>

const initialConfidence = 0.5
// Steps are in hundredths, so that 0.7 + 0.1 is exactly 0.8.
const mentionGain = 10
const useGain = 5
const idleLoss = -10
const minConfidence = 10

const idleStepMs: Millis = 30 * 24 * 3_600_000
/** More sessions than it takes to go from 0 to full confidence. */
const maxSessionsTracked = 16

const toHundredths = (confidence: number): number => Math.round(confidence * 100)
const addHundredths = (confidence: number, delta: number): number =>
  Math.min(100, Math.max(0, toHundredths(confidence) + delta)) / 100

/** Raises confidence unless the session has been counted before. */
const raiseOncePerSession = (
  confidence: number,
  gain: number,
  counted: readonly string[] = [],
  session?: string,
): number => (session !== undefined && counted.includes(session) ? confidence : addHundredths(confidence, gain))

/** Moves a session to the end, so that one seen repeatedly is not the first to be evicted. */
const withSession = (sessions: readonly string[] = [], session: string): readonly string[] =>
  [...sessions.filter((known) => known !== session), session].slice(-maxSessionsTracked)

/**
 * Returns the confidence state after a mention. Each session counts once; an explicit confidence replaces the computed
 * one. Learned knowledge whose confidence had run out begins anew.
 *
 * @example
 * recordMention(undefined, { at: now }) // { confidence: 0.5, at: now, usedAt: now }
 */
export function recordMention(
  known: ConfidenceState | undefined,
  mention: { readonly session?: string | undefined; readonly confidence?: number | undefined; readonly at: Millis },
): Omit<ConfidenceState, 'origin' | 'sources'> {
  const { session, at } = mention
  const aged = known && applyAging(known, at)
  const before = aged !== undefined && isFaded(aged) ? undefined : aged
  const sessions = session === undefined ? before?.statedBy : withSession(before?.statedBy, session)
  return {
    confidence:
      mention.confidence ??
      (before === undefined
        ? initialConfidence
        : raiseOncePerSession(before.confidence, mentionGain, before.statedBy, session)),
    at,
    usedAt: before?.usedAt ?? at,
    ...(before?.agedAt === undefined ? {} : { agedAt: before.agedAt }),
    ...(sessions === undefined ? {} : { statedBy: sessions }),
    ...(before?.usedBy === undefined ? {} : { usedBy: before.usedBy }),
  }
}

/**
 * Returns knowledge after a session has used it. The first use per session raises confidence; every use resets ageing.
 */
export function recordUse<K extends ConfidenceState>(
  known: K,
  use: { readonly session: string; readonly at: Millis },
): K {
  const before = applyAging(known, use.at)
  return {
    ...before,
    confidence: raiseOncePerSession(before.confidence, useGain, before.usedBy, use.session),
    // Uses may be recorded late and out of order.
    usedAt: Math.max(before.usedAt, use.at),
    usedBy: withSession(before.usedBy, use.session),
  }
}

/**
 * Lowers the confidence of learned knowledge for every 30 days without a mention or use. Mentions and uses apply this
 * first, so the result does not depend on how often a sweep runs. Returns the same object when nothing changes.
 */
export function applyAging<K extends ConfidenceState>(known: K, now: Millis): K {
  const from = idleSince(known)
  const steps = Math.floor((now - from) / idleStepMs)
  if (steps < 1 || !isLearned(known)) return known
  return { ...known, confidence: addHundredths(known.confidence, steps * idleLoss), agedAt: from + steps * idleStepMs }
}

const idleSince = ({ at, usedAt, agedAt = 0 }: ConfidenceState): Millis => Math.max(at, usedAt, agedAt)

/** Time at which unused knowledge next loses confidence. */
const nextAgingAt = (known: ConfidenceState): Millis => idleSince(known) + idleStepMs

/** True for learned knowledge whose confidence has run out. */
export const isFaded = (known: ConfidenceState): boolean =>
  isLearned(known) && toHundredths(known.confidence) < minConfidence

/** Brings knowledge back if it is archived, with the confidence of a new statement. */
export function restoreKnowledge(known: Knowledge, at: Millis): Knowledge {
  if (known.archived !== true) return known
  const { archived: _archived, agedAt: _agedAt, ...rest } = known
  return { ...rest, confidence: Math.max(rest.confidence, initialConfidence), usedAt: at }
}

/** Changes one entry of knowledge. Throws `bad-option` if the id is unknown. */
export async function changeKnowledge(
  store: Store,
  key: Key,
  id: string,
  change: (known: Knowledge) => Knowledge,
): Promise<Knowledge> {
  const revised = await revise(store, key, ({ derived }) => {
    const known = derived.find((entry): entry is Knowledge => entry.kind === 'knowledge' && entry.id === id)
    if (known !== undefined) return { put: [change(known)], drop: [] }
    throw new MemoryError('bad-option', `${key.scope} has no knowledge with the id ${id}.`, { param: 'id' })
  })
  return (revised as RevisionResult).put[0] as Knowledge
}

/** Ages the knowledge of all scopes and archives what has faded. Resolves to the time of the next change. */
export async function ageKnowledge(store: Store, now: Millis): Promise<Millis> {
  let next = Number.POSITIVE_INFINITY
  for (let after = ''; ; ) {
    const page = await store.list({ after, limit: 1_000 })
    for (const { key } of page) if (key.id === '') next = Math.min(next, await ageScope(store, key, now))
    const last = page.at(-1)
    if (last === undefined) return next
    after = formatKey(last.key)
  }
}

async function ageScope(store: Store, key: Key, now: Millis): Promise<Millis> {
  let next = Number.POSITIVE_INFINITY
  await revise(store, key, ({ derived }) => {
    const fading = derived
      .filter((entry) => entry.kind === 'knowledge')
      .filter((entry) => isLearned(entry) && !entry.archived)
    const aged = fading.map((entry) => applyAging(entry, now))
    const put = aged.map((entry): Knowledge => (isFaded(entry) ? { ...entry, archived: true } : entry))
    next = put.reduce(
      (min, entry) => (entry.archived ? min : Math.min(min, nextAgingAt(entry))),
      Number.POSITIVE_INFINITY,
    )
    return { put: put.filter((entry, index) => entry !== fading[index]), drop: [] }
  })
  return next
}
