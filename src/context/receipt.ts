import {
  type DerivedEntry,
  formatMessageId,
  type Message,
  parseMessageId,
  type SequenceRange,
  type Tokens,
} from '../domain/entry.ts'
import type { LedgerLine, Origin, Verdict } from '../domain/ledger.ts'
import { type Band, maxBandTokens } from '../domain/profile.ts'
import { countExisting, type Gap, isInRanges, type SessionHead } from '../domain/session.ts'
import type { Allocation, DerivedPiece, MessagePiece, MissCause, RenderedAs } from './allocation.ts'
import type { ContextCandidates } from './gatherCandidates.ts'
import { firstSequence, lastSequence, type Unit } from './render.ts'

/** Reasons for leaving out a candidate of a band. */
const missReasons: Readonly<Record<MissCause, string>> = {
  'budget-used': 'budget used up',
  'too-long': 'too long for the remaining budget',
  'band-limit': "over this band's limit",
  'tail-share': 'tail share used up',
  'after-miss': 'comes after an entry that did not fit',
  empty: 'empty entry',
}
/** Reasons for showing a message that was not found for the question. */
const basisReasons = {
  nearby: 'close to messages that are relevant to the question',
  filler: 'fills the rest of the budget',
  work: 'names what the work is about',
}
/** Reasons for leaving out messages that no band selected. */
const notRelevant = 'not relevant to the question'
const lessRelevant = 'less relevant to the question than the messages shown'
const lessRelevantEntry = 'less relevant to the question than the entries shown'
const outsideBands = 'outside the range of every band'
const spaceReasons: ReadonlySet<string> = new Set([
  ...Object.values(missReasons).filter((reason) => reason !== missReasons.empty),
  notRelevant,
  lessRelevant,
  outsideBands,
])

/**
 * True if the reason of a receipt line is that the entry did not fit or was not selected, false if it cannot be sent at
 * all.
 */
export const isSpaceReason = (why: string): boolean => spaceReasons.has(why)

const pieceReasons = {
  newest: 'the newest turn',
  opening: 'opening instructions',
  since: 'after the newest turn',
} as const
const derivedReasons = {
  summary: 'summary of earlier messages',
  fact: 'remembered fact',
  knowledge: 'known from other sessions',
  item: 'important item',
} as const
const shortenedBy: Readonly<Record<RenderedAs, string>> = {
  whole: 'shortened',
  squeeze: 'white space removed',
  uncomment: 'comments removed',
  digest: 'shortened to a digest',
  sections: 'shortened to key sentences',
  json: 'JSON compacted',
  clip: 'clipped',
  fit: 'middle left out',
  end: 'beginning left out',
  passages: 'the passages that matter most',
}

/**
 * Builds the lines of a receipt: one per run of entries with the same outcome, each entry once, and one for the
 * overhead.
 */
export function buildReceipt(candidates: ContextCandidates, allocation: Allocation): LedgerLine[] {
  const lines: DraftLine[] = []
  const { overheadTokens: tokens } = allocation
  if (tokens > 0)
    lines.push({
      band: 'frame',
      entries: null,
      count: 0,
      verdict: 'whole',
      tokens,
      why: 'headings and provider overhead',
    })
  addMessages(lines, candidates, allocation)
  return candidates.derived.length === 0 ? lines : [...lines, ...derivedLines(candidates, allocation)]
}

/** A line that may still be extended. */
type DraftLine = Omit<LedgerLine, 'entries' | 'count' | 'tokens'> & {
  readonly entries: [first: string, last: string] | null
  count: number
  tokens: Tokens
}

/** Adds a run of entries, merged into the last line if the outcome is the same. */
function addLine(
  lines: DraftLine[],
  first: string,
  end: string,
  count: number,
  tokens: Tokens,
  band: string,
  verdict: Verdict,
  why: string,
  from?: Origin,
): void {
  const last = lines.at(-1)
  // File passages get a line each: the passages between two of them were not found.
  if (
    last?.entries &&
    last.band === band &&
    last.verdict === verdict &&
    last.why === why &&
    last.from === from &&
    from !== 'files'
  ) {
    last.entries[1] = end
    last.count += count
    last.tokens += tokens
  } else lines.push({ band, entries: [first, end], count, verdict, tokens, why, ...(from && { from }) })
}

/** Name in receipts for what the client sends itself. */
export const clientBand = 'client'

/** A run of messages that memory does not show, with the reason. */
type Absence = {
  readonly run: SequenceRange
  readonly verdict: Verdict
  readonly why: string
  /** Default `none`. */
  readonly band?: string
}

