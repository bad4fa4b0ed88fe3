import type { DerivedEntry, Millis, SequenceRange, Tokens } from '../domain/entry.ts'
import type { Band, RenderStep } from '../domain/profile.ts'
import type { BandCandidates } from './claimLimits.ts'
import type { Rendering } from './entryText.ts'
import { firstSequence, type RenderMode, renderModeOf, type Unit } from './render.ts'

/**
 * Why a piece is shown: it is the newest turn, the opening system message, after the newest turn, or selected by a
 * band.
 */
export type PieceReason = 'newest' | 'opening' | 'since' | 'band'

/** Step that rendered a piece; `passages` for some passages of a message. */
export type RenderedAs = RenderStep['as'] | 'passages'

/** A rendered entry of the context. */
export type Piece = {
  readonly reason: PieceReason
  readonly band: Band | undefined
  readonly unit: Unit | undefined
  readonly derived: DerivedEntry | undefined
  readonly rendering: Rendering
  readonly renderedAs: RenderedAs
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

/** A cost that is charged once per context, however often its name occurs. */
export type Overhead = { readonly name: string; readonly tokens: Tokens }

/** Overheads of a profile's contexts, each charged with the first piece that needs it. */
export type OverheadTable = {
  /** Tokens of the framing's `before` and `after` texts alone. */
  readonly framingTokens: Tokens
  readonly reply: Overhead
  readonly stable: Overhead
  readonly volatile: Overhead
  readonly headings: ReadonlyMap<Band, Overhead>
  dayLine(at: Millis): { readonly text: string; readonly tokens: Tokens }
}

/** Overheads that are not charged yet, with their sum. */
export type PendingOverhead = { readonly items: readonly Overhead[]; readonly tokens: Tokens; readonly dayLine: string }

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

/** Sorts pieces into conversation order. They are mostly added from the newest back, so reversing is usually enough. */
export function sortBySequence(pieces: MessagePiece[]): readonly MessagePiece[] {
  pieces.reverse()
  const isSorted = pieces.every(
    ({ unit }, at) => at === 0 || firstSequence((pieces[at - 1] as MessagePiece).unit) < firstSequence(unit),
  )
  return isSorted ? pieces : pieces.sort((a, b) => firstSequence(a.unit) - firstSequence(b.unit))
}
