import { runSync, type Work } from '../../domain/work.ts'
import { findAnchors } from '../../text/anchors.ts'
import { markRedundantInSteps } from '../optimizer/redundancy.ts'
import type { Actions } from './actions.ts'
import { createTextFinder } from './coverage.ts'
import type { Detail } from './details.ts'
import { type Piece, pieceWork, renderPieces, type SummaryList } from './pieces.ts'
import { type Content, joinContents, measureContent, rankByGain, scoreContent } from './score.ts'
import { countWords, fitsTarget, type NamedEntity, type SummaryTarget } from './summary.ts'

/** Pieces and lists of a summary. */
export type Selection = { readonly pieces: readonly Piece[]; readonly lists: readonly SummaryList[] }

/** Everything that a summary may show: pieces in conversation order, ranked details, actions from old to new. */
export type SummaryContent = {
  readonly pieces: readonly Piece[]
  readonly details: readonly Detail[]
  readonly actions: Actions
}

/** Pieces that are selected together, with their position in the conversation and a score for their rank. */
type SelectionUnit = {
  readonly pieces: readonly Piece[]
  readonly position: number
  readonly score: number
  /** Position of the unit that this one refers to; it is taken only with that one. */
  readonly needs?: number
}

/** Shares of the available characters for the lists of commands, of files and of details. */
const actionShare = 0.2
const detailShare = 0.12
const maxListChars = 1_000
/**
 * Share of the available characters that an earlier summary may keep, so that new content gets in once the summary
 * stops growing.
 */
const earlierShare = 0.8
/** Share of common words from which two units count as duplicates. */
const duplicateThreshold = 0.9
/** Units tried in part when the units that fit whole are too short together. */
const maxPartialUnits = 64
/** A sentence joins the one it refers to up to this many words; a longer pair is taken one after the other. */
const maxJoinedWords = 60
/** Sentences without spaces between their words have few of these, and thousands of terms. */
const maxJoinedTerms = 1_024

/** Approximate amount of the source that fits a target. */
export type SourceCapacity = { readonly chars: number; readonly share: number }

/** Selects the pieces, actions and details to show within the target. */
export function* selectContent(
  { pieces, details, actions }: SummaryContent,
  capacity: SourceCapacity,
  target: SummaryTarget,
): Work<Selection> {
  const isOnlyFiller = pieces.every(({ isFiller }) => isFiller)
  const units = yield* groupIntoUnits(pieces, ({ isFiller }) => isOnlyFiller || !isFiller)
  const lists = limitActions(actions, capacity, target)
  const render = (taken: readonly SelectionUnit[], shown: readonly NamedEntity[]): string =>
    renderPieces(inConversationOrder(taken), shown, lists)
  // Units longer than all available characters are excluded, because each one would count as a miss in `pack`.
  yield units.length
  const fitting = units.filter((unit) => unitChars(unit) <= 1.25 * capacity.chars + 16).sort(byScore)
  const reserved = details.slice(0, countWithinChars(details, itemChars, detailShare * capacity.chars))
  const availableChars = capacity.chars - charsOf(reserved, itemChars)
  const ranked = limitEarlier(fitting, availableChars)
  const remaining = createRemainingDetails(reserved)
  const fits = function* (taken: readonly SelectionUnit[], shown: readonly NamedEntity[]): Work<boolean> {
    const text = render(taken, shown)
    yield text.length
    return fitsTarget(text, target)
  }
  const fitsWithRemaining = function* (taken: readonly SelectionUnit[]): Work<boolean> {
    return yield* fits(taken, yield* remaining(taken))
  }
  const expected = countWithinChars(ranked, unitChars, availableChars)
  const packed = withoutOrphans(yield* packInSteps(ranked, fitsWithRemaining, expected), units)
  const choose = (taken: readonly SelectionUnit[], maxChars: number): Work<readonly NamedEntity[]> =>
    chooseDetails(details, render(taken, []), maxChars, (chosen) => fits(taken, chosen))
  const first = yield* choose(packed, 2 * detailShare * capacity.chars)
  const filled = yield* fillUp(packed, ranked, capacity.chars - charsOf(first, itemChars), (taken) =>
    fits(taken, first),
  )
  const shown = yield* choose(filled, capacity.chars)
  const reserve = isOnlyFiller
    ? []
    : pieces.flatMap((piece, position) =>
        piece.isFiller ? [{ pieces: [piece], position, score: Number.NEGATIVE_INFINITY }] : [],
      )
  yield units.length
  const taken = yield* addPartialUnits(filled, [...units, ...reserve], shown, lists, target)
  return { pieces: inConversationOrder(taken), lists: [...lists, { label: 'Details', items: shown }] }
}

