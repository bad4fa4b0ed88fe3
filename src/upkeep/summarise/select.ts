import { findAnchors } from '../../text/anchors.ts'
import {
  countMatches,
  datePattern,
  firstPersonPattern,
  identifierPattern,
  namePattern,
  numberPattern,
} from '../../text/sentences.ts'
import { extractTerms } from '../../text/words.ts'
import { markRedundant } from '../optimizer/redundancy.ts'
import type { Work } from '../work.ts'
import { missingNames } from './coverage.ts'
import { type Piece, type PieceKind, renderPieces } from './pieces.ts'
import { countWords, fitsTarget, type NamedEntity, type SummaryTarget } from './summary.ts'

/** Pieces and tail names of a summary. */
export type Selection = { readonly pieces: readonly Piece[]; readonly tail: readonly NamedEntity[] }

/** Pieces that are selected together, with their position in the conversation and their score per word. */
type SelectionUnit = { readonly pieces: readonly Piece[]; readonly position: number; readonly score: number }

/** Share of the available characters for tail names: `max` if a tenth or less of the source fits, less if more fits. */
const tailShare = { max: 0.4, min: 0.1 }
/**
 * Share of the available characters that an earlier summary may keep, so that new content gets in once the summary
 * stops growing.
 */
const earlierShare = 0.8
/** Share of common words from which two units count as duplicates. */
const duplicateThreshold = 0.9
/** Units tried in part when the units that fit whole are too short together. */
const maxPartialUnits = 64

/** Approximate amount of the source that fits a target. */
export type SourceCapacity = { readonly chars: number; readonly words: number; readonly share: number }

/** Selects the pieces and names to show within the target. */
export function* selectPieces(
  pieces: readonly Piece[],
  names: readonly NamedEntity[],
  capacity: SourceCapacity,
  target: SummaryTarget,
): Work<Selection> {
  const units = yield* groupIntoUnits(pieces)
  if (capacity.share >= 1 && fitsTarget(renderPieces(inConversationOrder(units), []), target))
    return addTail(inConversationOrder(units), names, target)
  // Units longer than all available characters are excluded, because each one would count as a miss in `pack`.
  const fitting = units.filter((unit) => unitChars(unit) <= 1.25 * capacity.chars + 16).sort(byScore)
  const reserve = reserveNames(names, capacity)
  const availableChars = capacity.chars - tailChars(reserve)
  const ranked = limitEarlier(fitting, availableChars)
  const remaining = createRemainingNames(reserve)
  const fits = (taken: readonly SelectionUnit[]): boolean =>
    fitsTarget(renderPieces(inConversationOrder(taken), remaining(taken)), target)
  const packed = pack(ranked, fits, countWithinChars(ranked, unitChars, availableChars))
  return addTail(inConversationOrder(addPartialUnits(packed, units, remaining(packed), target)), names, target)
}

/** Returns a function that filters the names not shown by the taken units. Anchors of a unit are computed once. */
function createRemainingNames(
  names: readonly NamedEntity[],
): (taken: readonly SelectionUnit[]) => readonly NamedEntity[] {
  const searched = new Set(names.map(({ text }) => text))
  const cache = new Map<SelectionUnit, readonly string[]>()
  const shownBy = (unit: SelectionUnit): readonly string[] => {
    const shown =
      cache.get(unit) ??
      unit.pieces
        .flatMap((piece) => findAnchors(piece.text).map(({ text }) => text))
        .filter((text) => searched.has(text))
    cache.set(unit, shown)
    return shown
  }
  return (taken) => {
    const shown = new Set(taken.flatMap(shownBy))
    return names.filter(({ text }) => !shown.has(text))
  }
}

/** Moves pieces of the earlier summary beyond their share of the available characters to the end. */
function limitEarlier(ranked: readonly SelectionUnit[], maxChars: number): readonly SelectionUnit[] {
  const earlier = ranked.filter(isFromEarlierSummary)
  const deferred = new Set(earlier.slice(countWithinChars(earlier, unitChars, earlierShare * maxChars)))
  return [...ranked.filter((unit) => !deferred.has(unit)), ...deferred]
}

const isFromEarlierSummary = ({ pieces: [first] }: SelectionUnit): boolean => first?.kind === 'earlier'

const byScore = (left: SelectionUnit, right: SelectionUnit): number =>
  right.score - left.score || left.position - right.position

