import { type DerivedEntry, formatPromotedId, type Message, type Tokens } from '../domain/entry.ts'
import { getOrCompute } from '../domain/keyed.ts'
import { type Band, maxBandTokens, type RenderStep } from '../domain/profile.ts'
import { isInRanges } from '../domain/session.ts'
import type { Work } from '../domain/work.ts'
import {
  type Allocation,
  type BandAllocation,
  type DerivedPiece,
  type MessagePiece,
  type MissCause,
  newBandAllocation,
  type Overhead,
  type OverheadTable,
  type PendingOverhead,
  type Piece,
  type PieceReason,
  sortBySequence,
} from './allocation.ts'
import { shareOf } from './bandShares.ts'
import { isFullyExcluded } from './claimLimits.ts'
import type { Rendering } from './entryText.ts'
import { type ContextCandidates, isAfterTurn } from './gatherCandidates.ts'
import { joinPassages, listBeginnings } from './joinPassages.ts'
import { budgetTooSmall, recordSkippedUnits, reportedMisses, shorteningSteps } from './misses.ts'
import {
  firstSequence,
  isSendable,
  lastSequence,
  type Renderer,
  type RenderMode,
  renderModeOf,
  turnMode,
  type Unit,
} from './render.ts'

const whole: RenderStep = { as: 'whole' }
/** The oldest message of a limited tail loses its beginning, so that the conversation goes on without a gap. */
const endSteps: readonly RenderStep[] = [whole, { as: 'end' }]
const newestTurnSteps: readonly RenderStep[] = [whole, { as: 'squeeze' }, { as: 'fit' }]
/** Share of the budget for the newest stored turn if the question is not part of a session that is too long. */
const unaskedTurnShare = 0.1
const minUnaskedTokens = 40
/** With less room than this, no passage is begun. */
const minBeginningTokens = 30
/** With less room than this, no render step is tried. */
const minUsefulTokens = 6
const noOverhead: PendingOverhead = { items: [], tokens: 0, dayLine: '' }

/** Allocates the budget: first to the newest turn, then band by band. Interruptible work. */
export function* allocateBudgetInSteps(
  input: ContextCandidates,
  budget: Tokens,
  renderer: Renderer,
  overheads: OverheadTable,
): Work<Allocation> {
  const allocator = new BudgetAllocator(input, budget, renderer, overheads)
  yield* allocator.addNewestTurn()
  const bands: BandAllocation[] = []
  for (const candidates of input.byPriority)
    if (candidates.units.length + candidates.derived.length > 0) bands.push(newBandAllocation(candidates, 0))
  const unsatisfied: BandAllocation[] = []
  for (const allocation of bands)
    if (!(yield* allocator.fillBand(allocation, shareOf(allocation.band, budget, input)))) unsatisfied.push(allocation)
  for (const allocation of unsatisfied)
    if ('recalled' in allocation.band.claim) yield* allocator.addBeginning(allocation)
  // Bands with a share may use what the other bands have left.
  for (const allocation of unsatisfied)
    if (allocation.band.share !== undefined) yield* allocator.fillBand(allocation, budget)
  yield* allocator.lengthenShortened(bands.some(({ candidates }) => candidates.limit < budget))
  const { passages } = input
  // File passages come last, so that they displace no message.
  if (passages !== undefined) {
    const used = bands.find(({ band }) => band.name === passages.band.name)?.used ?? 0
    bands.push(newBandAllocation(passages, used))
    yield* allocator.fillBand(bands.at(-1) as BandAllocation, budget)
  }
  return allocator.result(bands)
}

type Placement = { readonly band: Band | undefined; readonly mode: RenderMode; readonly overhead: PendingOverhead }

class BudgetAllocator {
  readonly #messages: MessagePiece[] = []
  readonly #derived: DerivedPiece[] = []
  /** Shown passages by the sequence number of their message. */
  readonly #passages = new Map<number, MessagePiece[]>()
  /** Shown messages, indexed by distance from the newest one. */
  readonly #shown: boolean[] = []
  /** Names of charged overheads, and shown derived entries. */
  readonly #charged = new Set<string | DerivedEntry>()
  #overheadTokens = 0
  #spent = 0
  readonly #input: ContextCandidates
  readonly #budget: Tokens
  readonly #renderer: Renderer
  readonly #overheads: OverheadTable

