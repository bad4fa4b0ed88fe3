import type { SequenceRange, Tokens } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { RenderStep } from '../domain/profile.ts'
import type { BandAllocation, Miss } from './allocation.ts'
import { firstSequence, lastSequence } from './render.ts'

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

export const budgetTooSmall = (budget: Tokens, minimum: Tokens): MemoryError =>
  new MemoryError(
    'budget-too-small',
    `A budget of ${budget} tokens cannot hold the newest turn, even shortened. Use at least ${minimum}.`,
    { param: 'budget', minimum },
  )

/** Returns the steps that shorten; all steps if none does. */
export function shorteningSteps(steps: readonly RenderStep[]): readonly RenderStep[] {
  const shortening = steps.filter((step) => step.as !== 'whole')
  return shortening.length === 0 ? steps : shortening
}
