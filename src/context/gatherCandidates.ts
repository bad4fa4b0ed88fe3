import {
  type DerivedEntry,
  isBlank,
  isInternal,
  type Knowledge,
  parseMessageId,
  type SequenceRange,
  type Tokens,
} from '../domain/entry.ts'
import { getOrCompute } from '../domain/keyed.ts'
import type { Origin } from '../domain/ledger.ts'
import type { IndexHit } from '../domain/ports.ts'
import type { Band, Profile } from '../domain/profile.ts'
import { estimateReservedTokens, getImportance, matchesClaim, maxBandTokens } from '../domain/profile.ts'
import { isInRanges, type SessionHead } from '../domain/session.ts'
import type { WorkSelection } from '../selection/workSelection.ts'
import type { TimeRange } from '../text/calendar.ts'
import { type QuestionScores, scoreByQuestion, selectMatching, sortByScore } from './chooseByQuestion.ts'
import {
  type BandCandidates,
  type BudgetPressure,
  type ClaimInput,
  claimLimitOf,
  type DerivedClaim,
  type MutableBandCandidates,
  measurePressure,
} from './claimLimits.ts'
import { gatherWork } from './gatherWork.ts'
import { firstSequence, type Unit } from './render.ts'
import { type ContextQuery, type NewestTurn, SessionReader } from './sessionReader.ts'

/** Everything a context may show: the newest turn, which must be shown, and the candidates of the bands. */
export type ContextCandidates = NewestTurn & {
  readonly head: SessionHead
  readonly derived: readonly DerivedEntry[]
  /** Origins of the derived entries that are not the session's own. */
  readonly origins: ReadonlyMap<DerivedEntry, Origin>
  /** Scores of the entries that match the question; undefined without a question. */
  readonly scores: QuestionScores | undefined
  readonly pressure: BudgetPressure
  /** True if the question is the newest turn itself, false if it is not part of the session. */
  readonly isQuestionStored: boolean
  /** Candidates in reading order, and in the order in which the bands spend the budget. */
  readonly bands: readonly BandCandidates[]
  readonly byPriority: readonly BandCandidates[]
  /** Passages of the scope's files. */
  readonly passages?: BandCandidates
  /** Messages that the client sends itself; see `GatherOptions`. */
  readonly sentByClient: readonly SequenceRange[] | undefined
}

export type GatherOptions = {
  readonly budget: Tokens
  /** Question that is not part of the session; undefined to use the newest turn. */
  readonly query: string | undefined
  readonly sharedEntries: readonly SharedEntries[]
  /** Returns the period that the question names; called only if messages are recalled. */
  readonly period?: (() => TimeRange | undefined) | undefined
  /** Returns the tokens of a derived entry shown whole. */
  readonly tokenCostOf: (entry: DerivedEntry) => Tokens
  /**
   * Messages of the session that the client sends itself, in order. When set, only what lies beyond them is gathered:
   * neither those messages nor entries derived from them alone, and no newest turn.
   */
  readonly sentByClient?: readonly SequenceRange[] | undefined
  /** Selects excerpts of work sessions. Default: they are treated as conversations. */
  readonly work?: WorkSelection | undefined
}

/** Collects the candidates of each band. Reads no more of the session than could fit the budget. */
export function* gatherCandidates(
  head: SessionHead,
  profile: Profile,
  options: GatherOptions,
): ContextQuery<ContextCandidates> {
  const { budget, query, period, sentByClient } = options
  const { bands } = profile
  const reader = new SessionReader(head, sentByClient)
  const { derived, origins } = gatherDerived(head, options)
  const messageBudget = budget - estimateReservedTokens(bands, derived, budget, options.tokenCostOf)
  const pressure = measurePressure(head, profile, budget)
  const question = query ?? head.lastUserMessage?.content ?? ''
  const input: ClaimInput = { derived, budget, messageBudget, pressure, question }
  const scores = isBlank(question) ? undefined : yield* scoreDerived(head, profile, options, derived, question)
  const asked = query === undefined ? head.lastUserMessage : undefined
  const work =
    options.work === undefined || sentByClient !== undefined
      ? undefined
      : yield* gatherWork(reader, head, profile, input, options.work, asked)
  const inReadingOrder: BandCandidates[] = []
  const byPriority: BandCandidates[] = []
  for (const band of getOrCompute(bandsByPriority, profile, sortByPriority)) {
    const { claim } = band
    const candidates: MutableBandCandidates = { band, units: none, derived: none, limit: budget, shortenedRuns: none }
    byPriority.push(candidates)
    inReadingOrder[bands.indexOf(band)] = candidates
    if ('kind' in claim) candidates.derived = claimDerived(band, claim, derived, scores, origins)
    else if ('first' in claim) {
      if (maxBandTokens(band, budget) > 0) candidates.units = yield* reader.readFirst(claim.first)
    } else if (work !== undefined && 'tail' in claim) candidates.units = work.recent
    else if (work !== undefined && 'recalled' in claim) candidates.units = work.excerpts
    else if ('recalled' in claim)
      candidates.units = yield* reader.recall(question, {
        limit: claim.recalled.limit,
        findPeriod: period,
        budget: recallBudget(band, budget, budget - messageBudget + countClaimed(byPriority, budget)),
      })
    else {
      const limit = claimLimitOf(candidates, claim, head, input)
      const units: Unit[] = []
      candidates.units = units
      while (!reader.claimNewest(units, limit)) yield* reader.loadOlder()
    }
  }
  const newestQuestion = sentByClient === undefined ? head.lastUserMessage?.sequence : undefined
  while (reader.oldestSequence() > (newestQuestion ?? head.lastSequence + 1) && !reader.isAtStart)
    yield* reader.loadOlder()
  return {
    head,
    derived,
    origins,
    scores,
    pressure,
    ...(sentByClient === undefined ? reader.newestTurn() : noTurn),
    isQuestionStored: query === undefined,
    bands: inReadingOrder,
    byPriority,
    sentByClient,
  }
}

