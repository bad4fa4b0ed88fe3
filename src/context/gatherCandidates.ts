import {
  type DerivedEntry,
  isBlank,
  isInternal,
  type Knowledge,
  type Message,
  parseMessageId,
  type SequenceRange,
  type Tokens,
} from '../domain/entry.ts'
import { getOrCompute } from '../domain/keyed.ts'
import type { Origin } from '../domain/ledger.ts'
import type { IndexHit, IndexQuery, PageOptions } from '../domain/ports.ts'
import type { Band, Profile } from '../domain/profile.ts'
import { estimateReservedTokens, getImportance, matchesClaim, maxBandTokens } from '../domain/profile.ts'
import { isInRanges, type SessionHead } from '../domain/session.ts'
import type { WorkSelection } from '../selection/workSelection.ts'
import type { TimeRange } from '../text/calendar.ts'
import { type PassageRange, splitPassages } from '../text/passages.ts'
import {
  type BandCandidates,
  type BudgetPressure,
  type ClaimInput,
  type ClaimLimit,
  claimLimitOf,
  type DerivedClaim,
  type MutableBandCandidates,
  measurePressure,
  upToMessages,
} from './claimLimits.ts'
import { gatherWork, type WorkCandidates } from './gatherWork.ts'
import { firstSequence, groupIntoUnits, lastSequence, mayBeSplit, singleUnit, type Unit } from './render.ts'

/** A read that the caller performs on the store, synchronously or not. */
export type ReadRequest = { readonly page: PageOptions } | { readonly search: IndexQuery }
/** Result of a read: messages of a page, or hits of a search. */
export type ReadResponse = { readonly messages: readonly Message[]; readonly hits: readonly IndexHit[] }
/** A computation that yields its reads, so that the same code runs on synchronous and asynchronous stores. */
export type ContextQuery<T> = Generator<ReadRequest, T, ReadResponse>

