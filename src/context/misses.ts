import type { SequenceRange } from '../domain/entry.ts'
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