/** Collects the derived entries of the session and of what it shares, with the origins of the latter. */
function gatherDerived(
  head: SessionHead,
  { sharedEntries, sentByClient }: GatherOptions,
): { derived: readonly DerivedEntry[]; origins: ReadonlyMap<DerivedEntry, Origin> } {
  const origins = new Map<DerivedEntry, Origin>()
  const derived = head.derived.filter(
    (entry) => isShowable(entry) && (sentByClient === undefined || liesBeyond(sentByClient, entry)),
  )
  for (const { from, entries } of sharedEntries) {
    for (const entry of entries) {
      origins.set(entry, from)
      if (isShowable(entry)) derived.push(entry)
    }
  }
  return { derived, origins }
}

/** Scores the entries that the bands choose by the question. */
function* scoreDerived(
  { recent }: SessionHead,
  { bands }: Profile,
  { sharedEntries, budget, tokenCostOf }: GatherOptions,
  derived: readonly DerivedEntry[],
  question: string,
): ContextQuery<QuestionScores> {
  const isChosen = (entry: DerivedEntry): boolean =>
    bands.some((band) => 'kind' in band.claim && choosesByQuestion(band, band.claim) && matchesClaim(entry, band.claim))
  const isCrowded = (items: readonly DerivedEntry[]): boolean =>
    items.reduce((sum, entry) => sum + tokenCostOf(entry), 0) >
    Math.min(
      ...bands.map((band) =>
        'kind' in band.claim && band.claim.kind === 'item' ? maxBandTokens(band, budget) : budget,
      ),
    )
  const own = new Set(derived.filter(isChosen))
  const groups = sharedEntries.map(({ from, entries }) => ({
    from,
    entries: entries.filter((entry) => own.delete(entry)),
  }))
  const items = [...own].filter(({ kind }) => kind === 'item')
  const ownEntries = [...own].filter((entry) => entry.kind !== 'item' || isCrowded(items))
  return yield* scoreByQuestion([{ from: undefined, entries: ownEntries }, ...groups], question, recent)
}

/** Knowledge is shown only if it matches the question. Items of a band that may change are put in its order. */
const choosesByQuestion = ({ volatile }: Band, { kind }: DerivedClaim): boolean =>
  kind === 'knowledge' || (kind === 'item' && volatile === true)

const noTurn = { newestTurn: undefined, sinceNewestTurn: [], openingMessage: undefined }

/** True if an entry tells something that the messages sent by the client do not. */
function liesBeyond(sent: readonly SequenceRange[], entry: DerivedEntry): boolean {
  if (entry.kind === 'summary') return !isInRanges(sent, entry.covers[0])
  if (entry.kind !== 'fact' && entry.kind !== 'item') return true
  return (
    entry.sources.length === 0 ||
    entry.sources.some(
      ({ message, session }) => session !== undefined || !isInRanges(sent, parseMessageId(message) ?? 0),
    )
  )
}

const profilesBeyond = new WeakMap<Profile, Profile>()

/** The profile for what lies beyond a client's own conversation: its bands without those that show the conversation. */
export const profileBeyond = (profile: Profile): Profile =>
  getOrCompute(profilesBeyond, profile, () => ({
    ...profile,
    bands: profile.bands.filter(({ claim }) => 'kind' in claim || 'recalled' in claim),
  }))

const profilesForSmallBudgets = new WeakMap<Profile, Profile>()

/**
 * The profile for a budget. Where the tail is a share of a small budget, the beginning of the prompt changes with every
 * turn anyway; derived entries are then shown in one block with recalled messages, which saves the framing of another.
 */
export function profileForBudget(profile: Profile, budget: Tokens): Profile {
  const isSmall = profile.bands.some(({ claim }) => 'tail' in claim && budget <= claim.tail.smallBudget.budget)
  return isSmall
    ? getOrCompute(profilesForSmallBudgets, profile, () => ({
        ...profile,
        bands: profile.bands.map((band) => ('kind' in band.claim ? { ...band, volatile: true } : band)),
      }))
    : profile
}