/** Collects the known absences; of overlapping ones the first counts. */
function findAbsences(
  { pressure, sentByClient = [] }: ContextCandidates,
  { derived, misses }: Allocation,
): readonly Absence[] {
  if (derived.length + pressure.dropped.length + misses.length + sentByClient.length === 0) return []
  const absences = sentByClient.map(
    (run): Absence => ({ run, band: clientBand, verdict: 'whole', why: 'sent by the client' }),
  )
  for (const { derived: entry } of derived)
    if (entry.kind === 'summary')
      absences.push({ run: entry.covers, verdict: 'covered', why: `covered by summary ${entry.id}` })
  for (const { derived: entry } of derived) {
    if (entry.kind !== 'item') continue
    for (const { message } of entry.sources) {
      const sequence = parseMessageId(message) ?? 0
      if (isInRanges(pressure.promoted, sequence))
        absences.push({ run: [sequence, sequence], verdict: 'covered', why: `shown as item ${entry.id}` })
    }
  }
  for (const run of pressure.dropped) absences.push({ run, verdict: 'dropped', why: 'dropped by the optimizer' })
  for (const { run, cause } of misses)
    if (run !== undefined) absences.push({ run, verdict: 'dropped', why: missReasons[cause] })
  return absences
}

/** Returns the reason for messages that were no candidates of any band. */
function unselectedReason({ bands }: ContextCandidates, { missedRecall, messages }: Allocation): string {
  const claims = bands.filter(({ band, limit }) => maxBandTokens(band, limit) > 0).map(({ band }) => band.claim)
  if (claims.some((claim) => 'recalled' in claim)) {
    if (!missedRecall) return notRelevant
    const hasRecalled = messages.some(({ band }) => band !== undefined && 'recalled' in band.claim)
    return hasRecalled ? lessRelevant : missReasons['budget-used']
  }
  if (claims.some((claim) => 'rest' in claim)) return missReasons['budget-used']
  return claims.some((claim) => 'tail' in claim) ? missReasons['tail-share'] : outsideBands
}

/** A shown piece, or a unit that cannot be sent. */
type Stop = MessagePiece | { readonly unit: Unit; readonly rendering?: undefined }

function addMessages(lines: DraftLine[], candidates: ContextCandidates, allocation: Allocation): void {
  const { head } = candidates
  const absences = findAbsences(candidates, allocation)
  const otherwise = unselectedReason(candidates, allocation)
  let next = head.firstMessage?.sequence ?? 1
  for (const stop of findStops(candidates, allocation.messages)) {
    addAbsent(lines, head, next, firstSequence(stop.unit) - 1, absences, otherwise)
    if (stop.rendering === undefined) addUnit(lines, stop.unit, 0, 'none', 'dropped', stop.unit.fault as string)
    else addShown(lines, stop)
    next = lastSequence(stop.unit) + 1
  }
  addAbsent(lines, head, next, head.lastSequence, absences, otherwise)
}

/** Returns the shown pieces and the units that cannot be sent, in conversation order. */
function findStops({ bands, sinceNewestTurn }: ContextCandidates, messages: readonly MessagePiece[]): readonly Stop[] {
  const unsendable: Unit[] = []
  for (const { units } of bands) for (const unit of units) if (unit.fault !== undefined) unsendable.push(unit)
  for (const unit of sinceNewestTurn) if (unit.fault !== undefined) unsendable.push(unit)
  if (unsendable.length === 0) return messages
  // Message by message, because one message of such a unit may have been recalled by itself.
  const faults = new Map<number, Stop>()
  for (const { fault, messages: parts } of unsendable)
    for (const message of parts) faults.set(message.sequence, { unit: { messages: [message], fault } })
  for (const { unit } of messages) for (const { sequence } of unit.messages) faults.delete(sequence)
  return [...messages, ...faults.values()].sort((a, b) => firstSequence(a.unit) - firstSequence(b.unit))
}

function addShown(lines: DraftLine[], { reason, band, rendering, renderedAs, unit }: MessagePiece): void {
  const name = band?.name ?? reason
  const why =
    reason !== 'band'
      ? pieceReasons[reason]
      : band === undefined
        ? ''
        : unit.basis
          ? basisReasons[unit.basis]
          : bandReason(band)
  const { shortened, tokens } = rendering
  if (shortened) addUnit(lines, unit, tokens, name, 'shortened', `${why}; ${unit.fault ?? shortenedBy[renderedAs]}`)
  else addUnit(lines, unit, tokens, name, 'whole', why)
}