/** Takes the newest commands and files: all if the whole source fits, otherwise those within their share. */
function limitActions(actions: Actions, capacity: SourceCapacity, target: SummaryTarget): readonly SummaryList[] {
  const takeNewest = (items: readonly NamedEntity[], maxChars: number): readonly NamedEntity[] => {
    const newest = [...items].reverse()
    return newest.slice(0, countWithinChars(newest, itemChars, maxChars)).reverse()
  }
  const build = (maxChars: number): readonly SummaryList[] => [
    { label: 'Commands', items: takeNewest(actions.commands, maxChars) },
    { label: 'Files', items: takeNewest(actions.files, maxChars) },
  ]
  const fits = (lists: readonly SummaryList[]): boolean => fitsTarget(renderPieces([], [], lists), target)
  const limits = [...(capacity.share >= 1 ? [maxListChars] : []), actionShare * capacity.chars]
  return limits.map(build).find(fits) ?? []
}

/** Returns a function that filters the details not shown by the taken units. Anchors of a unit are computed once. */
function createRemainingDetails(
  details: readonly Detail[],
): (taken: readonly SelectionUnit[]) => Work<readonly NamedEntity[]> {
  const searched = new Set(details.map(({ name }) => name))
  const cache = new Map<SelectionUnit, readonly string[]>()
  const shownBy = function* (unit: SelectionUnit): Work<readonly string[]> {
    const known = cache.get(unit)
    if (known !== undefined) return known
    const shown = unit.pieces
      .flatMap((piece) => findAnchors(piece.text).map(({ text }) => text))
      .filter((text) => searched.has(text))
    cache.set(unit, shown)
    yield unitChars(unit)
    return shown
  }
  return function* (taken) {
    if (details.length === 0) return details
    const shown = new Set<string>()
    for (const unit of taken) for (const name of yield* shownBy(unit)) shown.add(name)
    return details.filter(({ name }) => !shown.has(name))
  }
}

/** Chooses details that the text lacks, as many as fit; none is shown twice. */
function* chooseDetails(
  details: readonly Detail[],
  text: string,
  maxChars: number,
  fits: (details: readonly NamedEntity[]) => Work<boolean>,
): Work<readonly NamedEntity[]> {
  if (details.length === 0) return []
  const has = yield* createTextFinder(text)
  const missing: Detail[] = []
  let chars = 0
  for (const detail of details) {
    if (chars > maxChars || missing.length > maxDetails) break
    yield itemChars(detail)
    if (has(detail.name) || missing.some((other) => other.text.includes(detail.name))) continue
    missing.push(detail)
    chars += itemChars(detail)
  }
  const count = yield* findLargestInSteps(missing.length, (first) => fits(missing.slice(0, first)), missing.length)
  return missing.slice(0, count)
}

const maxDetails = 200

/** Moves pieces of the earlier summary beyond their share of the available characters to the end. */
function limitEarlier(ranked: readonly SelectionUnit[], maxChars: number): readonly SelectionUnit[] {
  const earlier = ranked.filter(isFromEarlierSummary)
  const deferred = new Set(earlier.slice(countWithinChars(earlier, unitChars, earlierShare * maxChars)))
  return [...ranked.filter((unit) => !deferred.has(unit)), ...deferred]
}

const isFromEarlierSummary = ({ pieces: [first] }: SelectionUnit): boolean => first?.kind === 'earlier'

const byScore = (left: SelectionUnit, right: SelectionUnit): number =>
  right.score - left.score || left.position - right.position

/** Removes units that refer to one that was not taken. */
function withoutOrphans(taken: readonly SelectionUnit[], all: readonly SelectionUnit[]): readonly SelectionUnit[] {
  const known = new Set(all.map(({ position }) => position))
  const positions = new Set(taken.map(({ position }) => position))
  const isOrphan = ({ needs }: SelectionUnit): boolean =>
    needs !== undefined && known.has(needs) && !positions.has(needs)
  const orphans = taken.filter(isOrphan)
  return orphans.length === 0
    ? taken
    : withoutOrphans(
        taken.filter((unit) => !isOrphan(unit)),
        all,
      )
}

