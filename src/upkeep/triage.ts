import type { Millis, Notes, Run } from '../domain/entry.ts'
import { isWithin } from '../domain/session.ts'
import type { Parameters } from '../domain/tuning.ts'
import { redundantOlder } from './redundancy.ts'
import { hasKeyFacts, type Judged, relevanceOf } from './relevance.ts'

/** Which messages earlier runs have marked. */
export type Marks = NonNullable<Notes['triage']>

/** Sequence numbers, in order: what is to be shown shorter, no longer shown, or kept as long-term memory. Each is in one list at most. */
export type Actions = {
  readonly compress: readonly number[]
  readonly drop: readonly number[]
  readonly promote: readonly number[]
}

const promoteFrom = 0.8

/**
 * What to do about each entry. It only says how entries are shown: nothing is taken out of the transcript.
 *
 * @example
 * triage([{ role: 'user', content: 'ok', at: now, sequence: 7 }], { compressed: [], dropped: [], promoted: [] }, initial, now)
 * // { compress: [7], drop: [], promote: [] }
 */
export function triage(
  entries: readonly Judged[],
  marks: Marks,
  { minRelevance }: Pick<Parameters, 'minRelevance'>,
  now: Millis,
): Actions {
  // What is not shown makes nothing else redundant.
  const shown = entries
    .filter(({ sequence }) => !isWithin(marks.dropped, sequence))
    .sort((left, right) => left.sequence - right.sequence)
  const redundant = redundantOlder(shown.map(({ content }) => content))
  const actions = { compress: [] as number[], drop: [] as number[], promote: [] as number[] }
  for (const [place, entry] of shown.entries()) {
    const action = actionOn(entry, marks, { minRelevance, now, isRedundant: redundant[place] === 1 })
    if (action !== undefined) actions[action].push(entry.sequence)
  }
  return actions
}

type Circumstances = { readonly minRelevance: number; readonly now: Millis; readonly isRedundant: boolean }

function actionOn(
  entry: Judged,
  marks: Marks,
  { minRelevance, now, isRedundant }: Circumstances,
): keyof Actions | undefined {
  const isPromoted = isWithin(marks.promoted, entry.sequence)
  const isCompressed = isWithin(marks.compressed, entry.sequence)
  // What was promoted counts as 1 from then on, however old it gets.
  const relevance = isPromoted ? 1 : relevanceOf(entry, now)
  if (relevance < minRelevance) return isCompressed ? 'drop' : 'compress'
  // A newer entry says the same, and is promoted in its place.
  if (isRedundant) return isCompressed ? undefined : 'compress'
  return !isPromoted && relevance >= promoteFrom && hasKeyFacts(entry.content) ? 'promote' : undefined
}

/**
 * The runs with more sequence numbers marked, in order and joined with their neighbours; a number may be marked already.
 *
 * @example
 * withMarks([[2, 3]], [9, 4]) // [[2, 4], [9, 9]]
 */
export function withMarks(runs: readonly Run[], sequences: readonly number[]): readonly Run[] {
  const all = [...runs, ...sequences.map((sequence): Run => [sequence, sequence])].sort(
    (left, right) => left[0] - right[0],
  )
  const joined: [first: number, last: number][] = []
  for (const [first, last] of all) {
    const before = joined.at(-1)
    if (before !== undefined && first <= before[1] + 1) before[1] = Math.max(before[1], last)
    else joined.push([first, last])
  }
  return joined
}
