import {
  type DerivedEntry,
  isBlank,
  type Message,
  type SequenceRange,
  type Tokens,
  type UpkeepNotes,
} from '../domain/entry.ts'
import {
  type Band,
  type Claim,
  findSummaryCoverage,
  type Profile,
  type RenderStep,
  type Tail,
} from '../domain/profile.ts'
import { isInRanges, type SessionHead } from '../domain/session.ts'
import { isQuestion } from '../text/sentences.ts'
import { hasTerms } from '../text/words.ts'
import type { Unit } from './render.ts'

/** Entries that a band may show, best first. */
export type BandCandidates = {
  readonly band: Band
  readonly units: readonly Unit[]
  readonly derived: readonly DerivedEntry[]
  /** Maximum tokens. Below the budget only for a tail that is a share of it. */
  readonly limit: Tokens
  /** Messages that are shortened even if they would fit whole. */
  readonly shortenedRuns: readonly SequenceRange[]
}

/** Data that determines how far back the bands of a context reach. */
export type ClaimInput = {
  readonly derived: readonly DerivedEntry[]
  readonly budget: Tokens
  /** Budget left for messages after the stable derived entries. */
  readonly messageBudget: Tokens
  readonly pressure: BudgetPressure
  /** Text of the question. */
  readonly question: string
}

export type MutableBandCandidates = { -readonly [Field in keyof BandCandidates]: BandCandidates[Field] }
/** A claim on derived entries. */
export type DerivedClaim = Extract<Claim, { kind: string }>
/** A claim on the newest messages that no other band has claimed. */
type NewestClaim = Exclude<Claim, DerivedClaim | { first: number } | { recalled: object }>

type UnitPredicate = (unit: Unit) => boolean
/**
 * Limit of a claim, evaluated from the newest unit back: units are claimed as long as `accepts` returns true and they
 * end after the sequence number `after`. Units for which `skips` returns true are passed over.
 */
export type ClaimLimit = {
  readonly accepts: UnitPredicate
  readonly after?: number
  readonly skips?: UnitPredicate
}

/** Computes how far back a band claims messages. Also sets the token limit and the shortened runs of `candidates`. */
export function claimLimitOf(
  candidates: MutableBandCandidates,
  claim: NewestClaim,
  head: SessionHead,
  input: ClaimInput,
): ClaimLimit {
  const { budget, pressure } = input
  if ('tail' in claim) {
    const { start, limit } = tailRange(head, claim.tail, input)
    candidates.limit = limit
    return { accepts: limit < budget ? overlapping(start) : startingAt(start) }
  }
  if ('rest' in claim) {
    candidates.shortenedRuns = pressure.compressed
    const skips = (unit: Unit) => isFullyExcluded(unit, ({ sequence }) => isInRanges(pressure.dropped, sequence))
    return { accepts: withinBudget(budget, candidates.band.renderings, skips), skips }
  }
  const after = claim.uncovered ? findSummaryCoverage(input.derived).last : 0
  const accepts = 'last' in claim ? upToMessages(pressure.window ?? claim.last) : upToTokens(claim.lastTokens)
  return { accepts, after }
}

/**
 * Computes where the tail starts and what it may cost. The start is a multiple of a fixed step of the summed weights,
 * so that the tail grows at its end until it would pass `high`, and then loses one step at its start: no state, no scan
 * of the history. In a small budget the tail is a share of it: small for a question, which older turns may answer,
 * large otherwise.
 */
function tailRange(
  head: SessionHead,
  tail: Tail,
  { budget, messageBudget, question }: ClaimInput,
): { start: Tokens; limit: Tokens } {
  const newest = head.recent.at(-1)
  const total = newest === undefined ? 0 : newest.offset + newest.weight
  if (total <= tail.keepAll * messageBudget) return { start: 0, limit: budget }
  if (budget <= tail.smallBudget.budget) {
    const limit = Math.floor(smallBudgetShare(tail.smallBudget, question) * budget)
    return { start: total - limit, limit }
  }
  const step = Math.max(1, Math.floor((tail.high - tail.low) * messageBudget))
  return { start: step * Math.max(0, Math.floor((total - tail.low * messageBudget) / step)), limit: budget }
}

