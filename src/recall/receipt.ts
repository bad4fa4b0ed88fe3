import { type Derived, type Message, messageId, type Run, sequenceOf, type Tokens } from '../domain/entry.ts'
import type { Line, Verdict } from '../domain/ledger.ts'
import { countBetween, type Gap, type Head, isWithin } from '../domain/session.ts'
import type { Fitted, Piece } from './fit.ts'
import type { Gathered } from './gather.ts'
import { firstOf, lastOf, type Unit } from './unit.ts'

/** One line for each run of entries with the same fate: every entry of the session once, and what the words around them cost. */
export function receipt(gathered: Gathered, fitted: Fitted): Line[] {
  const lines = new Lines()
  if (fitted.fees > 0) lines.add({ band: 'frame', entries: null, count: 0, verdict: 'whole', tokens: fitted.fees, why: 'headings and what the provider adds' })
  addMessages(lines, gathered, fitted.pieces)
  lines.close()
  addDerived(lines, gathered, fitted.pieces)
  return lines.all
}

/** A line that may still grow. */
type Draft = Omit<Line, 'entries' | 'count' | 'tokens'> & { readonly entries: [first: string, last: string] | null; count: number; tokens: Tokens }

/** Neighbouring lines with the same fate become one; a run holds messages or derived entries, never both. */
class Lines {
  readonly all: Draft[] = []
  private last: Draft | undefined

  add(next: Draft): void {
    const { last } = this
    if (
      last?.entries != null &&
      next.entries !== null &&
      last.band === next.band &&
      last.verdict === next.verdict &&
      last.why === next.why &&
      isOneRun(last, next)
    ) {
      last.entries[1] = next.entries[1]
      last.count += next.count
      last.tokens += next.tokens
      return
    }
    this.all.push(next)
    this.last = next
  }

  /** What comes next is of another kind. */
  close(): void {
    this.last = undefined
  }
}

/** Passages of files are told one by one: what lies between two of them was not found. */
const isOneRun = (last: Draft, next: Draft): boolean => last.from === next.from && next.from !== 'files'

/** Why a run of messages is not shown itself. */
type Absence = { readonly run: Run; readonly verdict: 'covered' | 'dropped'; readonly why: string }

function absences({ pressure }: Gathered, pieces: readonly Piece[]): Absence[] {
  const derived = pieces.flatMap((piece) => piece.derived ?? [])
  const covers = derived.flatMap((entry): Absence[] => (entry.kind === 'summary' ? [{ run: entry.covers, verdict: 'covered', why: 'summary' }] : []))
  const items = derived.flatMap((entry) => (entry.kind === 'item' ? entry.sources : []))
  const promoted = items.flatMap(({ message }): Absence[] => {
    const sequence = sequenceOf(message) ?? 0
    return isWithin(pressure.promoted, sequence) ? [{ run: [sequence, sequence], verdict: 'covered', why: 'long-term' }] : []
  })
  return [...covers, ...promoted, ...pressure.dropped.map((run): Absence => ({ run, verdict: 'dropped', why: 'triage' }))]
}

type Stop = { readonly unit: Unit; readonly piece?: Piece }

function addMessages(lines: Lines, gathered: Gathered, pieces: readonly Piece[]): void {
  const { head } = gathered
  const covers = absences(gathered, pieces)
  let next = head.first?.sequence ?? 1
  for (const { unit, piece } of stopsIn(gathered, pieces)) {
    addAbsent(lines, head, next, firstOf(unit) - 1, covers)
    lines.add(piece === undefined ? faultLine(unit) : shownLine(piece, unit))
    next = lastOf(unit) + 1
  }
  addAbsent(lines, head, next, head.last, covers)
}

