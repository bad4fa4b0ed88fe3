import { runSync, type Work } from '../work.ts'
import { rankNames } from './coverage.ts'
import { findInjections, overlapsAny } from './injectionCheck.ts'
import { buildSummaryText, renderPieces, splitEarlierSummary, splitIntoPieces } from './pieces.ts'
import { type Selection, type SourceCapacity, selectPieces } from './select.ts'
import { countWords, fitsTarget, type SummaryMessage, type SummaryTarget, type SummaryText } from './summary.ts'

/** A turn is kept as one piece if it takes at most this share of the room, or at most `minTurnWords`. */
const maxTurnShare = 1 / 25
const minTurnWords = 25

/**
 * Summarises messages and the summary of earlier ones by extraction: the turns and sentences with the most information
 * for their length, in conversation order, followed by the names and numbers that these do not show.
 *
 * @example
 * summarise([{ id: 'm1', sequence: 1, at: 0, role: 'user', content: 'I moved to Oslo on 3 May.' }], undefined, { words: [3, 9] })
 * // { text: 'User: I moved to Oslo on 3 May.', sources: [{ message: 'm1', span: [0, 25] }] }
 */
export const summarise = (
  messages: readonly SummaryMessage[],
  previous: SummaryText | undefined,
  target: SummaryTarget,
): SummaryText => runSync(summariseInSteps(messages, previous, target))

/** `summarise` as interruptible work. */
export function* summariseInSteps(
  messages: readonly SummaryMessage[],
  previous: SummaryText | undefined,
  target: SummaryTarget,
): Work<SummaryText> {
  const sorted = [...messages].sort((left, right) => left.sequence - right.sequence)
  const earlier = splitEarlierSummary(previous)
  const source = [...earlier.pieces.map(({ text }) => text), ...sorted.map(({ content }) => content)].join('\n')
  const capacity = measureCapacity(source, target)
  const maxTurnWords = Math.max(minTurnWords, capacity.words * maxTurnShare)
  const pieces = [...earlier.pieces, ...(yield* splitIntoPieces(sorted, maxTurnWords))]
  const names = yield* rankNames(sorted, earlier.names)
  const selection = withoutInjections(yield* selectPieces(pieces, names, capacity, target))
  return buildSummaryText(selection.pieces, selection.tail)
}

/** Removes lines that form an injection together, although no single piece does. */
function withoutInjections(selection: Selection): Selection {
  const text = renderPieces(selection.pieces, selection.tail)
  const injections = findInjections(text)
  if (injections.length === 0) return selection
  let start = 0
  const isClear = text.split('\n').map((line) => {
    const from = start
    start += line.length + 1
    return !overlapsAny(injections, from, start - 1)
  })
  return withoutInjections({
    pieces: selection.pieces.filter((_, index) => isClear[index]),
    tail: isClear[selection.pieces.length] === false ? [] : selection.tail,
  })
}

/** Measures how much of the source itself fits the target: the number of tokens depends on the text. */
function measureCapacity(source: string, target: SummaryTarget): SourceCapacity {
  let [low, high] = [0, 1_024]
  while (low < source.length && fitsTarget(source.slice(0, high), target)) [low, high] = [high, 2 * high]
  if (low >= source.length) low = source.length
  // A precision of 1/16 suffices: the selection is measured again.
  for (high = Math.min(high, source.length + 1); high - low > 1 + low / 16; ) {
    const middle = (low + high) >> 1
    if (fitsTarget(source.slice(0, middle), target)) low = middle
    else high = middle
  }
  const fitting = source.slice(0, low)
  return { chars: fitting.length, words: countWords(fitting), share: fitting.length / Math.max(1, source.length) }
}
