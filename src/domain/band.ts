import type { Derived, Tokens } from './entry.ts'
import type { Band, Claim } from './profile.ts'

/** What a band may never pass. */
export function mostOf({ max, maxShare = 1 }: Band, budget: Tokens): Tokens {
  const part = typeof maxShare === 'number' ? maxShare : budget <= maxShare.budget ? maxShare.upTo : maxShare.beyond
  return Math.min(max ?? budget, Math.floor(part * budget))
}

/** Whether a derived entry is what a band is for: what was superseded, or waits for approval, is nobody's. */
export function isWanted(entry: Derived, what: Extract<Claim, { kind: string }>): boolean {
  if (entry.kind !== what.kind || worth(entry) < (what.atLeast ?? 0)) return false
  if (entry.kind === 'fact') return entry.until === undefined
  if (entry.kind === 'knowledge') return entry.pending !== true
  if (entry.kind !== 'item') return true
  return (what.only === undefined || what.only.includes(entry.category)) && !what.except?.includes(entry.category)
}

/** How much an entry matters among its kind. */
export const worth = (entry: Derived): number =>
  entry.kind === 'fact' || entry.kind === 'item' ? entry.importance : entry.kind === 'knowledge' ? entry.confidence : 0

/**
 * What the derived entries that stand before the turns take of a budget. They change only when upkeep is done, so that a
 * tail which leaves them this much does not change the beginning of every prompt as it grows.
 */
export function promised(
  bands: readonly Band[],
  derived: readonly Derived[],
  budget: Tokens,
  price: (entry: Derived) => Tokens,
): Tokens {
  if (derived.length === 0) return 0
  let sum = 0
  for (const band of bands) {
    const { claim } = band
    if (!('kind' in claim) || band.volatile) continue
    const held = derived.filter((entry) => isWanted(entry, claim))
    if (held.length === 0) continue
    // its heading, and what frames a block
    const wanted = held.reduce((total, entry) => total + price(entry), 48)
    sum += Math.min(wanted, mostOf(band, budget))
  }
  return Math.min(budget / 2, sum)
}

/** The last message that some summary stands for, and the sum of the weights up to it. */
export function covered(derived: readonly Derived[]): { readonly last: number; readonly reach: Tokens } {
  let [last, reach] = [0, 0]
  for (const entry of derived) {
    if (entry.kind !== 'summary' || entry.covers[1] <= last) continue
    last = entry.covers[1]
    reach = entry.reach
  }
  return { last, reach }
}