/** Fewer words than this say little about what to look for. */
export const minStatementTerms = 4

function smallBudgetShare({ question, statement, otherwise }: Tail['smallBudget'], text: string): number {
  if (isQuestion(text)) return question
  return hasTerms(text, minStatementTerms) ? statement : otherwise
}

/**
 * True if every message with text is excluded. Tool calls without text are ignored: they mean nothing without their
 * results.
 */
export function isFullyExcluded({ messages }: Unit, isExcluded: (message: Message) => boolean): boolean {
  const withText = messages.filter(({ content }) => !isBlank(content))
  return withText.length > 0 && withText.every(isExcluded)
}

/** Accepts units until `maxMessages` is reached. The last unit may exceed it. */
export function upToMessages(maxMessages: number): UnitPredicate {
  let count = 0
  return (unit) => {
    const isAccepted = count < maxMessages
    count += unit.messages.length
    return isAccepted
  }
}

/** Accepts units up to `maxTokens`, and always the first. */
function upToTokens(maxTokens: Tokens): UnitPredicate {
  let tokens = 0
  return (unit) => {
    const isFirst = tokens === 0
    for (const message of unit.messages) tokens += message.tokens
    return isFirst || tokens <= maxTokens
  }
}

const startingAt =
  (offset: Tokens): UnitPredicate =>
  (unit) =>
    (unit.messages[0] as Message).offset >= offset

/** Accepts also the unit that spans the offset: it can be shortened. */
const overlapping =
  (offset: Tokens): UnitPredicate =>
  (unit) => {
    const last = unit.messages.at(-1) as Message
    return last.offset + last.weight > offset
  }

/** Accepts as many units as could fit if each were rendered in its shortest form. */
function withinBudget(budget: Tokens, steps: readonly RenderStep[], skips: UnitPredicate): UnitPredicate {
  let minTokens = 0
  return (unit) => {
    if (skips(unit)) return true
    for (const message of unit.messages)
      minTokens += Math.max(4, Math.min(...steps.map((step) => minRenderedTokens(step, message.tokens))))
    return minTokens <= budget + 4
  }
}

/** Estimates the fewest tokens a render step can take for a message. */
function minRenderedTokens(step: RenderStep, tokens: Tokens): Tokens {
  if (step.as === 'clip') return Math.min(tokens, step.characters / 8)
  if (step.as === 'fit' || step.as === 'digest' || step.as === 'sections') return Math.min(tokens, 40)
  return step.as === 'whole' ? tokens : tokens / 2
}

/**
 * Results of the optimizer that apply to a context. The runs are empty until the history reaches the profile's trigger.
 */
export type BudgetPressure = {
  /** Number of newest messages shown whole by a band that counts messages. */
  readonly window: number | undefined
  /** Weight of the whole history, and whether it reaches the trigger. */
  readonly history: Tokens
  readonly due: boolean
  /** Messages to shorten, to leave out, and to show as long-term memory. */
  readonly compressed: readonly SequenceRange[]
  readonly dropped: readonly SequenceRange[]
  readonly promoted: readonly SequenceRange[]
}

export function measurePressure(head: SessionHead, profile: Profile, budget: Tokens): BudgetPressure {
  const newest = head.recent.at(-1)
  const history = newest === undefined ? 0 : newest.offset + newest.weight
  const hasOptimizer = profile.upkeep.some((rule) => 'optimise' in rule.do)
  const notes = hasOptimizer ? findNotes(head.derived) : undefined
  const trigger = notes?.tuning?.parameters.trigger ?? profile.upkeepAt
  const due = trigger !== undefined && history >= trigger * budget
  const { compressed, dropped, promoted } = (due ? notes?.triage : undefined) ?? noTriage
  return { window: notes?.tuning?.parameters.window, history, due, compressed, dropped, promoted }
}

const noTriage = { compressed: [], dropped: [], promoted: [] }

export const findNotes = (derived: readonly DerivedEntry[]): UpkeepNotes | undefined =>
  derived.find((entry) => entry.kind === 'notes')
