import type { DerivedEntry, Millis, Tokens } from './entry.ts'
import { isActive } from './knowledge.ts'

/** One way to render an entry. `upTo` skips the step once that share of the budget is spent. */
export type RenderStep = { readonly upTo?: number } & (
  | { readonly as: 'whole' }
  /** Without redundant white space. */
  | { readonly as: 'squeeze' }
  /** Without redundant white space and comments. */
  | { readonly as: 'uncomment' }
  /** First line, last line and every fact worth keeping. */
  | { readonly as: 'digest' }
  /** The most informative sentences in their order, as many as fit. */
  | { readonly as: 'sections' }
  /** JSON without white space between its tokens. */
  | { readonly as: 'json' }
  /** The first characters. */
  | { readonly as: 'clip'; readonly characters: number }
  /** The end, as much as fits. */
  | { readonly as: 'end' }
  /** Beginning and end, as much as fits, at most `tokens`. */
  | { readonly as: 'fit'; readonly tokens?: Tokens }
)

/**
 * Window of the newest messages. Its start depends only on history and budget, so it moves rarely and prompts stay
 * cacheable.
 */
export type Tail = {
  /** Share of the budget to which the tail is cut back. */
  readonly low: number
  /** Share of the budget that the tail may not exceed. */
  readonly high: number
  /** Nothing is cut while the complete history stays within this share of the budget. */
  readonly keepAll: number
  /**
   * Up to `budget` tokens the tail gets a fixed share instead, because older turns may matter more: `question` when the
   * newest turn asks something, `statement` when it has enough words to search for, else `otherwise`.
   */
  readonly smallBudget: {
    readonly budget: Tokens
    readonly question: number
    readonly statement: number
    readonly otherwise: number
  }
}

/** Entries that a band selects. Bands choose in the order of `priority`; a message belongs to one band. */
export type Claim =
  /** The first messages of the session. */
  | { readonly first: number }
  /** The newest messages; with `uncovered`, only those that no summary covers. */
  | { readonly last: number; readonly uncovered?: boolean }
  /** The newest messages up to a number of tokens; with `uncovered`, only those that no summary covers. */
  | { readonly lastTokens: Tokens; readonly uncovered?: boolean }
  | { readonly tail: Tail }
  /** All messages that no other band selects. */
  | { readonly rest: true }
  /** Older messages relevant to the newest turn, found by search. */
  | { readonly recalled: { readonly limit: number } }
  /** Derived entries: the `top` ones with at least `atLeast` importance or confidence. */
  | {
      readonly kind: 'summary' | 'fact' | 'knowledge' | 'item'
      readonly top?: number
      readonly atLeast?: number
      /** Selects only items of these categories. */
      readonly only?: readonly string[]
      /** Excludes items of these categories, and facts of these fields. */
      readonly except?: readonly string[]
    }

/** Part of the context. The order of bands in the profile is the order in the prompt. */
export type Band = {
  readonly name: string
  readonly claim: Claim
  /** Renderings from best to shortest; the first one that fits is used. */
  readonly renderings: readonly RenderStep[]
  /** Order in which bands take from the budget, lowest first. */
  readonly priority: number
  /** Renders entries as turns of the conversation, or as lines of one text block. */
  readonly renderAs: 'turns' | 'block'
  readonly heading?: string
  /** Prefix of each line, as in `(Past) User: …`. */
  readonly label?: string
  /** Share of the budget reserved for the band; the unused part is distributed again. */
  readonly share?: number | { readonly withCode: number; readonly without: number }
  /** Largest share of the budget; `upTo` applies to budgets up to `budget`, `beyond` to larger ones. */
  readonly maxShare?: number | { readonly budget: Tokens; readonly upTo: number; readonly beyond: number }
  /** Above `maxShare`, the band may still fill the context up to this share of the budget. */
  readonly fillTo?: number
  /** Largest number of tokens. */
  readonly maxTokens?: Tokens
  /** Number of entries that may be skipped because they do not fit before the band stops. */
  readonly maxMisses?: number
  /** Placed just before the newest turn, because it changes with every question. */
  readonly volatile?: boolean
}

