import type { DerivedEntry, SequenceRange, Tokens } from '../domain/entry.ts'
import type { Band, RenderStep } from '../domain/profile.ts'
import type { BandCandidates } from './claimLimits.ts'
import type { Overhead } from './overhead.ts'
import { type Rendering, type RenderMode, renderModeOf } from './render.ts'
import { firstSequence, lastSequence, type Unit } from './unit.ts'

/**
 * Why a piece is shown: it is the newest turn, the opening system message, after the newest turn, or selected by a
 * band.
 */
export type PieceReason = 'newest' | 'opening' | 'since' | 'band'

/** A rendered entry of the context. */
export type Piece = {
  readonly reason: PieceReason
  readonly band: Band | undefined
  readonly unit: Unit | undefined
  readonly derived: DerivedEntry | undefined
  readonly rendering: Rendering
  readonly renderedAs: RenderStep['as']
  /** Date line above the piece, or ''. */
  readonly dayLine: string
}
export type MessagePiece = Piece & { readonly unit: Unit }
export type DerivedPiece = Piece & { readonly derived: DerivedEntry }

/** Cause of a candidate not being shown. */
export type MissCause = 'budget-used' | 'too-long' | 'band-limit' | 'tail-share' | 'after-miss' | 'empty'
/** A run of candidate messages, or a derived entry, that is not shown. */
export type Miss = { readonly run?: SequenceRange; readonly derived?: DerivedEntry; readonly cause: MissCause }

/** Pieces selected for a context, with their total cost. */
export type Allocation = {
  /** In conversation order. */
  readonly messages: readonly MessagePiece[]
  /** In the order of selection. */
  readonly derived: readonly DerivedPiece[]
  readonly overheadTokens: Tokens
  readonly spentTokens: Tokens
  /** True if a band starts at a different message with every turn. */
  readonly hasSlidingBand: boolean
  readonly misses: readonly Miss[]
  /** True if a band that recalls messages by relevance could not show all its candidates. */
  readonly missedRecall: boolean
}

/** Overheads that are not charged yet, with their sum. */
export type PendingOverhead = { readonly items: readonly Overhead[]; readonly tokens: Tokens; readonly dayLine: string }
export const noOverhead: PendingOverhead = { items: [], tokens: 0, dayLine: '' }

/** State of a band while it is filled. */
export type BandAllocation = {
  readonly candidates: BandCandidates
  readonly band: Band
  readonly mode: RenderMode
  limit: Tokens
  used: Tokens
  /** Overhead of the next entry, once it is the same for all; undefined while it must be computed for each. */
  overhead: PendingOverhead | undefined
  misses: Miss[]
}

export const newBandAllocation = (candidates: BandCandidates, used: Tokens): BandAllocation => ({
  candidates,
  band: candidates.band,
  mode: renderModeOf(candidates.band),
  limit: 0,
  used,
  overhead: undefined,
  misses: [],
})

/**
 * Recalled candidates are ranked, so only those too long to fit need a reason of their own: the others rank below the
 * shown ones.
 */
export const reportedMisses = ({ band, misses }: BandAllocation): readonly Miss[] =>
  'recalled' in band.claim ? misses.filter(({ cause }) => cause === 'too-long') : misses

/**
 * Records the units after the last miss. Recalled units are omitted: they are scattered over the history, see
 * `missedRecall`.
 */
export function recordSkippedUnits({ candidates: { units }, band, misses }: BandAllocation, from: number): void {
  const [next, last] = [units[from], units.at(-1)]
  if (next === undefined || last === undefined || 'recalled' in band.claim) return
  const { cause } = misses.at(-1) as Miss
  const run: SequenceRange =
    'first' in band.claim ? [firstSequence(next), lastSequence(last)] : [firstSequence(last), lastSequence(next)]
  misses.push({ run, cause: cause === 'too-long' ? 'after-miss' : cause })
}

/** Sorts pieces into conversation order. They are mostly added from the newest back, so reversing is usually enough. */
export function sortBySequence(pieces: MessagePiece[]): readonly MessagePiece[] {
  pieces.reverse()
  const isSorted = pieces.every(
    ({ unit }, at) => at === 0 || firstSequence((pieces[at - 1] as MessagePiece).unit) < firstSequence(unit),
  )
  return isSorted ? pieces : pieces.sort((a, b) => firstSequence(a.unit) - firstSequence(b.unit))
}