/** Adds truncated units until the text has the minimum number of words. */
function addPartialUnits(
  taken: readonly SelectionUnit[],
  all: readonly SelectionUnit[],
  tail: readonly NamedEntity[],
  target: SummaryTarget,
): readonly SelectionUnit[] {
  const [minWords, maxWords] = target.words ?? [0, 0]
  let units = taken
  const isTaken = new Set(taken)
  for (const unit of [...all].sort(byScore).slice(0, taken.length + maxPartialUnits)) {
    const words = countWords(renderPieces(inConversationOrder(units), tail))
    if (words >= minWords) break
    const [piece] = unit.pieces
    if (isTaken.has(unit) || piece === undefined) continue
    const truncated = truncatePiece(piece, maxWords - words - countWords(piece.speaker))
    const more = truncated === undefined ? units : [...units, { ...unit, pieces: [truncated] }]
    if (fitsTarget(renderPieces(inConversationOrder(more), tail), target)) units = more
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

function addTail(pieces: readonly Piece[], names: readonly NamedEntity[], target: SummaryTarget): Selection {
  const missing = missingNames(renderPieces(pieces, []), names)
  const count = findLargest(
    missing.length,
    (taken) => fitsTarget(renderPieces(pieces, missing.slice(0, taken)), target),
    missing.length,
  )
  return { pieces, tail: missing.slice(0, count) }
}

/** Names to reserve space for before it is known which of them the pieces show. */
function reserveNames(names: readonly NamedEntity[], capacity: SourceCapacity): readonly NamedEntity[] {
  const share = Math.max(tailShare.min, tailShare.max - 1.5 * Math.max(0, capacity.share - 0.1))
  return names.slice(
    0,
    countWithinChars(names, ({ text }) => text.length + 2, share * capacity.chars),
  )
}

const tailChars = (tail: readonly NamedEntity[]): number => tail.reduce((sum, { text }) => sum + text.length + 2, 0)
const unitChars = ({ pieces }: SelectionUnit): number => pieces.reduce((sum, { text }) => sum + text.length + 1, 0)

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

/** Groups questions with their short answers, and drops units that repeat an earlier one. */
function* groupIntoUnits(pieces: readonly Piece[]): Work<readonly SelectionUnit[]> {
  const scores = yield* scorePieces(pieces)
  const units: SelectionUnit[] = []
  for (let position = 0; position < pieces.length; ) {
    const size = pieces[position]?.hasShortAnswer === true ? 2 : 1
    const own = pieces.slice(position, position + size)
    const words = own.reduce((sum, piece) => sum + piece.words, 5)
    const total = own.reduce((sum, piece, at) => sum + (scores[position + at] ?? 0) * (piece.words + 5), 0)
    units.push({ pieces: own, position, score: total / words })
    position += size
  }
  return yield* withoutDuplicates(units)
}

/** Numbers, names and negation of a sentence: sentences that differ in these are never duplicates. */
const signatureOf = (text: string): string =>
  [...(text.match(/\d+|(?<=\S )\p{Lu}\S*/gu) ?? []), /\b(?:not|no|never|without)\b|n['’]t\b/i.test(text)].join(' ')

/** Keeps the first unit of each group of duplicates. */
function* withoutDuplicates(units: readonly SelectionUnit[]): Work<readonly SelectionUnit[]> {
  const groups = new Map<string, { readonly unit: SelectionUnit; readonly text: string }[]>()
  for (const unit of units) {
    const text = unit.pieces.map((piece) => piece.text).join('\n')
    const signature = signatureOf(text)
    const group = groups.get(signature)
    if (group === undefined) groups.set(signature, [{ unit, text }])
    else group.push({ unit, text })
    yield text.length
  }
  const distinct: SelectionUnit[] = []
  for (const group of groups.values()) {
    // Reversed, because `markRedundant` keeps the newest.
    const reversed = group.reverse()
    const duplicates = markRedundant(
      reversed.map(({ text }) => text),
      duplicateThreshold,
    )
    for (const [at, { unit }] of reversed.entries()) if (duplicates[at] !== 1) distinct.push(unit)
    yield group.reduce((sum, { text }) => sum + text.length, 0)
  }
  return distinct.sort((left, right) => left.position - right.position)
}

// Weights measured on long dialogues by the content of later questions: answers and dates most, then events, numbers,
// names.
const eventPattern =
  /\b(?:I|[Ww]e)(?:['’](?:ve|d|m|re))?\s(?:(?:just|also|finally|recently|never|always)\s)?(?:\w{2,20}ed|went|got|had|made|did|took|saw|met|bought|found|won|lost|began|wrote|gave|ran|came|left|told|kept|was|were|been|chose|prefer|want|need|hate|love)\b/g
const constraintPattern = /\b(?:never|must|always|do not|don['’]t|only|without|except)\b/i
const failurePattern = /error|exception|failure|fatal|panic|failed/i
const questionPattern = /\?["'”’)\]]*$/
const codeSignature =
  /^\s*(?:(?:export|default|pub(?:lic)?|private|abstract|async|static) ){0,3}(?:import|from|def|class|interface|type|function|fn|func|struct|enum|trait|impl|#include|package|module|create table|alter table)\b/i

/** An unnamed assistant's explanation can be generated again; a person's statement cannot. */
const unnamedAssistantFactor = 0.3
const kindFactors: Readonly<Record<PieceKind, number>> = { prose: 1, earlier: 2, gist: 0.3, code: 0.1, output: 0.05 }
const failedGistFactor = 2
const codeSignatureFactor = 0.4
const longTurnFactor = 0.6
const nonProseFactor = 0.25

/** Scores pieces by information per word; only the order of the scores is meaningful. */
function* scorePieces(pieces: readonly Piece[]): Work<readonly number[]> {
  const terms: ReadonlySet<string>[] = []
  const frequency = new Map<string, number>()
  for (const { text } of pieces) {
    const own = new Set(extractTerms(text))
    for (const term of own) frequency.set(term, (frequency.get(term) ?? 0) + 1)
    terms.push(own)
    yield text.length
  }
  const scores: number[] = []
  for (const [index, piece] of pieces.entries()) {
    let rarity = 0
    for (const term of terms[index] ?? []) rarity += Math.log(1 + pieces.length / (frequency.get(term) ?? 1))
    // The exponent keeps long turns, which have many rare words, from outweighing short ones.
    scores.push((rarity ** 0.6 / (piece.words + 5)) * pieceFactor(piece))
    yield piece.text.length
  }
  return scores
}

function pieceFactor(piece: Piece): number {
  const { kind, text, isPerson, isFromLongTurn } = piece
  if (kind === 'code') return codeSignature.test(text) ? codeSignatureFactor : kindFactors.code
  if (kind === 'output' || kind === 'gist')
    return kind === 'gist' && failurePattern.test(text) ? failedGistFactor : kindFactors[kind]
  if (!isProse(text)) return kindFactors[kind] * nonProseFactor
  return (
    proseInterest(piece) *
    kindFactors[kind] *
    (isPerson ? 1 : unnamedAssistantFactor) *
    (isFromLongTurn ? longTurnFactor : 1)
  )
}

/** False for table rows, stack frames, and unfenced lines of code or diffs. */
function isProse(text: string): boolean {
  if (/^(?:\||\d+ ?\||at \S{1,200} \(|[+-]{2}|@@|[$❯>] |<\/?\w)/.test(text)) return false
  const letters = text.match(/[\p{L}\p{M}\s]/gu)?.length ?? 0
  return letters >= 0.75 * text.length
}

function proseInterest({ text, isAnswer }: Piece): number {
  let interest =
    1 +
    1.2 * countMatches(2, text, datePattern) +
    0.5 * countMatches(2, text, numberPattern) +
    0.4 * countMatches(3, text, namePattern) +
    0.5 * countMatches(2, text, eventPattern)
  if (firstPersonPattern.test(text)) interest += 0.3
  if (constraintPattern.test(text)) interest += 0.3
  if (identifierPattern.test(text)) interest += 0.3
  if (isAnswer) interest += 1.2
  return questionPattern.test(text) ? interest * 0.8 : interest
}

/** Items that may be skipped because they do not fit, before packing stops. */
const maxMisses = 6

/**
 * Takes items from the front as long as they fit together; skips a few that do not. `fits` must be monotonic and is
 * called rarely. `guess` is the expected number of items.
 */
export function pack<T>(items: readonly T[], fits: (taken: readonly T[]) => boolean, guess: number): readonly T[] {
  const count = findLargest(items.length, (taken) => fits(items.slice(0, taken)), guess)
  let packed = items.slice(0, count)
  let misses = 0
  for (const next of items.slice(count + 1)) {
    if (misses > maxMisses) break
    const more = [...packed, next]
    if (fits(more)) packed = more
    else misses++
  }
  return packed
}

/** Finds the largest count up to `limit` for which a monotonic condition holds, searching outwards from a guess. */
export function findLargest(limit: number, holds: (count: number) => boolean, guess = 1): number {
  let low = 0
  let high = limit + 1
  let step = Math.max(1, guess >> 4)
  let next = Math.min(Math.max(1, guess), limit)
  while (high - low > 1) {
    if (holds(next)) low = next
    else high = next
    const isBracketed = low > 0 && high <= limit
    step *= 2
    next = isBracketed ? (low + high) >> 1 : low > 0 ? Math.min(low + step, limit) : Math.max(high - step, 1)
    if (next <= low || next >= high) next = (low + high) >> 1
  }
  return low
}