/** Wording around memory in a prompt. */
export type Framing = 'silent' | 'open' | 'sections'
/** Token counter of a profile. */
export type TokenizerName = 'exact' | 'upper-bound' | 'ascii-3.5' | 'chars-4'

export const framings: readonly Framing[] = ['silent', 'open', 'sections']
export const tokenizerNames: readonly TokenizerName[] = ['exact', 'upper-bound', 'ascii-3.5', 'chars-4']

/** Limits of a session; a limit that is left out does not apply. */
export type Lifetime = {
  /** Maximum time without use. */
  readonly idle?: Millis
  /** Maximum time since the session started. */
  readonly age?: Millis
  /** Maximum number of messages in a session. */
  readonly messages?: number
  /** Maximum size of a session. */
  readonly bytes?: number
  /** Maximum number of sessions in the store. */
  readonly sessions?: number
  readonly sessionsPerScope?: number
  /** At a limit, deletes the oldest messages or sessions (`evict`), or throws `full` (`refuse`). */
  readonly whenFull: 'evict' | 'refuse'
}

/** Condition of an upkeep rule. Counts only messages that no summary covers. */
export type RuleCondition =
  /** The context would exceed this many tokens. */
  | { readonly tokens: Tokens }
  /** The context would exceed this share of the budget. */
  | { readonly usage: number }
  /** At least this many messages are not summarised. */
  | { readonly messages: number }
  /** The oldest candidate has reached this age. */
  | { readonly age: Millis }
  /** This much time has passed since the last run. */
  | { readonly every: Millis }
  /** The assistant has finished a turn: its newest message calls no tool. */
  | { readonly turn: 'finished' }

/** Length limits of a summary in words, by version; the last pair applies to all later versions. */
export type SummaryWordRanges = readonly (readonly [min: number, max: number])[]

/** Task of an upkeep rule. */
export type UpkeepTask =
  /**
   * Maintains one summary that grows with its versions and covers all but the newest messages. `keep` is the amount of
   * newest messages left out, large enough that the next run is far away. With `facts`, also extracts facts from the
   * same messages.
   */
  | {
      readonly summarise: 'progressive'
      readonly words: SummaryWordRanges
      readonly keep: { readonly tokens: Tokens } | { readonly usage: number }
      readonly facts: boolean
    }
  /**
   * Summarises a batch of messages per hour once `keep` newer ones follow it, in at most `share` of its tokens. With
   * `facts`, also extracts facts from the same messages by the built-in rules; default false.
   */
  | {
      readonly summarise: 'hour'
      readonly batch: number
      readonly keep: number
      readonly share: number
      readonly facts?: boolean
    }
  /** Merges old hourly summaries into one summary of the session, in at most `share` of their tokens. */
  | { readonly summarise: 'session'; readonly share: number }
  /** Selects messages to shorten, leave out or promote to long-term memory, and tunes its own parameters. */
  | { readonly optimise: 'session' }
  /**
   * Proposes knowledge of the scope from what user and assistant have said since the last run. With a model, calls it
   * once per task, which is a turn with tool calls.
   */
  | { readonly learn: 'knowledge' }
  /** Lowers the confidence of learned knowledge that is not used, and archives it when confidence runs out. */
  | { readonly age: 'knowledge' }

/** Upkeep rule. Blocking rules run before the next context is built, the others in the background. */
export type UpkeepRule = { readonly when: RuleCondition; readonly do: UpkeepTask; readonly blocking?: boolean }

/** Permission to add to a scope's knowledge, by role. */
export type KnowledgePolicy = { readonly user: Permission; readonly assistant: Permission; readonly tool: Permission }
/** `ask` holds the knowledge back until it is approved. */
export type Permission = 'yes' | 'ask' | 'no'

