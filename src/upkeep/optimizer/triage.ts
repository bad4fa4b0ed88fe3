import type { Message, Millis, Role, TuningParameters, UpkeepNotes } from '../../domain/entry.ts'
import { isInRanges } from '../../domain/session.ts'
import { runSync, type Work } from '../../domain/work.ts'
import { cutLongText } from '../../text/digest.ts'
import { markRedundantInSteps } from './redundancy.ts'

/** Messages marked by earlier runs. */
export type TriageMarks = NonNullable<UpkeepNotes['triage']>

/** Sequence numbers to show shortened, to hide, and to promote to long-term memory. Each is in at most one list. */
export type TriageActions = {
  readonly compress: readonly number[]
  readonly drop: readonly number[]
  readonly promote: readonly number[]
}

const minPromoteRelevance = 0.8
/** Share of common words from which a newer message makes an older one redundant. */
const minSimilarity = 0.9

/**
 * Decides how each message is shown. The transcript itself is never changed.
 *
 * @example
 * triage([{ role: 'user', content: 'ok', at: now, sequence: 7 }], noMarks, initialParameters, now)
 * // { compress: [7], drop: [], promote: [] }
 */
export const triage = (...input: Parameters<typeof triageInSteps>): TriageActions => runSync(triageInSteps(...input))

/** `triage` as interruptible work. */
export function* triageInSteps(
  messages: readonly TriageMessage[],
  marks: TriageMarks,
  { minRelevance }: Pick<TuningParameters, 'minRelevance'>,
  now: Millis,
): Work<TriageActions> {
  // Hidden messages do not make others redundant.
  const shown = messages
    .filter(({ sequence }) => !isInRanges(marks.dropped, sequence))
    .sort((left, right) => left.sequence - right.sequence)
    .map((message) => ({ ...message, content: cutLongText(message.content) }))
  const redundant = yield* markRedundantInSteps(
    shown.map(({ content }) => content),
    minSimilarity,
  )
  const actions = { compress: [] as number[], drop: [] as number[], promote: [] as number[] }
  for (const [index, message] of shown.entries()) {
    const action = chooseAction(message, marks, { minRelevance, now, isRedundant: redundant[index] === 1 })
    if (action !== undefined) actions[action].push(message.sequence)
    yield message.content.length
  }
  return actions
}

function chooseAction(
  message: TriageMessage,
  marks: TriageMarks,
  {
    minRelevance,
    now,
    isRedundant,
  }: { readonly minRelevance: number; readonly now: Millis; readonly isRedundant: boolean },
): keyof TriageActions | undefined {
  const isPromoted = isInRanges(marks.promoted, message.sequence)
  const isCompressed = isInRanges(marks.compressed, message.sequence)
  // Promoted messages keep a relevance of 1 regardless of age.
  const relevance = isPromoted ? 1 : scoreRelevance(message, now)
  if (relevance < minRelevance) return isCompressed ? 'drop' : 'compress'
  // A newer message has the same content, and is promoted instead.
  if (isRedundant) return isCompressed ? undefined : 'compress'
  return !isPromoted && relevance >= minPromoteRelevance && hasKeyFacts(message.content) ? 'promote' : undefined
}

/** Fields of a message used for triage. */
export type TriageMessage = Pick<Message, 'role' | 'content' | 'at' | 'sequence'>

const hourMs: Millis = 3_600_000
const dayMs: Millis = 24 * hourMs

// Scores are in hundredths, so that 0.5 + 0.2 + 0.1 is exactly 0.8.

/** Chosen so that small talk falls below 0.3, and a recent message with a URL or a selector reaches 0.8. */
const baseScore = 50
const shortMessage = { maxChars: 20, score: -20 }
const roleScores: Readonly<Partial<Record<Role, number>>> = { system: 10, tool: 15 }

const url = /https?:\/\//i
/** The placeholder of a masked secret counts as a credential. */
const credential = /password|credential|⟨secret:/i
/** Matches whole words only: `okay`, but not `nothing`, `no-op` or `hi-res`. */
const smallTalk = /^\s*(?:ok|okay|yes|no|sure|thanks|hi|hello)(?![\p{L}\p{M}\p{N}_]|[-./@'’][\p{L}\p{N}])/iu

const signals: readonly (readonly [pattern: RegExp, score: number])[] = [
  [/error|failed/i, 15],
  [url, 10],
  [/selector|xpath/i, 10],
  [credential, 20],
  [/\b(?:important|critical)/i, 15],
  [smallTalk, -30],
]

/**
 * Scores a message from 0 to 1 by age, content and role.
 *
 * @example
 * scoreRelevance({ role: 'user', content: 'ok', at: now, sequence: 7 }, now) // 0.2
 */
export function scoreRelevance({ role, content, at }: TriageMessage, now: Millis): number {
  let score = baseScore + recencyScore(now - at) + (roleScores[role] ?? 0)
  if (content.trim().length < shortMessage.maxChars) score += shortMessage.score
  for (const [pattern, points] of signals) if (pattern.test(content)) score += points
  return Math.min(100, Math.max(0, score)) / 100
}

function recencyScore(age: Millis): number {
  if (age <= hourMs) return 20
  return age <= dayMs ? 10 : -10
}

const keyFactPatterns: readonly RegExp[] = [
  url,
  /error|failed|exception/i,
  // selectors, by name or literally: '#login', [data-id="4"], //div[@id]
  /selector|xpath|["'`]#[a-z_]|\[[\w-]{1,60}[~|^$*]?=["']|\/\/[\w*]{1,40}\[/i,
  // APIs, by name or as a request
  /(?<![a-z])apis?(?![a-z])/i,
  /\b(?:GET|POST|PUT|PATCH|DELETE) \/\w/,
  credential,
  /\b(?:step|phase)s?[ #:-]{0,3}\d/i,
]

/**
 * True if a text contains a URL, an error, a selector, an API, a credential or a numbered step.
 *
 * @example
 * hasKeyFacts('Phase 2 begins on Monday') // true
 */
export const hasKeyFacts = (text: string): boolean => keyFactPatterns.some((pattern) => pattern.test(text))