const none: readonly never[] = []
const isShowable = (entry: DerivedEntry): boolean => !isInternal(entry)

const bandsByPriority = new WeakMap<Profile, readonly Band[]>()
const sortByPriority = ({ bands }: Profile): readonly Band[] => bands.toSorted((a, b) => a.priority - b.priority)

/** Selects the derived entries of a claim, best first: by the question or, without one, by confidence or importance. */
function claimDerived(
  band: Band,
  claim: DerivedClaim,
  derived: readonly DerivedEntry[],
  scores: QuestionScores | undefined,
  origins: ReadonlyMap<DerivedEntry, Origin>,
): readonly DerivedEntry[] {
  if (derived.length === 0) return derived
  const byWorth = derived.filter((entry) => matchesClaim(entry, claim)).sort(compareByWorth)
  if (scores === undefined || !choosesByQuestion(band, claim)) return byWorth.slice(0, claim.top)
  const chosen = claim.kind === 'knowledge' ? selectMatching(byWorth, scores, origins) : sortByScore(byWorth, scores)
  return chosen.slice(0, claim.top)
}

const compareByWorth = (a: DerivedEntry, b: DerivedEntry): number =>
  getImportance(b) - getImportance(a) || b.at - a.at || (a.id < b.id ? -1 : 1)

/** Tokens that recalled messages may use if the other bands use `claimed`. */
const recallBudget = (band: Band, budget: Tokens, claimed: Tokens): Tokens =>
  Math.min(maxBandTokens(band, budget, claimed), budget - claimed)

/** Counts the tokens of the claimed messages, as far as their bands can show them. */
function countClaimed(bands: readonly BandCandidates[], budget: Tokens): Tokens {
  let tokens = 0
  for (const { band, units, limit } of bands) {
    let claimed = 0
    for (const { messages } of units) for (const message of messages) claimed += message.weight
    tokens += Math.min(claimed, limit, maxBandTokens(band, budget))
  }
  return tokens
}

/** Entries from outside the session, by origin. */
export type SharedEntries = { readonly from: Origin; readonly entries: readonly DerivedEntry[] }

/** True if the profile shows entries of this origin. Files belong to the scope. */
export const isVisible = ({ scopes }: Profile, from: Origin): boolean =>
  scopes.includes(from === 'person' ? 'person' : 'scope')

/** Passages of files searched per question. */
export const maxPassages = 4

/**
 * True if the passage itself matches the question, not only its neighbours, and scores at least half as high as the
 * best.
 */
const isRelevant = ({ score, why }: IndexHit, best: IndexHit): boolean => why.words !== 0 && 2 * score >= best.score

/**
 * Converts search hits in files to knowledge entries without a key, which render as `[handbook.pdf] …`. The id has a
 * prefix, so that it cannot be confused with a message id of the session.
 */
export const toPassages = (hits: readonly IndexHit[]): readonly Knowledge[] =>
  hits.flatMap((hit) => {
    const { entry } = hit
    if (entry.kind !== 'message' || !isRelevant(hit, hits[0] as IndexHit)) return []
    const { id, at, name = 'file', content: value } = entry
    return [
      {
        kind: 'knowledge',
        id: `files/${id}`,
        at,
        category: name.replace(/\s+/g, ' '),
        key: '',
        value,
        confidence: 1,
        usedAt: at,
        sources: [],
      },
    ]
  })

/**
 * Adds file passages as candidates of the knowledge band, within its limits. They are shown just before the newest
 * turn, because they change with every question, and without a heading, because each names its file.
 */
export function addPassages(
  candidates: ContextCandidates,
  entries: readonly DerivedEntry[],
  budget: Tokens,
): ContextCandidates {
  if (entries.length === 0) return candidates
  const knowledgeBand = candidates.bands.find(
    ({ band: { claim } }) => 'kind' in claim && claim.kind === 'knowledge',
  )?.band
  if (knowledgeBand === undefined) return candidates
  const { heading: _, ...band } = knowledgeBand
  const origins = new Map([...candidates.origins, ...entries.map((entry) => [entry, 'files'] as const)])
  const passages = {
    band: { ...band, volatile: true, maxMisses: maxPassages },
    units: [],
    derived: entries,
    limit: budget,
    shortenedRuns: [],
  }
  return { ...candidates, derived: [...candidates.derived, ...entries], origins, passages }
}

/** A stable block is read before the newest turn, so it must not contain messages that follow the turn. */
export const isAfterTurn = (unit: Unit, band: Band, { newestTurn, isQuestionStored }: ContextCandidates): boolean =>
  band.renderAs === 'block' &&
  isQuestionStored &&
  newestTurn !== undefined &&
  band.volatile !== true &&
  firstSequence(unit) > firstSequence(newestTurn)
