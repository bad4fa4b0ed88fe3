import type { Message, Millis, Role } from '../domain/entry.ts'

/** What of a message is judged. */
export type Judged = Pick<Message, 'role' | 'content' | 'at' | 'sequence'>

const hour: Millis = 3_600_000
const day: Millis = 24 * hour

// All scores are in hundredths, so that 0.5 + 0.2 + 0.1 is 0.8 and not a little less.

/** In the middle: small talk then falls below 0.3, and a recent message with a URL or a selector reaches 0.8. */
const base = 50
const short = { below: 20, counts: -20 }
const roles: Readonly<Partial<Record<Role, number>>> = { system: 10, tool: 15 }

const url = /https?:\/\//i
/** A mark that stands in for a secret says as much as the word. */
const credential = /password|credential|⟨secret:/i
/** The whole word: `okay` is one, while `nothing`, `no-op` and `hi-res` say something. */
const smallTalk = /^\s*(?:ok|okay|yes|no|sure|thanks|hi|hello)(?![\p{L}\p{M}\p{N}_]|[-./@'’][\p{L}\p{N}])/iu

const signals: readonly (readonly [sign: RegExp, counts: number])[] = [
  [/error|failed/i, 15],
  [url, 10],
  [/selector|xpath/i, 10],
  [credential, 20],
  [/\b(?:important|critical)/i, 15],
  [smallTalk, -30],
]

/**
 * How much an entry is worth keeping, from 0 to 1: by its age, by what it holds and by who said it.
 *
 * @example
 * relevanceOf({ role: 'user', content: 'ok', at: now, sequence: 7 }, now) // 0.2
 */
export function relevanceOf({ role, content, at }: Judged, now: Millis): number {
  let score = base + recency(now - at) + (roles[role] ?? 0)
  if (content.trim().length < short.below) score += short.counts
  for (const [sign, counts] of signals) if (sign.test(content)) score += counts
  return Math.min(100, Math.max(0, score)) / 100
}

function recency(age: Millis): number {
  if (age <= hour) return 20
  return age <= day ? 10 : -10
}

const keyFacts: readonly RegExp[] = [
  url,
  /error|failed|exception/i,
  // selectors, by name or as they are written: '#login', [data-id="4"], //div[@id]
  /selector|xpath|["'`]#[a-z_]|\[[\w-]{1,60}[~|^$*]?=["']|\/\/[\w*]{1,40}\[/i,
  // APIs, by name or as a request
  /(?<![a-z])apis?(?![a-z])/i,
  /\b(?:GET|POST|PUT|PATCH|DELETE) \/\w/,
  credential,
  /\b(?:step|phase)s?[ #:-]{0,3}\d/i,
]

/**
 * Whether a text holds something that is looked up later: a URL, an error, a selector, an API, a credential or a numbered step.
 *
 * @example
 * hasKeyFacts('Phase 2 begins on Monday') // true
 */
export const hasKeyFacts = (text: string): boolean => keyFacts.some((fact) => fact.test(text))
