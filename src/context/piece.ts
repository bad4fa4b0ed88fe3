import type { Derived, Tokens } from '../domain/entry.ts'
import type { Band } from '../domain/profile.ts'
import type { Form } from './render.ts'
import type { Unit } from './unit.ts'

/** Why a piece is shown: the newest turn, the instructions the session opens with, what was said since the turn, or a band's wish. */
export type Part = 'newest' | 'opening' | 'since' | 'band'

/** Something that is shown, with what it costs. */
export type Piece = {
  readonly part: Part
  readonly band: Band | undefined
  readonly unit: Unit | undefined
  readonly derived: Derived | undefined
  readonly form: Form
  /** The rung it stands on, when it is not whole. */
  readonly rung: string
  /** The line with the day it stands under, or nothing. */
  readonly day: string
}
export type Said = Piece & { readonly unit: Unit }
export type Told = Piece & { readonly derived: Derived }

/** What is shown and what that costs, headings and the provider's additions included. */
export type Fitted = {
  /** What was said, in the order of the conversation. */
  readonly said: readonly Said[]
  /** Derived entries, in the order in which they were chosen. */
  readonly told: readonly Told[]
  readonly fees: Tokens
  readonly spent: Tokens
  /** Whether a band begins elsewhere with every turn. */
  readonly slides: boolean
}