/** What is shown, and what is passed over because it is broken, in conversation order. */
function stopsIn({ wishes, since }: Gathered, pieces: readonly Piece[]): Stop[] {
  const stops: Stop[] = []
  for (const piece of pieces) if (piece.unit !== undefined) stops.push({ unit: piece.unit, piece })
  // message by message: one of a broken group may have been recalled by itself
  const faults = new Map<number, Stop>()
  const note = ({ fault, messages }: Unit): void => {
    if (fault !== undefined) for (const message of messages) faults.set(message.sequence, { unit: { messages: [message], fault } })
  }
  for (const wish of wishes) wish.units.forEach(note)
  since.forEach(note)
  if (faults.size > 0) for (const { unit } of stops) for (const message of unit.messages) faults.delete(message.sequence)
  return [...stops, ...faults.values()].sort((a, b) => firstOf(a.unit) - firstOf(b.unit))
}

const reasons = { newest: 'the newest turn', opening: 'the session opens with it', since: 'said since the newest turn' }

function shownLine({ part, band, form, rung }: Piece, unit: Unit): Draft {
  const why = part === 'band' ? (band?.name ?? '') : reasons[part]
  const fault = unit.fault === undefined ? rung : unit.fault
  return line(unit, band?.name ?? part, form.shortened ? 'shortened' : 'whole', form.tokens, form.shortened ? `${why}; ${fault}` : why)
}

const faultLine = (unit: Unit): Draft => line(unit, 'none', 'dropped', 0, unit.fault as string)

const line = (unit: Unit, band: string, verdict: Verdict, tokens: Tokens, why: string): Draft => ({
  band,
  entries: [(unit.messages[0] as Message).id, (unit.messages.at(-1) as Message).id],
  count: unit.messages.length,
  verdict,
  tokens,
  why,
})

/** The messages between two that are shown: stood for by something else, or left out. */
function addAbsent(lines: Lines, head: Head, first: number, last: number, known: readonly Absence[]): void {
  for (let at = first; at <= last; ) {
    const cover = known.find(({ run: [from, to] }) => from <= at && at <= to)
    const ahead = known.filter(({ run: [from] }) => from > at).map(({ run: [from] }) => from - 1)
    const end = Math.min(last, cover === undefined ? Math.min(last, ...ahead) : cover.run[1])
    const run = trimmed(head.gaps, at, end)
    const count = countBetween(head.gaps, at, end)
    if (count > 0)
      lines.add({
        band: 'none',
        entries: [messageId(run[0]), messageId(run[1])],
        count,
        verdict: cover?.verdict ?? 'dropped',
        tokens: 0,
        why: cover?.why ?? 'no room',
      })
    at = end + 1
  }
}

/** The run without the gaps at its ends. */
function trimmed(gaps: readonly Gap[], first: number, last: number): Gap {
  let [from, to] = [first, last]
  for (const [start, end] of gaps) if (start <= from && from <= end) from = end + 1
  for (const [start, end] of [...gaps].reverse()) if (start <= to && to <= end) to = start - 1
  return [from, to]
}

function addDerived(lines: Lines, { derived, origins }: Gathered, pieces: readonly Piece[]): void {
  const shown = new Map<Derived, Piece>()
  for (const piece of pieces) if (piece.derived !== undefined) shown.set(piece.derived, piece)
  for (const entry of derived) {
    const { band, form } = shown.get(entry) ?? {}
    const verdict = form === undefined ? 'dropped' : form.shortened ? 'shortened' : 'whole'
    const why = form === undefined ? reasonOf(entry) : (band?.name ?? '')
    const from = origins.get(entry)
    const line: Draft = { band: band?.name ?? 'none', entries: [entry.id, entry.id], count: 1, verdict, tokens: form?.tokens ?? 0, why }
    lines.add(from === undefined ? line : { ...line, from })
  }
}

function reasonOf(entry: Derived): string {
  if (entry.kind === 'fact' && entry.until !== undefined) return 'superseded'
  return entry.kind === 'knowledge' && entry.pending === true ? 'waits for approval' : 'no room'
}