/** Adds further units in the room that is left. */
function* fillUp(
  taken: readonly SelectionUnit[],
  ranked: readonly SelectionUnit[],
  chars: number,
  fits: (taken: readonly SelectionUnit[]) => Work<boolean>,
): Work<readonly SelectionUnit[]> {
  const isTaken = new Set(taken)
  const room = chars - charsOf(taken, unitChars)
  const positions = new Set(taken.map(({ position }) => position))
  // Units that are clearly too long, or refer to one that is not taken, are not tried.
  const rest = ranked.filter(
    (unit) =>
      !isTaken.has(unit) &&
      unitChars(unit) <= 1.2 * room + 16 &&
      (unit.needs === undefined || positions.has(unit.needs)),
  )
  yield ranked.length
  return [...taken, ...(yield* packInSteps(rest, (more) => fits([...taken, ...more]), 1))]
}

/** Adds truncated units until the text has the minimum number of words. */
function* addPartialUnits(
  taken: readonly SelectionUnit[],
  all: readonly SelectionUnit[],
  details: readonly NamedEntity[],
  lists: readonly SummaryList[],
  target: SummaryTarget,
): Work<readonly SelectionUnit[]> {
  const [minWords, maxWords] = target.words ?? [0, 0]
  const render = (units: readonly SelectionUnit[]): string => renderPieces(inConversationOrder(units), details, lists)
  let units = taken
  const isTaken = new Set(taken)
  for (const unit of [...all].sort(byScore).slice(0, taken.length + maxPartialUnits)) {
    const text = render(units)
    const words = countWords(text)
    if (words >= minWords) break
    yield text.length
    const [piece] = unit.pieces
    if (isTaken.has(unit) || piece === undefined || piece.kind === 'series') continue
    const truncated = truncatePiece(piece, maxWords - words - countWords(`${piece.speaker} ${piece.day}`))
    const more = truncated === undefined ? units : [...units, { ...unit, pieces: [truncated] }]
    if (fitsTarget(render(more), target)) units = more
    yield text.length + piece.text.length
  }
  return units
}

/** Truncates a piece to a number of words without splitting a name, a date or a number. */
function truncatePiece(piece: Piece, words: number): Piece | undefined {
  const ends = Array.from(piece.text.matchAll(/\S+/g), ({ 0: word, index }) => index + word.length)
  const anchors = findAnchors(piece.text).filter(({ kind }) => kind !== 'constraint')
  const end = ends
    .slice(0, Math.max(0, words))
    .findLast((position) => !anchors.some((anchor) => anchor.start < position && position < anchor.end))
  if (end === undefined) return undefined
  // Directly after a URL the ellipsis would read as part of it.
  const ellipsis = end === piece.text.length || anchors.some((anchor) => anchor.end === end) ? '' : '…'
  const text = piece.text.slice(0, end) + ellipsis
  return { ...piece, text, words: countWords(text) }
}

const itemChars = ({ text }: NamedEntity): number => text.length + 2
const unitChars = ({ pieces }: SelectionUnit): number => pieces.reduce((sum, { text }) => sum + text.length + 1, 0)
const charsOf = <T>(items: readonly T[], size: (item: T) => number): number =>
  items.reduce((sum, item) => sum + size(item), 0)

/** Counts how many items from the front have at most `maxChars` characters together. */
function countWithinChars<T>(items: readonly T[], size: (item: T) => number, maxChars: number): number {
  let chars = 0
  let count = 0
  for (const item of items) {
    chars += size(item)
    if (chars > maxChars) break
    count++
  }
  return count
}

/** Returns the pieces of units in conversation order. */
const inConversationOrder = (units: readonly SelectionUnit[]): readonly Piece[] =>
  [...units].sort((left, right) => left.position - right.position).flatMap(({ pieces }) => pieces)

/** A unit before it is ranked. */
type Group = {
  readonly pieces: readonly Piece[]
  readonly position: number
  readonly content: Content
  readonly needs?: number
}

/**
 * Groups questions with their short answers, and sentences with the less interesting ones that they refer to; drops
 * units that repeat an earlier one, and ranks the others by what they add.
 */
function* groupIntoUnits(all: readonly Piece[], isTold: (piece: Piece) => boolean): Work<readonly SelectionUnit[]> {
  const pieces = all.filter(isTold)
  const positions = [...all.keys()].filter((at) => isTold(all[at] as Piece))
  const contents = yield* measureContent(pieces)
  const groups: Group[] = []
  for (let next = 0; next < pieces.length; ) {
    yield pieceWork(pieces[next] as Piece)
    const size = pieces[next]?.hasShortAnswer === true ? 2 : 1
    const own = pieces.slice(next, next + size)
    const content = joinContents(contents.slice(next, next + size))
    const group = { pieces: own, position: positions[next] ?? next, content }
    const last = groups.at(-1)
    if (last === undefined || own[0]?.needsPrevious !== true) groups.push(group)
    else if (isWorthJoining(last.content, content))
      groups[groups.length - 1] = {
        ...last,
        pieces: [...last.pieces, ...own],
        content: joinContents([last.content, content]),
      }
    else groups.push({ ...group, needs: last.position })
    next += size
  }
  const distinct = yield* withoutDuplicates(groups)
  const indexes = new Map(distinct.map(({ position }, index) => [position, index]))
  const order = yield* rankByGain(
    distinct.map(({ content }) => content),
    distinct.map(({ needs }) => (needs === undefined ? undefined : indexes.get(needs))),
  )
  const ranks = new Map(order.map((index, rank) => [index, rank]))
  return distinct.map(({ content: _, ...group }, index) => ({ ...group, score: -(ranks.get(index) ?? 0) }))
}

