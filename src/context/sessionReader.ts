import { isBlank, type Message, type SequenceRange, type Tokens } from '../domain/entry.ts'
import type { Origin } from '../domain/ledger.ts'
import type { IndexHit, IndexQuery, PageOptions } from '../domain/ports.ts'
import { isInRanges, type SessionHead } from '../domain/session.ts'
import { toSlices, type Work } from '../domain/work.ts'
import type { TimeRange } from '../text/calendar.ts'
import { type PassageRange, splitPassagesInSteps } from '../text/passages.ts'
import { type ClaimLimit, upToMessages } from './claimLimits.ts'
import { firstSequence, groupIntoUnits, lastSequence, mayBeSplit, singleUnit, type Unit } from './render.ts'

/** A read that the caller performs on the store, synchronously or not; without `in`, on the session itself. */
export type ReadRequest =
  | { readonly page: PageOptions }
  | { readonly search: IndexQuery; readonly in?: Origin | undefined }
  /** Reads nothing: a point at which other work may run. */
  | { readonly pause: true }
/** Result of a read: messages of a page, or hits of a search. */
export type ReadResponse = { readonly messages: readonly Message[]; readonly hits: readonly IndexHit[] }
/** A computation that yields its reads, so that the same code runs on synchronous and asynchronous stores. */
export type ContextQuery<T> = Generator<ReadRequest, T, ReadResponse>

/** Runs long work with pauses. */
export function* runWithPauses<T>(work: Work<T>): ContextQuery<T> {
  const slices = toSlices(work)
  let step = slices.next()
  for (; step.done !== true; step = slices.next()) yield { pause: true }
  return step.value
}

const none: readonly never[] = []

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

/** Adds the reason why a hit is shown that does not match the question itself. */
function withBasis(unit: Unit, hit: IndexHit): Unit {
  if (isMatch(hit)) return unit
  return { ...unit, basis: (hit.why.nearby ?? 0) > 0 ? 'nearby' : 'filler' }
}

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

type RecallOptions = {
  readonly limit: number
  readonly findPeriod: (() => TimeRange | undefined) | undefined
  readonly budget: Tokens
}

/** Newest turn of the user with the units after it, and the system message that opens the session. */
export type NewestTurn = {
  readonly newestTurn: Unit | undefined
  readonly sinceNewestTurn: readonly Unit[]
  readonly openingMessage: Unit | undefined
}

/** Reads a session page by page from both ends and gives out each unit once. */
export class SessionReader {
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
  *recall(text: string, { limit, findPeriod, budget }: RecallOptions): ContextQuery<readonly Unit[]> {
    const before = this.#firstClaimedSequence(this.#head.lastSequence + 1)
    const after = this.#lastSequenceOfFirst()
    if (before <= after + 1 || limit === 0 || budget <= 0 || this.#isAllSent()) return none
    const search: IndexQuery = { text, kinds: ['message'], before, limit, budget }
    const { hits } = yield { search }
    const period = findPeriod?.()
    const periodHits =
      period === undefined ? [] : (yield { search: { ...search, from: period.from, to: period.to - 1 } }).hits
    const isFullClient = this.#sentByClient.length > 0
    const units = preferPeriod(periodHits, hits).flatMap((hit) =>
      hit.entry.kind === 'message' &&
      hit.entry.sequence > after &&
      !isInRanges(this.#sentByClient, hit.entry.sequence) &&
      (!isFullClient || isMatch(hit))
        ? [withBasis(toUnit(hit.entry, hit.passage), hit)]
        : [],
    )
    return isFullClient ? units : [...units, ...(yield* this.#readFillers(units, before, after, budget))]
  }

  /** Reads the newest messages between two sequence numbers that are not among the units and could fit beside them. */
  *#readFillers(units: readonly Unit[], before: number, after: number, budget: Tokens): ContextQuery<readonly Unit[]> {
    const fillers: Unit[] = []
    const placeOf = (unit: Unit): string => `${firstSequence(unit)} ${unit.passage?.[0] ?? 0}`
    const found = new Set(units.map(placeOf))
    let tokens = units.reduce((sum, unit) => sum + estimateTokens(unit), 0)
    for (let end = before; tokens < spareTokens * budget && end > after + 1; ) {
      const { messages } = yield { page: { after, before: end, limit: fillerPage, newest: true } }
      for (const message of messages.toReversed()) {
        if (isBlank(message.content) || tokens >= spareTokens * budget) continue
        for (const passage of (yield* runWithPauses(splitPassagesInSteps(message.content))).toReversed()) {
          const unit: Unit = { ...toUnit(message, passage), basis: 'filler' }
          if (found.has(placeOf(unit))) continue
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

  newestTurn(): NewestTurn {
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
