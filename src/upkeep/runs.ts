import type { SequenceRange } from '../domain/entry.ts'

/**
 * Adds sequence numbers to sorted runs and joins adjacent runs. Numbers may be in a run already.
 *
 * @example
 * addToRuns([[2, 3]], [9, 4]) // [[2, 4], [9, 9]]
 */
export function addToRuns(runs: readonly SequenceRange[], sequences: readonly number[]): readonly SequenceRange[] {
  const all = [...runs, ...sequences.map((sequence): SequenceRange => [sequence, sequence])].sort((a, b) => a[0] - b[0])
  const joined: [first: number, last: number][] = []
  for (const [first, last] of all) {
    const before = joined.at(-1)
    if (before !== undefined && first <= before[1] + 1) before[1] = Math.max(before[1], last)
    else joined.push([first, last])
  }
  return joined
}