/** Complete behaviour of a memory, as plain data. */
export type Profile = {
  readonly name: string
  readonly durability: 'ram' | 'durable'
  /** Default token budget of a context. */
  readonly budget: Tokens
  /**
   * With `auto`, the server never cuts what a client sends while it fits the model's context window, and adds at most
   * `budget` tokens of memory. Default `fixed`: the whole prompt stays within `budget`.
   */
  readonly budgetMode?: 'auto' | 'fixed'
  /** With `refuse`, files sent to a session are an error. Default `pass`: they reach the model. */
  readonly uploads?: 'pass' | 'refuse'
  readonly tokenizer: TokenizerName
  readonly framing: Framing
  /** Memories that a context reads from. */
  readonly scopes: readonly ('session' | 'scope' | 'person')[]
  /** Share of the budget at which the cost of the complete history makes upkeep due. */
  readonly upkeepAt?: number
  /** Longer messages count as this many tokens, and are shortened to it once they are not the newest. */
  readonly maxMessageTokens?: Tokens
  /**
   * Handling of keys, passwords and card numbers. `mask` stores a placeholder and restores the value in prompts of the
   * same session; `hide` stores a placeholder and never restores the value; `keep` stores secrets like any other text.
   */
  readonly secrets: 'mask' | 'hide' | 'keep'
  readonly knowledgePolicy: KnowledgePolicy
  readonly bands: readonly Band[]
  readonly upkeep: readonly UpkeepRule[]
  readonly lifetime: Lifetime
}

/** Tokens assumed for the heading and framing of a block. */
const blockOverheadTokens = 48

/** Returns the largest number of tokens a band may take of a budget of which `spent` tokens are spent. */
export function maxBandTokens({ maxTokens, maxShare = 1, fillTo = 0 }: Band, budget: Tokens, spent = budget): Tokens {
  const share = typeof maxShare === 'number' ? maxShare : budget <= maxShare.budget ? maxShare.upTo : maxShare.beyond
  return Math.min(maxTokens ?? budget, Math.floor(Math.max(share * budget, fillTo * budget - spent)))
}

/** Tells whether a claim selects a derived entry; superseded facts and inactive knowledge are never selected. */
export function matchesClaim(entry: DerivedEntry, claim: Extract<Claim, { kind: string }>): boolean {
  if (entry.kind !== claim.kind || getImportance(entry) < (claim.atLeast ?? 0)) return false
  if (entry.kind === 'fact') return entry.until === undefined && !claim.except?.includes(entry.field)
  if (entry.kind === 'knowledge') return isActive(entry)
  if (entry.kind !== 'item') return true
  return (claim.only === undefined || claim.only.includes(entry.category)) && !claim.except?.includes(entry.category)
}

/** Returns the importance of a fact or an item, the confidence of knowledge, and 0 for other entries. */
export const getImportance = (entry: DerivedEntry): number =>
  entry.kind === 'fact' || entry.kind === 'item' ? entry.importance : entry.kind === 'knowledge' ? entry.confidence : 0

/**
 * Estimates the tokens of the derived entries that precede the turns. They change only with upkeep, so a tail that
 * leaves this much free does not change the beginning of the prompt while it grows.
 */
export function estimateReservedTokens(
  bands: readonly Band[],
  derived: readonly DerivedEntry[],
  budget: Tokens,
  price: (entry: DerivedEntry) => Tokens,
): Tokens {
  if (derived.length === 0) return 0
  let sum = 0
  for (const band of bands) {
    const { claim } = band
    if (!('kind' in claim) || band.volatile) continue
    const selected = derived.filter((entry) => matchesClaim(entry, claim))
    if (selected.length === 0) continue
    const tokens = selected.reduce((total, entry) => total + price(entry), blockOverheadTokens)
    sum += Math.min(tokens, maxBandTokens(band, budget))
  }
  return Math.min(budget / 2, sum)
}

/** Finds the last message that a summary covers, and the sum of the weights up to it. */
export function findSummaryCoverage(derived: readonly DerivedEntry[]): {
  readonly last: number
  readonly reach: Tokens
} {
  let [last, reach] = [0, 0]
  for (const entry of derived) {
    if (entry.kind !== 'summary' || entry.covers[1] <= last) continue
    last = entry.covers[1]
    reach = entry.endOffset
  }
  return { last, reach }
}