const nothing: ReadonlySet<string> = new Set()
const isWorthJoining = (one: Content, other: Content): boolean =>
  one.words + other.words <= maxJoinedWords &&
  one.terms.size + other.terms.size <= maxJoinedTerms &&
  scoreContent(other, nothing) > scoreContent(one, nothing)

/** Numbers, names and negation of a sentence: sentences that differ in these are never duplicates. */
const signatureOf = (text: string): string =>
  [...(text.match(/\d+|(?<=\S )\p{Lu}\S*/gu) ?? []), /\b(?:not|no|never|without)\b|n['’]t\b/i.test(text)].join(' ')

/** Keeps the first unit of each group of duplicates. */
function* withoutDuplicates(units: readonly Group[]): Work<readonly Group[]> {
  const groups = new Map<string, { readonly unit: Group; readonly text: string }[]>()
  for (const unit of units) {
    const text = unit.pieces.map((piece) => piece.text).join('\n')
    const signature = signatureOf(text)
    const group = groups.get(signature)
    if (group === undefined) groups.set(signature, [{ unit, text }])
    else group.push({ unit, text })
    yield pieceWork({ text })
  }
  const distinct: Group[] = []
  for (const group of groups.values()) {
    // Reversed, because `markRedundant` keeps the newest.
    const reversed = group.reverse()
    const texts = reversed.map(({ text }) => text)
    const duplicates = yield* markRedundantInSteps(texts, duplicateThreshold)
    for (const [at, { unit }] of reversed.entries()) if (duplicates[at] !== 1) distinct.push(unit)
  }
  return distinct.sort((left, right) => left.position - right.position)
}

/** Items that may be skipped because they do not fit, before packing stops. */
const maxMisses = 6

/**
 * Takes items from the front as long as they fit together; skips a few that do not. `fits` must be monotonic and is
 * called rarely. `guess` is the expected number of items.
 */
export const pack = <T>(items: readonly T[], fits: (taken: readonly T[]) => boolean, guess: number): readonly T[] =>
  runSync(packInSteps(items, toWork(fits), guess))

/** `pack` as interruptible work. */
function* packInSteps<T>(
  items: readonly T[],
  fits: (taken: readonly T[]) => Work<boolean>,
  guess: number,
): Work<readonly T[]> {
  const count = yield* findLargestInSteps(items.length, (taken) => fits(items.slice(0, taken)), guess)
  let packed = items.slice(0, count)
  let misses = 0
  for (const next of items.slice(count + 1)) {
    if (misses > maxMisses) break
    const more = [...packed, next]
    if (yield* fits(more)) packed = more
    else misses++
  }
  return packed
}

/** Finds the largest count up to `limit` for which a monotonic condition holds, searching outwards from a guess. */
export const findLargest = (limit: number, holds: (count: number) => boolean, guess = 1): number =>
  runSync(findLargestInSteps(limit, toWork(holds), guess))

/** `findLargest` as interruptible work. */
export function* findLargestInSteps(limit: number, holds: (count: number) => Work<boolean>, guess = 1): Work<number> {
  let low = 0
  let high = limit + 1
  let step = Math.max(1, guess >> 4)
  let next = Math.min(Math.max(1, guess), limit)
  while (high - low > 1) {
    if (yield* holds(next)) low = next
    else high = next
    const isBracketed = low > 0 && high <= limit
    step *= 2
    next = isBracketed ? (low + high) >> 1 : low > 0 ? Math.min(low + step, limit) : Math.max(high - step, 1)
    if (next <= low || next >= high) next = (low + high) >> 1
  }
  return low
}

/** Turns a function into work of one step. */
export const toWork = <A, R>(compute: (argument: A) => R): ((argument: A) => Work<R>) =>
  function* (argument) {
    const result = compute(argument)
    yield 1
    return result
  }
