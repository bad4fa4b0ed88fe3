import type { Millis, Tokens } from './entry.ts'
import type { Learning, Rule } from './rule.ts'

/** One way of rendering an entry; `upTo` holds it back once that part of the budget is spent. */
export type Rung = { readonly upTo?: number } & (
  | { readonly as: 'whole' }
  /** Without redundant white space. */
  | { readonly as: 'squeeze' }
  /** Without redundant white space and comments. */
  | { readonly as: 'uncomment' }
  /** First line, last line and every fact worth keeping. */
  | { readonly as: 'digest' }
  /** The sentences that say most, in their order, as many as fit. */
  | { readonly as: 'sections' }
  /** JSON without the white space between its parts. */
  | { readonly as: 'json' }
  | { readonly as: 'clip'; readonly characters: number }
  /** Beginning and end, as much as fits, but never more than `tokens`. */
  | { readonly as: 'fit'; readonly tokens?: Tokens }
)

/** Where the append-only tail begins: a function of history and budget alone, so that it moves rarely. */
export type Tail = {
  /** The tail holds between these parts of the budget; when it would pass `high` it is cut back towards `low`. */
  readonly low: number
  readonly high: number
  /** While the whole history weighs no more than this part of the budget, nothing is cut. */
  readonly all: number
  /** Up to this budget the tail is a share of it, smaller when the newest turn is a question that older turns may answer. */
  readonly scarce: { readonly budget: Tokens; readonly question: number; readonly otherwise: number }
}

/** Which entries a band takes. Bands choose in the order of `fill`; a message belongs to one band. */
export type Claim =
  | { readonly first: number }
  /** With `uncovered`, only messages that no summary stands for. */
  | { readonly last: number; readonly uncovered?: boolean }
  | { readonly lastTokens: Tokens; readonly uncovered?: boolean }
  | { readonly tail: Tail }
  | { readonly rest: true }
  | { readonly recalled: { readonly limit: number } }
  | {
      readonly kind: 'summary' | 'fact' | 'knowledge' | 'item'
      readonly top?: number
      readonly atLeast?: number
      /** Only items of these categories, or of all but these. */
      readonly only?: readonly string[]
      readonly except?: readonly string[]
    }

/** `fill` says who spends first; the order of the bands says who is read first. */
export type Band = {
  readonly name: string
  readonly claim: Claim
  readonly ladder: readonly Rung[]
  readonly fill: number
  /** As turns of the conversation, or as lines of one block of text. */
  readonly show: 'turns' | 'block'
  readonly heading?: string
  /** Stands before each line, as in `(Past) User: …`. */
  readonly label?: string
  /** The part of the budget it may take before the others have had theirs; what nobody wants is given out again. */
  readonly share?: number | { readonly withCode: number; readonly without: number }
  /** The part of the budget, or the tokens, it may never pass; the part may be larger up to a certain budget. */
  readonly maxShare?: number | { readonly budget: Tokens; readonly upTo: number; readonly beyond: number }
  readonly max?: Tokens
  /** How many entries may be passed over, because they do not fit, before the band gives up. */
  readonly patience?: number
  /** Read just before the newest turn, because it changes with every question. */
  readonly volatile?: boolean
}

export type Framing = 'silent' | 'open' | 'sections'
export type TokenizerName = 'exact' | 'upper-bound' | 'ascii-3.5' | 'chars-4'

/** The framings and tokenizers a profile may name. */
export const framings: readonly Framing[] = ['silent', 'open', 'sections']
export const tokenizerNames: readonly TokenizerName[] = ['exact', 'upper-bound', 'ascii-3.5', 'chars-4']

/** How long a session lives and how large it grows. */
export type Lifetime = {
  readonly idle?: Millis
  readonly age?: Millis
  readonly messages?: number
  readonly bytes?: number
  readonly sessions?: number
  readonly sessionsPerScope?: number
  readonly whenFull: 'evict' | 'refuse'
}

/** Everything that distinguishes one way of remembering from another, as plain data. */
export type Profile = {
  readonly name: string
  readonly durability: 'ram' | 'durable'
  readonly budget: Tokens
  readonly tokenizer: TokenizerName
  readonly framing: Framing
  readonly sees: readonly ('session' | 'scope' | 'person')[]
  /** The part of the budget which, once the whole history would take it, makes upkeep due. */
  readonly trigger?: number
  /** A longer message counts, and is shown once it is not the newest, as if it had this many tokens. */
  readonly cap?: Tokens
  /**
   * What happens to keys, passwords and cards: a mark stands in their place wherever they are kept, and they are put back
   * into prompts of the same session (`mask`) or nowhere (`hide`); or they are kept like anything else (`keep`).
   */
  readonly secrets: 'mask' | 'hide' | 'keep'
  readonly learns: Learning
  readonly bands: readonly Band[]
  readonly upkeep: readonly Rule[]
  readonly lifetime: Lifetime
}
