import type { DerivedEntry, Tokens } from './entry.ts'
import type { Band, Claim } from './profile.ts'

/** Tokens assumed for the heading and framing of a block. */
const blockOverheadTokens = 48

/** Returns the largest number of tokens a band may take of a budget. */
export function maxBandTokens({ maxTokens, maxShare = 1 }: Band, budget: Tokens): Tokens {
  const share = typeof maxShare === 'number' ? maxShare : budget <= maxShare.budget ? maxShare.upTo : maxShare.beyond
  return Math.min(maxTokens ?? budget, Math.floor(share * budget))
}

/** Tells whether a claim selects a derived entry; superseded facts and pending knowledge are never selected. */
export function matchesClaim(entry: DerivedEntry, claim: Extract<Claim, { kind: string }>): boolean {
  if (entry.kind !== claim.kind || getImportance(entry) < (claim.atLeast ?? 0)) return false
  if (entry.kind === 'fact') return entry.until === undefined
  if (entry.kind === 'knowledge') return entry.pending !== true
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