  constructor(input: ContextCandidates, budget: Tokens, renderer: Renderer, overheads: OverheadTable) {
    this.#input = input
    this.#budget = budget
    this.#renderer = renderer
    this.#overheads = overheads
  }

  result(bands: readonly BandAllocation[]): Allocation {
    const joined =
      this.#passages.size === 0
        ? { pieces: this.#messages, savedTokens: 0 }
        : joinPassages(this.#messages, this.#renderer)
    return {
      messages: sortBySequence(joined.pieces),
      derived: this.#derived,
      overheadTokens: this.#overheadTokens,
      spentTokens: this.#spent - joined.savedTokens,
      hasSlidingBand: this.#input.bands.some(({ limit }) => limit < this.#budget),
      misses: bands.flatMap(reportedMisses),
      missedRecall: bands.some(({ band, misses }) => 'recalled' in band.claim && misses.length > 0),
    }
  }

  /** Adds the newest turn at any cost, then the opening system message, then the units after the turn. */
  *addNewestTurn(): Work<void> {
    const { newestTurn, openingMessage, sinceNewestTurn, isQuestionStored } = this.#input
    const newest = isQuestionStored ? sinceNewestTurn.findLast(isSendable) : undefined
    const reserved =
      newest === undefined
        ? 0
        : Math.min(yield* this.#costOf(newest, this.#placementOf(newest, 'since')), this.#budget / 4)
    if (newestTurn !== undefined)
      yield* this.#addQuestion(newestTurn, isQuestionStored, reserved + (yield* this.#reservedForFirst()))
    if (openingMessage !== undefined) {
      const maxTokens = Math.min(this.#budget / 2, this.#budget - this.#spent - reserved)
      yield* this.#place(openingMessage, newestTurnSteps, 'opening', maxTokens)
    }
    if (!isQuestionStored) return
    for (const unit of sinceNewestTurn.toReversed()) {
      const steps = this.#stepsSinceTurn(unit, newest)
      const maxTokens = this.#budget - this.#spent - (yield* this.#reservedForFirst())
      const isPlaced = yield* this.#place(unit, steps, 'since', maxTokens)
      if (!isPlaced && unit === newest) yield* this.#place(unit, steps, 'since')
    }
  }

  /**
   * A turn without a heading is the cheapest form, so the smallest budget that holds it is the minimum reported in the
   * error.
   */
  *#addQuestion(turn: Unit, isStored: boolean, reserved: Tokens): Work<void> {
    const cheapest: Placement = { band: undefined, mode: turnMode, overhead: this.#pending([this.#overheads.reply]) }
    const room = this.#budget - cheapest.overhead.tokens
    if ((yield* this.#renderer.renderUnitInSteps(turn, turnMode, whole, room)) === null) {
      const shortest = yield* this.#renderer.renderShortest(turn, turnMode)
      const minimum = cheapest.overhead.tokens + (shortest?.tokens ?? 0)
      if (minimum > this.#budget) throw budgetTooSmall(this.#budget, minimum)
    }
    const reason = isStored ? 'newest' : 'band'
    const maxTokens = isStored ? this.#budget - reserved : this.#maxUnaskedTokens()
    if (
      (yield* this.#place(turn, newestTurnSteps, reason, maxTokens)) ||
      (yield* this.#place(turn, newestTurnSteps, reason)) ||
      (yield* this.#place(turn, newestTurnSteps, 'newest'))
    )
      return
    yield* this.#place(turn, newestTurnSteps, 'newest', this.#budget, cheapest)
  }

  /** Tokens for the newest stored turn if the question is not part of the session: those of a limited tail. */
  #maxUnaskedTokens(): Tokens {
    const tail = this.#input.bands.find(({ band, limit }) => 'tail' in band.claim && limit < this.#budget)
    if (tail !== undefined) return Math.max(tail.limit, minUnaskedTokens)
    return this.#budget * (this.#input.pressure.history <= 0.85 * this.#budget ? 1 : unaskedTurnShare)
  }

  /** Units after the turn are shown whole, the newest in any form that fits, and those of a block in its forms. */
  #stepsSinceTurn(unit: Unit, newest: Unit | undefined): readonly RenderStep[] {
    const band = this.#bandOf(unit)
    if (band?.renderAs === 'block') return band.renderings
    return unit === newest ? newestTurnSteps : [whole]
  }

  #bandOf(unit: Unit): Band | undefined {
    const sequence = firstSequence(unit)
    return this.#input.bands.find(({ units }) => units.some((other) => firstSequence(other) === sequence))?.band
  }

  /** Tokens that the newest turn and later units leave for the first messages: at most a quarter of the budget. */
  *#reservedForFirst(): Work<Tokens> {
    const { newestTurn, bands } = this.#input
    let tokens = 0
    for (const { band, units } of bands) {
      if (!('first' in band.claim)) continue
      for (const unit of units) {
        const isTurn = newestTurn !== undefined && firstSequence(unit) === firstSequence(newestTurn)
        if (!isSendable(unit) || this.#isShown(unit) || isTurn) continue
        tokens += yield* this.#costOf(unit, { band, mode: renderModeOf(band), overhead: this.#overheadOf(band, unit) })
      }
    }
    return Math.min(tokens, this.#budget / 4)
  }

  *#costOf(unit: Unit, { mode, overhead }: Placement): Work<Tokens> {
    const rendering = yield* this.#renderer.renderUnitInSteps(unit, mode, whole, this.#budget)
    return overhead.tokens + (rendering?.tokens ?? this.#budget)
  }

  /** Adds the candidates of a band in at most `maxTokens`. Returns false if one of them did not fit. */
  *fillBand(allocation: BandAllocation, maxTokens: Tokens): Work<boolean> {
    const { candidates, band } = allocation
    const { shortenedRuns, units } = candidates
    allocation.limit = Math.min(maxTokens, candidates.limit, maxBandTokens(band, this.#budget, this.#spent))
    allocation.misses = []
    const maxMisses = band.maxMisses ?? 0
    for (let at = 0; at < units.length; at++) {
      const unit = units[at] as Unit
      if (
        this.#isShown(unit) ||
        !isSendable(unit) ||
        isAfterTurn(unit, band, this.#input) ||
        this.#isPromoted(unit, band)
      )
        continue
      const mustShorten =
        shortenedRuns.length > 0 && unit.messages.some(({ sequence }) => isInRanges(shortenedRuns, sequence))
      const isOldestOfTail = 'tail' in band.claim && candidates.limit < this.#budget && at === units.length - 1
      const steps = mustShorten ? shorteningSteps(band.renderings) : isOldestOfTail ? endSteps : band.renderings
      if (yield* this.#add(allocation, steps, unit, undefined)) continue
      this.#recordMiss(allocation, unit, undefined)
      if (allocation.misses.length <= maxMisses) continue
      recordSkippedUnits(allocation, at + 1)
      return false
    }
    let remaining = this.#isCrowded(allocation) ? candidates.derived.length : 0
    for (const derived of candidates.derived) {
      if (
        !this.#charged.has(derived) &&
        !(yield* this.#add(allocation, band.renderings, undefined, derived, Math.max(1, remaining)))
      ) {
        this.#recordMiss(allocation, undefined, derived)
        if (allocation.misses.length > maxMisses) return false
      }
      remaining--
    }
    return allocation.misses.length === 0
  }

  /**
   * Gives the room that nothing else used to messages that were shortened for their share, newest first. A stable tail
   * keeps its form; only its newest turn may change, if the question is not part of the session.
   */
  *lengthenShortened(hasSlidingBand: boolean): Work<void> {
    for (const [index, piece] of this.#messages.entries()) {
      const room = this.#budget - this.#spent
      if (room < minBeginningTokens) return
      const { unit, band, rendering, renderedAs, reason } = piece
      const isStable = unit !== this.#input.newestTurn && !hasSlidingBand && band?.share === undefined
      if (isStable) continue
      if (!rendering.shortened || (renderedAs !== 'fit' && renderedAs !== 'end')) continue
      const mode = reason === 'band' && band !== undefined ? renderModeOf(band) : turnMode
      const maxTokens = rendering.tokens + room
      const longer = yield* this.#renderer.renderUnitInSteps(unit, mode, { as: renderedAs }, maxTokens)
      if (longer === null || longer.tokens <= rendering.tokens) continue
      this.#messages[index] = { ...piece, rendering: longer }
      this.#spent += longer.tokens - rendering.tokens
    }
  }

  /** Adds the beginning of the best passage that did not fit, if there is room for some sentences. */
  *addBeginning(allocation: BandAllocation): Work<void> {
    const { candidates, limit, used, band } = allocation
    for (const unit of candidates.units) {
      const room = Math.min(limit - used, this.#budget - this.#spent) - this.#overheadOf(band, unit).tokens
      if (room < minBeginningTokens) return
      if (this.#isShown(unit) || !isSendable(unit) || unit.excerpt !== undefined) continue
      for (const beginning of listBeginnings(unit, room))
        if (yield* this.#add(allocation, band.renderings, beginning, undefined)) return
    }
  }

  /** True if entries that can be shortened do not all fit whole. Then each gets an equal part of the rest. */
  #isCrowded({ candidates: { derived }, band, limit, used }: BandAllocation): boolean {
    if (!band.renderings.some((step) => step.as === 'sections')) return false
    const maxTokens = Math.min(limit, this.#budget - this.#spent)
    return derived.reduce((sum, entry) => sum + this.#renderer.tokenCostOf(entry), 0) > maxTokens - used
  }

  /** Adds one candidate with the first render step that fits. `remaining` candidates share the rest of the limit. */
  *#add(
    allocation: BandAllocation,
    steps: readonly RenderStep[],
    unit: Unit | undefined,
    derived: DerivedEntry | undefined,
    remaining = 1,
  ): Work<boolean> {
    const { band, mode, limit, used } = allocation
    const overhead = allocation.overhead ?? this.#overheadOf(band, unit)
    const free = this.#budget - this.#spent
    const fairShare = Math.min(free, Math.floor(Math.min(limit - used, free) / remaining))
    for (const step of steps) {
      const maxTokens =
        (step.upTo === undefined
          ? fairShare
          : Math.min(fairShare, Math.floor(step.upTo * this.#budget) - this.#spent)) - overhead.tokens
      if (maxTokens < minUsefulTokens) continue
      const rendering =
        unit === undefined
          ? yield* this.#renderer.renderDerived(derived as DerivedEntry, step, maxTokens)
          : yield* this.#renderCandidate(unit, mode, step, maxTokens)
      if (rendering === null) continue
      if (overhead !== noOverhead) {
        this.#charge(overhead)
        if (!('recalled' in band.claim)) allocation.overhead = noOverhead
      }
      allocation.used = used + rendering.tokens + overhead.tokens
      const renderedAs = (unit?.passage ?? unit?.excerpt) === undefined ? step.as : 'passages'
      this.#append({ reason: 'band', band, unit, derived, rendering, renderedAs, dayLine: overhead.dayLine })
      return true
    }
    return false
  }

  *#renderCandidate(unit: Unit, mode: RenderMode, step: RenderStep, maxTokens: Tokens): Work<Rendering | null> {
    if (unit.excerpt !== undefined) return this.#renderer.renderExcerpt(unit, unit.excerpt, mode, maxTokens)
    return unit.passage === undefined
      ? yield* this.#renderer.renderUnitInSteps(unit, mode, step, maxTokens)
      : this.#renderer.renderPassages(unit.messages[0] as Message, [unit.passage], mode, maxTokens)
  }

  #recordMiss(allocation: BandAllocation, unit: Unit | undefined, derived: DerivedEntry | undefined): void {
    const cause = this.#missCause(allocation, unit, derived)
    if (unit !== undefined) allocation.misses.push({ run: [firstSequence(unit), lastSequence(unit)], cause })
    else if (derived !== undefined) allocation.misses.push({ derived, cause })
  }

  #missCause(
    { candidates, band, limit, used, overhead }: BandAllocation,
    unit: Unit | undefined,
    derived: DerivedEntry | undefined,
  ): MissCause {
    if (derived !== undefined && this.#renderer.tokenCostOf(derived) === 0) return 'empty'
    const free = this.#budget - this.#spent
    if (limit - used < free) return 'tail' in band.claim && limit === candidates.limit ? 'tail-share' : 'band-limit'
    if (band.renderings.every((step) => step.upTo !== undefined)) return 'band-limit'
    const { tokens } = overhead ?? this.#overheadOf(band, unit)
    return free - tokens < minUsefulTokens ? 'budget-used' : 'too-long'
  }

  /** Adds a unit with the first render step that fits in `maxTokens`. Returns true also if it is already shown. */
  *#place(
    unit: Unit,
    steps: readonly RenderStep[],
    reason: PieceReason,
    maxTokens = this.#budget,
    placement = this.#placementOf(unit, reason),
  ): Work<boolean> {
    if (this.#isShown(unit)) return true
    const { band, mode, overhead } = placement
    for (const step of steps) {
      const available = Math.min(maxTokens, this.#budget - this.#spent) - overhead.tokens
      const rendering = yield* this.#renderer.renderUnitInSteps(unit, mode, step, available)
      if (rendering === null) continue
      this.#charge(overhead)
      const dayLine = reason === 'band' ? overhead.dayLine : ''
      this.#append({ reason, band, unit, derived: undefined, rendering, renderedAs: step.as, dayLine })
      return true
    }
    return false
  }

  /** True if a message of the unit is shown. Other passages of a message do not count. */
  #isShown(unit: Unit): boolean {
    const parts = unit.passage && this.#passages.get(firstSequence(unit))
    if (parts !== undefined) return parts.some((part) => part.unit.passage?.[0] === unit.passage?.[0])
    for (const { sequence } of unit.messages)
      if (this.#shown[this.#input.head.lastSequence - sequence] === true) return true
    return false
  }

  /** True if every message of the unit is shown as long-term memory or dropped by the optimizer. */
  #isPromoted(unit: Unit, band: Band): boolean {
    const { promoted, dropped } = this.#input.pressure
    if (promoted.length === 0 || !('rest' in band.claim)) return false
    const isItemShown = (item: string): boolean =>
      this.#derived.some(({ derived: { kind, id } }) => kind === 'item' && id === item)
    return isFullyExcluded(
      unit,
      ({ id, sequence }) =>
        isInRanges(dropped, sequence) || (isInRanges(promoted, sequence) && isItemShown(formatPromotedId(id))),
    )
  }

  #append(piece: Piece): void {
    const { unit, derived } = piece
    if (unit !== undefined) {
      this.#messages.push(piece as MessagePiece)
      if (unit.passage !== undefined)
        getOrCompute(this.#passages, firstSequence(unit), () => []).push(piece as MessagePiece)
      for (const { sequence } of unit.messages) this.#shown[this.#input.head.lastSequence - sequence] = true
    }
    if (derived !== undefined) {
      this.#derived.push(piece as DerivedPiece)
      this.#charged.add(derived)
    }
    this.#spent += piece.rendering.tokens
  }

  /** Mandatory units are shown as turns, unless the question is not stored and the band shows a block. */
  #placementOf(unit: Unit, reason: PieceReason): Placement {
    // A unit beyond the reach of every band belongs to the band that takes the rest.
    const band =
      this.#bandOf(unit) ??
      (reason === 'band' ? this.#input.bands.find((candidates) => 'rest' in candidates.band.claim)?.band : undefined)
    if (reason === 'band' && band !== undefined)
      return { band, mode: renderModeOf(band), overhead: this.#overheadOf(band, unit) }
    const heading = band && this.#overheads.headings.get(band)
    return { band, mode: turnMode, overhead: this.#pending([this.#overheads.reply, heading]) }
  }

  /** Overhead of the next entry of a band: reply, heading, block and date line, as far as they are not charged yet. */
  #overheadOf(band: Band, unit: Unit | undefined): PendingOverhead {
    const day =
      unit !== undefined && 'recalled' in band.claim
        ? this.#overheads.dayLine((unit.messages[0] as Message).at)
        : undefined
    const { reply, stable, volatile, headings } = this.#overheads
    const block = band.renderAs === 'turns' ? undefined : band.volatile ? volatile : stable
    return this.#pending(
      [reply, headings.get(band), block, day && { name: `${band.name} ${day.text}`, tokens: day.tokens }],
      day?.text,
    )
  }

  #pending(overheads: readonly (Overhead | undefined)[], dayLine = ''): PendingOverhead {
    const items: Overhead[] = []
    let tokens = 0
    for (const overhead of overheads) {
      if (overhead === undefined || this.#charged.has(overhead.name)) continue
      items.push(overhead)
      tokens += overhead.tokens
    }
    return { items, tokens, dayLine }
  }

  #charge({ items, tokens }: PendingOverhead): void {
    for (const { name } of items) this.#charged.add(name)
    this.#overheadTokens += tokens
    this.#spent += tokens
  }
}