/** Everything a context may show: the newest turn, which must be shown, and the candidates of the bands. */
export type ContextCandidates = {
  readonly head: SessionHead
  readonly derived: readonly DerivedEntry[]
  /** Origins of the derived entries that are not the session's own. */
  readonly origins: ReadonlyMap<DerivedEntry, Origin>
  readonly pressure: BudgetPressure
  /** System message that opens the session. */
  readonly openingMessage: Unit | undefined
  /** Newest turn of the user, and the units after it. */
  readonly newestTurn: Unit | undefined
  readonly sinceNewestTurn: readonly Unit[]
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
  /** Period that the question names. */
  readonly period?: TimeRange | undefined
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
  const origins = new Map<DerivedEntry, Origin>()
  const derived = head.derived.filter(
    (entry) => isShowable(entry) && (sentByClient === undefined || liesBeyond(sentByClient, entry)),
  )
  for (const { from, entries } of options.sharedEntries) {
    for (const entry of entries) {
      origins.set(entry, from)
      if (isShowable(entry)) derived.push(entry)
    }
  }
  const messageBudget = budget - estimateReservedTokens(bands, derived, budget, options.tokenCostOf)
  const pressure = measurePressure(head, profile, budget)
  const question = query ?? head.lastUserMessage?.content ?? ''
  const input: ClaimInput = { derived, budget, messageBudget, pressure, question }
  const work = yield* findWork(reader, head, profile, input, options)
  const inReadingOrder: BandCandidates[] = []
  const byPriority: BandCandidates[] = []
  for (const band of getOrCompute(bandsByPriority, profile, sortByPriority)) {
    const { claim } = band
    const candidates: MutableBandCandidates = { band, units: none, derived: none, limit: budget, shortenedRuns: none }
    byPriority.push(candidates)
    inReadingOrder[bands.indexOf(band)] = candidates
    if ('kind' in claim) candidates.derived = claimDerived(claim, derived)
    else if ('first' in claim) candidates.units = yield* reader.readFirst(claim.first)
    else if (work !== undefined && 'tail' in claim) candidates.units = work.recent
    else if (work !== undefined && 'recalled' in claim) candidates.units = work.excerpts
    else if ('recalled' in claim)
      candidates.units = yield* reader.recall(question, {
        limit: claim.recalled.limit,
        period,
        budget: Math.min(maxBandTokens(band, budget), budget - countClaimed(byPriority)),
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
    pressure,
    ...(sentByClient === undefined ? reader.newestTurn() : noTurn),
    isQuestionStored: query === undefined,
    bands: inReadingOrder,
    byPriority,
    sentByClient,
  }
}

/** Selects excerpts of a work session if the budget is small and the profile recalls; see `gatherWork`. */
function* findWork(
  reader: SessionReader,
  head: SessionHead,
  { bands }: Profile,
  { messageBudget, question }: ClaimInput,
  { budget, query, work, sentByClient }: GatherOptions,
): ContextQuery<WorkCandidates | undefined> {
  const tail = bands.flatMap(({ claim }) => ('tail' in claim ? claim.tail : []))[0]
  const recalls = bands.some(({ claim }) => 'recalled' in claim)
  if (work === undefined || tail === undefined || !recalls || sentByClient !== undefined) return undefined
  const newest = head.recent.at(-1)
  const total = newest === undefined ? 0 : newest.offset + newest.weight
  if (budget > tail.smallBudget.budget || total <= tail.keepAll * messageBudget) return undefined
  const asked = query === undefined ? head.lastUserMessage : undefined
  const reserved = asked === undefined ? 0 : total - asked.offset
  return yield* gatherWork({
    work,
    question,
    budget: messageBudget - reserved - frameTokens,
    before: asked?.sequence ?? Number.POSITIVE_INFINITY,
    newest: head.recent,
    readNewest: (characters) => reader.readNewest(characters),
  })
}

/** Tokens of framing texts around recalled messages. */
const frameTokens = 60

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

const none: readonly never[] = []
const isShowable = (entry: DerivedEntry): boolean => !isInternal(entry)

const bandsByPriority = new WeakMap<Profile, readonly Band[]>()
const sortByPriority = ({ bands }: Profile): readonly Band[] => bands.toSorted((a, b) => a.priority - b.priority)

/** Selects the derived entries of a claim, best first. */
function claimDerived(claim: DerivedClaim, derived: readonly DerivedEntry[]): readonly DerivedEntry[] {
  if (derived.length === 0) return derived
  const matching = derived.filter((entry) => matchesClaim(entry, claim)).sort(compareByWorth)
  return matching.slice(0, claim.top)
}

const compareByWorth = (a: DerivedEntry, b: DerivedEntry): number =>
  getImportance(b) - getImportance(a) || b.at - a.at || (a.id < b.id ? -1 : 1)

/** Hits from the named period that score below this share of the best hit get no precedence. */
const minPeriodScoreShare = 0.25

/** Puts hits from the period that the question names first. The others follow, because the period may be misread. */
function preferPeriod(periodHits: readonly IndexHit[], hits: readonly IndexHit[]): readonly IndexHit[] {
  const minScore = minPeriodScoreShare * (hits[0]?.score ?? 0)
  const first = periodHits.filter(({ score }) => score >= minScore)
  const idOf = ({ entry, passage }: IndexHit): string => `${entry.id} ${passage?.[0] ?? 0}`
  const ids = new Set(first.map(idOf))
  return [...first, ...hits.filter((hit) => !ids.has(idOf(hit)))]
}

/** A hit of its own words, not only by its neighbours or its topic. */
const isMatch = ({ why }: IndexHit): boolean => (why.words ?? 0) > 0 || (why.related ?? 0) > 0 || (why.meaning ?? 0) > 0

/** Fillers are read until all units together cost this many times the budget, because some will not fit. */
const spareTokens = 1.1
const fillerPage = 64

function toUnit(message: Message, passage: PassageRange | undefined): Unit {
  const isPart = passage !== undefined && passage[1] - passage[0] < message.content.length
  return isPart ? { ...singleUnit(message), passage } : singleUnit(message)
}

function estimateTokens({ messages, passage }: Unit): Tokens {
  const { lineTokens, content } = messages[0] as Message
  return passage === undefined ? lineTokens : Math.ceil((lineTokens * (passage[1] - passage[0])) / content.length)
}

/** Counts the tokens of the claimed messages. */
function countClaimed(bands: readonly BandCandidates[]): Tokens {
  let tokens = 0
  for (const { units, limit } of bands) {
    let claimed = 0
    for (const { messages } of units) for (const message of messages) claimed += message.weight
    tokens += Math.min(claimed, limit)
  }
  return tokens
}

/** Reads a session page by page from both ends and gives out each unit once. */
class SessionReader {
  readonly #head: SessionHead
  readonly #sentByClient: readonly SequenceRange[]
  /** True once the start of the session is reached. */
  isAtStart = false
  /** Units loaded from the end, in order, and how many of them are claimed. */
  #loaded: readonly Unit[] = none
  #claimed = 0
  /** Oldest loaded messages that may belong to a unit which starts on an earlier page. */
  #incomplete: readonly Message[] = none
  /** Units claimed from the start. */
  #first: readonly Unit[] = none

  constructor(head: SessionHead, sentByClient: readonly SequenceRange[] = none) {
    this.#head = head
    this.#sentByClient = sentByClient
    this.#addLoaded(head.recent, head.recent.length >= head.messages)
  }

  *readFirst(count: number): ContextQuery<readonly Unit[]> {
    let messages: readonly Message[] = this.#head.firstMessage === undefined ? [] : [this.#head.firstMessage]
    for (let limit = count + 8; needsMoreMessages(messages, count); limit *= 2) {
      messages = (yield { page: { limit } }).messages
      if (messages.length < limit) break
    }
    const claimedFrom = this.#firstClaimedSequence(Number.POSITIVE_INFINITY)
    this.#first = takeUnits(groupIntoUnits(messages), count).filter((unit) => lastSequence(unit) < claimedFrom)
    return this.#first
  }

  /** Claims the newest unclaimed units. Returns false if older ones must be loaded first. */
  claimNewest(units: Unit[], { accepts, after = 0, skips }: ClaimLimit): boolean {
    const loaded = this.#loaded
    const stop = this.#lastSequenceOfFirst()
    for (let at = loaded.length - this.#claimed - 1; at >= 0; at--) {
      const unit = loaded[at] as Unit
      if (firstSequence(unit) <= stop || lastSequence(unit) <= after || !accepts(unit)) return true
      if (skips?.(unit) !== true) units.push(unit)
      this.#claimed++
    }
    return this.isAtStart
  }

  /**
   * Searches the unclaimed messages for passages that matter to the question; those from the named period come first.
   * The newest of the other messages follow, as far as the passages leave room for them.
   */
  *recall(
    text: string,
    { limit, period, budget }: { limit: number; period: TimeRange | undefined; budget: Tokens },
  ): ContextQuery<readonly Unit[]> {
    const before = this.#firstClaimedSequence(this.#head.lastSequence + 1)
    const after = this.#lastSequenceOfFirst()
    if (before <= after + 1 || limit === 0 || budget <= 0 || this.#isAllSent()) return none
    const search: IndexQuery = { text, kinds: ['message'], before, limit, budget }
    const { hits } = yield { search }
    const periodHits =
      period === undefined ? [] : (yield { search: { ...search, from: period.from, to: period.to - 1 } }).hits
    const isFullClient = this.#sentByClient.length > 0
    const units = preferPeriod(periodHits, hits).flatMap((hit) =>
      hit.entry.kind === 'message' &&
      hit.entry.sequence > after &&
      !isInRanges(this.#sentByClient, hit.entry.sequence) &&
      (!isFullClient || isMatch(hit))
        ? [toUnit(hit.entry, hit.passage)]
        : [],
    )
    return isFullClient ? units : [...units, ...(yield* this.#readFillers(units, before, after, budget))]
  }

  /** Reads the newest messages between two sequence numbers that are not among the units and could fit beside them. */
  *#readFillers(units: readonly Unit[], before: number, after: number, budget: Tokens): ContextQuery<readonly Unit[]> {
    const fillers: Unit[] = []
    const found = new Set(units.map(firstSequence))
    let tokens = units.reduce((sum, unit) => sum + estimateTokens(unit), 0)
    for (let end = before; tokens < spareTokens * budget && end > after + 1; ) {
      const { messages } = yield { page: { after, before: end, limit: fillerPage, newest: true } }
      for (const message of messages.toReversed()) {
        if (found.has(message.sequence) || isBlank(message.content) || tokens >= spareTokens * budget) continue
        for (const passage of splitPassages(message.content).toReversed()) {
          const unit: Unit = { ...toUnit(message, passage), basis: 'filler' }
          fillers.push(unit)
          tokens += estimateTokens(unit)
        }
      }
      if (messages.length < fillerPage) break
      end = (messages[0] as Message).sequence
    }
    return fillers
  }

  /** True if the client sends every message of the session itself. */
  #isAllSent(): boolean {
    const [range] = this.#sentByClient
    const { firstMessage, lastSequence: last } = this.#head
    return range !== undefined && range[0] <= (firstMessage?.sequence ?? 1) && range[1] >= last
  }

  newestTurn(): Pick<ContextCandidates, 'newestTurn' | 'sinceNewestTurn' | 'openingMessage'> {
    const { firstMessage, lastUserMessage } = this.#head
    const at =
      lastUserMessage === undefined
        ? -1
        : this.#loaded.findLastIndex((unit) => firstSequence(unit) === lastUserMessage.sequence)
    const openingMessage =
      firstMessage?.role === 'system' && !isBlank(firstMessage.content) ? singleUnit(firstMessage) : undefined
    return {
      newestTurn: this.#loaded[at],
      sinceNewestTurn: at < 0 ? none : this.#loaded.slice(at + 1),
      openingMessage,
    }
  }

  /** Reads the newest messages up to a number of characters, in order. */
  *readNewest(characters: number): ContextQuery<readonly Message[]> {
    const messages = (): readonly Message[] => this.#loaded.flatMap((unit) => unit.messages)
    const length = (): number => messages().reduce((sum, { content }) => sum + content.length, 0)
    while (!this.isAtStart && length() < characters) yield* this.loadOlder()
    return messages()
  }

  /** First sequence number loaded from the end. */
  oldestSequence(): number {
    const oldest = this.#loaded[0]
    return oldest === undefined ? this.#head.lastSequence + 1 : firstSequence(oldest)
  }

  /** Loads at least one older unit, if there is one. */
  *loadOlder(): ContextQuery<void> {
    const count = this.#loaded.length
    for (let limit = 64; !this.isAtStart && this.#loaded.length === count; limit = Math.min(limit * 2, 1_024)) {
      const before = this.#incomplete[0]?.sequence ?? this.oldestSequence()
      const { messages } = yield { page: { before, limit, newest: true } }
      this.#addLoaded([...messages, ...this.#incomplete], messages.length < limit)
    }
  }

  #firstClaimedSequence(fallback: number): number {
    const oldest = this.#loaded[this.#loaded.length - this.#claimed]
    return oldest === undefined ? fallback : firstSequence(oldest)
  }

  #lastSequenceOfFirst(): number {
    const last = this.#first.at(-1)
    return last === undefined ? 0 : lastSequence(last)
  }

  /** Groups loaded messages into units. Keeps leading tool results aside until their call is loaded. */
  #addLoaded(messages: readonly Message[], isAtStart: boolean): void {
    let incomplete = 0
    if (!isAtStart) while (messages[incomplete]?.role === 'tool') incomplete++
    const units = groupIntoUnits(messages, incomplete)
    this.#loaded = this.#loaded.length === 0 ? units : [...units, ...this.#loaded]
    this.#incomplete = messages.slice(0, incomplete)
    this.isAtStart = isAtStart
  }
}

/** True if the first units of a session are not complete yet. */
function needsMoreMessages(messages: readonly Message[], count: number): boolean {
  const last = messages.at(-1)
  return (
    messages.length < count ||
    (mayBeSplit(last) && takeUnits(groupIntoUnits(messages), count).at(-1)?.messages.at(-1) === last)
  )
}

function takeUnits(units: readonly Unit[], maxMessages: number): Unit[] {
  const accepts = upToMessages(maxMessages)
  return units.filter((unit) => accepts(unit))
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
