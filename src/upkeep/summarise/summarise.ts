import { runSync, type Work } from '../../domain/work.ts'
import type { FactCandidate } from '../extract/fields.ts'
import { collectActions } from './actions.ts'
import { rankDetails } from './details.ts'
import { findInjectionsInSteps, overlapsAny } from './injectionCheck.ts'
import {
  buildExcerpt,
  buildSummaryText,
  type Piece,
  pieceWork,
  renderLines,
  splitEarlierSummary,
  splitIntoPieces,
} from './pieces.ts'
import { type Selection, type SourceCapacity, selectContent } from './select.ts'
import { mergeSeries } from './series.ts'
import { fitsTarget, type SummaryMessage, type SummaryTarget, type SummaryText } from './summary.ts'
import { dropSuperseded } from './supersede.ts'

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

/** `summarise` as interruptible work. Sentences that are stored as `facts` weigh less, so that others get in. */
export function* summariseInSteps(
  messages: readonly SummaryMessage[],
  previous: SummaryText | undefined,
  target: SummaryTarget,
  facts: readonly FactCandidate[] = [],
): Work<SummaryText> {
  const { pieces, lists } = yield* selectPieces({ messages, previous, facts, mergesSeries: true }, target)
  return buildSummaryText(pieces, lists)
}

/** Selections after which an excerpt that is still too long is given up: names take most of it. */
const maxExcerptRounds = 8

/**
 * Reduces messages to about the content that `summarise` would keep. Each remains a message of its speaker. `measure`
 * returns the characters of an excerpt with all that is added to it. Returns nothing if no excerpt is short enough.
 */
export function* excerptInSteps(
  messages: readonly SummaryMessage[],
  maxChars: number,
  measure: (excerpt: readonly SummaryMessage[]) => number,
): Work<readonly SummaryMessage[]> {
  let limit = maxChars
  for (let round = 0; round < maxExcerptRounds; round++) {
    const maxTextChars = limit
    const target = { fits: (candidate: string) => candidate.length <= maxTextChars }
    const { pieces, lists } = yield* selectPieces(
      { messages, previous: undefined, facts: [], mergesSeries: false },
      target,
    )
    const excerpt = buildExcerpt(messages, pieces, lists)
    yield sumWork(pieces)
    const chars = measure(excerpt)
    yield chars
    if (chars <= maxChars) return excerpt
    // Names and roles of many short messages take more than their texts.
    limit = Math.floor((0.95 * limit * maxChars) / chars)
  }
  return []
}

type SelectionInput = {
  readonly messages: readonly SummaryMessage[]
  readonly previous: SummaryText | undefined
  readonly facts: readonly FactCandidate[]
  /** Several values in the same words become one line, without the words that repeat. */
  readonly mergesSeries: boolean
}

function* selectPieces(
  { messages, previous, facts, mergesSeries }: SelectionInput,
  target: SummaryTarget,
): Work<Selection> {
  const sorted = [...messages].sort((left, right) => left.sequence - right.sequence)
  const earlier = splitEarlierSummary(previous)
  const actions = yield* collectActions(sorted, earlier.actions)
  const all = [...earlier.pieces, ...(yield* markFacts(yield* splitIntoPieces(sorted), facts))]
  const isWork = actions.commands.length + actions.files.length > 0 || sorted.some(({ role }) => role === 'tool')
  const valid = yield* dropSuperseded(all, isWork)
  const current = mergesSeries ? yield* mergeSeries(valid) : valid
  const details = yield* rankDetails(current)
  const pieces = current.filter(({ kind }) => kind !== 'detail')
  const capacity = yield* measureCapacity(pieces, target)
  return yield* withoutInjections(yield* selectContent({ pieces, details, actions }, capacity, target))
}

/** Share of a sentence that facts must cite. */
const minCitedShare = 0.7

/** Marks the sentences that facts cite. Bare names say nothing, so they do not count. */
function* markFacts(pieces: readonly Piece[], facts: readonly FactCandidate[]): Work<readonly Piece[]> {
  const spans = new Map<string, (readonly [start: number, end: number])[]>()
  for (const { field, source } of facts) {
    if (field === 'entities' || source.span === undefined) continue
    if (spans.get(source.message)?.push(source.span) === undefined) spans.set(source.message, [source.span])
  }
  if (spans.size === 0) return pieces
  const marked: Piece[] = []
  for (const piece of pieces) {
    const { message = '', span: [start, end] = [0, 0] } = piece.sources[0] ?? {}
    const own = spans.get(message) ?? []
    const cited = own.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(to, end) - Math.max(from, start)), 0)
    marked.push(cited > 0 && cited >= minCitedShare * (end - start) ? { ...piece, isFact: true } : piece)
    yield 1 + own.length
  }
  return marked
}

const sumWork = (pieces: readonly Piece[]): number => pieces.reduce((sum, piece) => sum + pieceWork(piece), 0)

/** Removes lines that form an injection together, although no single piece does. */
function* withoutInjections(selection: Selection): Work<Selection> {
  const lines = renderLines(selection.pieces, selection.lists)
  yield sumWork(selection.pieces)
  const injections = yield* findInjectionsInSteps(lines.map(({ text }) => text).join('\n'))
  if (injections.length === 0) return selection
  const removed = new Set<unknown>()
  let start = 0
  for (const { text, pieces, items } of lines) {
    if (overlapsAny(injections, start, start + text.length)) for (const part of [...pieces, ...items]) removed.add(part)
    start += text.length + 1
  }
  return yield* withoutInjections({
    pieces: selection.pieces.filter((piece) => !removed.has(piece)),
    lists: selection.lists.map(({ label, items }) => ({ label, items: items.filter((item) => !removed.has(item)) })),
  })
}

/** Measures how many characters of the source fit the target: the number of tokens depends on the text. */
function* measureCapacity(pieces: readonly Piece[], target: SummaryTarget): Work<SourceCapacity> {
  const source = pieces.map(({ text }) => text).join('\n')
  let [low, high] = [0, 1_024]
  while (low < source.length && fitsTarget(source.slice(0, high), target)) {
    ;[low, high] = [high, 2 * high]
    yield low
  }
  if (low >= source.length) low = source.length
  // A precision of 1/16 suffices: the selection is measured again.
  for (high = Math.min(high, source.length + 1); high - low > 1 + low / 16; ) {
    const middle = (low + high) >> 1
    if (fitsTarget(source.slice(0, middle), target)) low = middle
    else high = middle
    yield middle
  }
  return { chars: low, share: low / Math.max(1, source.length) }
}
