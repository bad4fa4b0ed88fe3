import type { Derived, Run, Tokens } from '../domain/entry.ts'
import type { Band, Rung } from '../domain/profile.ts'
import type { Rendering } from './render.ts'
import type { Unit } from './unit.ts'

/** Why a piece is shown: it is the newest turn, the opening system message, after the newest turn, or selected by a band. */
export type PieceReason = 'newest' | 'opening' | 'since' | 'band'

/** A rendered entry of the context. */
export type Piece = {
  readonly reason: PieceReason
  readonly band: Band | undefined
  readonly unit: Unit | undefined
  readonly derived: Derived | undefined
  readonly rendering: Rendering
  readonly renderedAs: Rung['as']
  /** Date line above the piece, or ''. */
  readonly dayLine: string
}
export type MessagePiece = Piece & { readonly unit: Unit }
export type DerivedPiece = Piece & { readonly derived: Derived }

/** Cause of a candidate not being shown. */
export type MissCause = 'budget-used' | 'too-long' | 'band-limit' | 'tail-share' | 'after-miss' | 'empty'
/** A run of candidate messages, or a derived entry, that is not shown. */
export type Miss = { readonly run?: Run; readonly derived?: Derived; readonly cause: MissCause }

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