/** Returns the reason for showing an entry that a band selected. */
function bandReason({ claim }: Band): string {
  if ('kind' in claim) return derivedReasons[claim.kind]
  if ('first' in claim) return 'start of the conversation'
  if ('recalled' in claim) return 'relevant to the question'
  return 'rest' in claim ? 'older message' : 'recent message'
}

function addUnit(
  lines: DraftLine[],
  { messages }: Unit,
  tokens: Tokens,
  band: string,
  verdict: Verdict,
  why: string,
): void {
  const [first, last] = [messages[0] as Message, messages.at(-1) as Message]
  addLine(lines, first.id, last.id, messages.length, tokens, band, verdict, why)
}

/** Adds the messages between two stops, split where the reason changes. */
function addAbsent(
  lines: DraftLine[],
  head: SessionHead,
  first: number,
  last: number,
  absences: readonly Absence[],
  otherwise: string,
): void {
  for (let at = first; at <= last; ) {
    let found: Absence | undefined
    let end = last
    // In order of precedence: the first absence that contains `at` counts, up to the start of one with higher
    // precedence.
    for (const absence of absences) {
      const [from, to] = absence.run
      if (from > end || to < at) continue
      if (from > at) end = from - 1
      else {
        found = absence
        end = Math.min(end, to)
        break
      }
    }
    const [from, to] = trimGaps(head.gaps, at, end)
    const count = countExisting(head.gaps, at, end)
    const verdict = found?.verdict ?? 'dropped'
    if (count > 0)
      addLine(
        lines,
        formatMessageId(from),
        formatMessageId(to),
        count,
        0,
        found?.band ?? 'none',
        verdict,
        found?.why ?? otherwise,
      )
    at = end + 1
  }
}

/** Shortens a run by the gaps at its ends. Gaps never touch, so there is at most one at each end. */
function trimGaps(gaps: readonly Gap[], first: number, last: number): Gap {
  let [from, to] = [first, last]
  for (const [start, end] of gaps) {
    if (start <= from && from <= end) from = end + 1
    if (start <= to && to <= end) to = start - 1
  }
  return [from, to]
}

function derivedLines(candidates: ContextCandidates, { derived: pieces, misses }: Allocation): DraftLine[] {
  const lines: DraftLine[] = []
  const shown = new Map(pieces.map((piece) => [piece.derived, piece]))
  const causes = new Map(misses.map((miss) => [miss.derived, miss.cause]))
  for (const entry of candidates.derived) {
    const piece = shown.get(entry)
    const origin = candidates.origins.get(entry)
    if (piece === undefined) {
      const why = omissionReason(entry, candidates, causes.get(entry))
      addLine(lines, entry.id, entry.id, 1, 0, 'none', 'dropped', why, origin)
    } else addDerived(lines, piece, origin)
  }
  return lines
}

function addDerived(lines: DraftLine[], { derived, band, rendering, renderedAs }: DerivedPiece, origin?: Origin): void {
  const why = origin === 'files' ? 'relevant file passage' : band === undefined ? '' : bandReason(band)
  const { shortened, tokens } = rendering
  const text = shortened ? `${why}; ${shortenedBy[renderedAs]}` : why
  const verdict = shortened ? 'shortened' : 'whole'
  addLine(lines, derived.id, derived.id, 1, tokens, band?.name ?? 'none', verdict, text, origin)
}

/** Returns why a derived entry is not shown. */
function omissionReason(
  entry: DerivedEntry,
  { bands, passages, scores }: ContextCandidates,
  cause: MissCause | undefined,
): string {
  if (entry.kind === 'fact' && entry.until !== undefined) return 'superseded by a newer fact'
  if (entry.kind === 'knowledge' && entry.pending) return 'waiting for approval'
  if (entry.kind === 'knowledge' && entry.archived) return 'archived after a long time without use'
  if (cause !== undefined) return missReasons[cause]
  const isCandidate = bands.some(({ derived }) => derived.includes(entry)) || passages?.derived.includes(entry)
  if (isCandidate) return missReasons['after-miss']
  const field = entry.kind === 'fact' ? entry.field : ''
  const isKindShown = bands.some(
    ({ band: { claim } }) => 'kind' in claim && claim.kind === entry.kind && !claim.except?.includes(field),
  )
  if (!isKindShown) return 'not used by this profile'
  if (entry.kind !== 'knowledge' || scores === undefined) return missReasons['band-limit']
  return scores.has(entry) ? lessRelevantEntry : notRelevant
}
