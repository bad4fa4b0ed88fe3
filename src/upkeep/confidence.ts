import type { Knowledge, Millis } from '../domain/entry.ts'

/** What of a piece of knowledge says how far it is believed. */
export type Believed = Pick<Knowledge, 'confidence' | 'usedAt' | 'at' | 'agedAt' | 'told' | 'used'>

const first = 0.5
// Steps are in hundredths, so that 0.7 + 0.1 is 0.8 and five times 0.1 less than 0.6 is 0.1.
const perTelling = 10
const perUse = 5
const perIdleStep = -10
const spentBelow = 10

const idleStep: Millis = 30 * 24 * 3_600_000
/** How many sessions are remembered: more than it takes from nothing to certainty. */
const sessionsKept = 16

const hundredths = (confidence: number): number => Math.round(confidence * 100)
const moved = (confidence: number, by: number): number => Math.min(100, Math.max(0, hundredths(confidence) + by)) / 100

/** A session that has been counted before adds nothing. */
const raised = (confidence: number, by: number, counted: readonly string[] = [], session?: string): number =>
  session !== undefined && counted.includes(session) ? confidence : moved(confidence, by)

/** The sessions with this one as the latest, so that one in a loop is not the first to be forgotten. */
const withSession = (sessions: readonly string[] = [], session: string): readonly string[] =>
  [...sessions.filter((known) => known !== session), session].slice(-sessionsKept)

/**
 * How far something is believed once it was told, perhaps again. A session that repeats itself adds nothing; a confidence
 * that comes with it is taken as it is.
 *
 * @example
 * told(undefined, { at: now }) // { confidence: 0.5, at: now, usedAt: now }
 */
export function told(
  known: Believed | undefined,
  by: { readonly session?: string | undefined; readonly confidence?: number | undefined; readonly at: Millis },
): Believed {
  const { session, at } = by
  const before = known && aged(known, at)
  const tellers = session === undefined ? before?.told : withSession(before?.told, session)
  return {
    confidence:
      by.confidence ?? (before === undefined ? first : raised(before.confidence, perTelling, before.told, session)),
    at,
    usedAt: before?.usedAt ?? at,
    ...(before?.agedAt === undefined ? {} : { agedAt: before.agedAt }),
    ...(tellers === undefined ? {} : { told: tellers }),
    ...(before?.used === undefined ? {} : { used: before.used }),
  }
}

/** Knowledge after a session has used it: its first use makes it more certain, every use keeps it from ageing. */
export function used<K extends Believed>(known: K, by: { readonly session: string; readonly at: Millis }): K {
  const before = aged(known, by.at)
  return {
    ...before,
    confidence: raised(before.confidence, perUse, before.used, by.session),
    // Uses may be noted late and out of order.
    usedAt: Math.max(before.usedAt, by.at),
    used: withSession(before.used, by.session),
  }
}

/**
 * Knowledge as it is believed now: less for every 30 days in which nobody told or used it. Telling and using begin with
 * this too, so that it makes no difference how often anybody sweeps. The same object when nothing changes.
 */
export function aged<K extends Believed>(known: K, now: Millis): K {
  const from = idleSince(known)
  const steps = Math.floor((now - from) / idleStep)
  if (steps < 1) return known
  return { ...known, confidence: moved(known.confidence, steps * perIdleStep), agedAt: from + steps * idleStep }
}

const idleSince = ({ at, usedAt, agedAt = 0 }: Believed): Millis => Math.max(at, usedAt, agedAt)

/** When knowledge that nobody tells or uses meanwhile is next believed less. */
export const agesAt = (known: Believed): Millis => idleSince(known) + idleStep

/** Whether knowledge is believed so little that it can go. */
export const isSpent = ({ confidence }: Pick<Believed, 'confidence'>): boolean => hundredths(confidence) < spentBelow
