import { type Derived, type Message, messageId, type Run, sequenceOf, type Tokens } from '../domain/entry.ts'
import type { Line, Verdict } from '../domain/ledger.ts'
import { countBetween, type Gap, type Head, isWithin } from '../domain/session.ts'
import type { Fitted, Piece } from './fit.ts'
import type { Gathered } from './gather.ts'
import { firstOf, lastOf, type Unit } from './unit.ts'

/** One line for each run of entries with the same fate: every entry of the session once, and what the words around them cost. */
export function receipt(gathered: Gathered, fitted: Fitted): Line[] {
  const lines = [...joined(messageLines(gathered, fitted.pieces)), ...joined(derivedLines(gathered.derived, fitted.pieces))]
  if (fitted.fees > 0)
    lines.unshift({ band: 'frame', entries: null, count: 0, verdict: 'whole', tokens: fitted.fees, why: 'headings and what the provider adds' })
  return lines
}

/** Why a run of messages is not shown itself. */
type Absence = { readonly run: Run; readonly verdict: 'covered' | 'dropped'; readonly why: string }

function absences({ pressure }: Gathered, pieces: readonly Piece[]): Absence[] {
  const covers = pieces.flatMap((piece): Absence[] =>
    piece.derived?.kind === 'summary' ? [{ run: piece.derived.covers, verdict: 'covered', why: 'summary' }] : [],
  )
  const items = pieces.flatMap(({ derived }) => (derived?.kind === 'item' ? derived.sources : []))
  const promoted = items.flatMap(({ message }): Absence[] => {
    const sequence = sequenceOf(message) ?? 0
    return isWithin(pressure.promoted, sequence) ? [{ run: [sequence, sequence], verdict: 'covered', why: 'long-term' }] : []
  })
  return [...covers, ...promoted, ...pressure.dropped.map((run): Absence => ({ run, verdict: 'dropped', why: 'triage' }))]
}

function messageLines(gathered: Gathered, pieces: readonly Piece[]): Line[] {
  const { head, wishes, since } = gathered
  const shown = pieces.filter((piece) => piece.unit !== undefined).sort((a, b) => firstOf(a.unit as Unit) - firstOf(b.unit as Unit))
  // message by message: one of a broken group may have been recalled by itself
  const faults = new Map<number, Unit>()
  for (const { fault, messages } of [...wishes.flatMap((wish) => wish.units), ...since])
    if (fault !== undefined) for (const message of messages) faults.set(message.sequence, { messages: [message], fault })
  for (const piece of shown) for (const message of piece.unit?.messages ?? []) faults.delete(message.sequence)
  const covers = absences(gathered, pieces)
  const lines: Line[] = []
  let next = head.first?.sequence ?? 1
  const stops = [
    ...shown.map((piece) => ({ unit: piece.unit as Unit, line: shownLine(piece) })),
    ...[...faults.values()].map((unit) => ({ unit, line: faultLine(unit) })),
  ]
  for (const { unit, line } of stops.sort((a, b) => firstOf(a.unit) - firstOf(b.unit))) {
    lines.push(...absent(head, next, firstOf(unit) - 1, covers), line)
    next = lastOf(unit) + 1
  }
  return [...lines, ...absent(head, next, head.last, covers)]
}

function shownLine({ part, band, unit, form, rung }: Piece): Line {
  const why = { newest: 'the newest turn', opening: 'the session opens with it', since: 'said since the newest turn', band: band?.name ?? '' }[part]
  const fault = unit?.fault === undefined ? rung : unit.fault
  return line(unit as Unit, band?.name ?? part, form.shortened ? 'shortened' : 'whole', form.tokens, form.shortened ? `${why}; ${fault}` : why)
}

const faultLine = (unit: Unit): Line => line(unit, 'none', 'dropped', 0, unit.fault as string)

const line = (unit: Unit, band: string, verdict: Verdict, tokens: Tokens, why: string): Line => ({
  band,
  entries: [(unit.messages[0] as Message).id, (unit.messages.at(-1) as Message).id],
  count: unit.messages.length,
  verdict,
  tokens,
  why,
})

/** The messages between two that are shown: stood for by something else, or left out. */
function absent(head: Head, first: number, last: number, known: readonly Absence[]): Line[] {
  const lines: Line[] = []
  for (let at = first; at <= last; ) {
    const cover = known.find(({ run: [from, to] }) => from <= at && at <= to)
    const ahead = known.filter(({ run: [from] }) => from > at).map(({ run: [from] }) => from - 1)
    const end = Math.min(last, cover === undefined ? Math.min(last, ...ahead) : cover.run[1])
    const run = trimmed(head.gaps, at, end)
    const count = countBetween(head.gaps, at, end)
    if (count > 0)
      lines.push({
        band: 'none',
        entries: [messageId(run[0]), messageId(run[1])],
        count,
        verdict: cover?.verdict ?? 'dropped',
        tokens: 0,
        why: cover?.why ?? 'no room',
      })
    at = end + 1
  }
  return lines
}

/** The run without the gaps at its ends. */
function trimmed(gaps: readonly Gap[], first: number, last: number): Gap {
  let [from, to] = [first, last]
  for (const [start, end] of gaps) if (start <= from && from <= end) from = end + 1
  for (const [start, end] of [...gaps].reverse()) if (start <= to && to <= end) to = start - 1
  return [from, to]
}

function derivedLines(derived: readonly Derived[], pieces: readonly Piece[]): Line[] {
  const shown = new Map(pieces.flatMap((piece) => (piece.derived === undefined ? [] : [[piece.derived, piece] as const])))
  return derived.map((entry) => {
    const piece = shown.get(entry)
    const ids = [entry.id, entry.id] as const
    if (piece === undefined)
      return {
        band: 'none',
        entries: ids,
        count: 1,
        verdict: 'dropped',
        tokens: 0,
        why: reasonOf(entry),
      }
    return {
      band: piece.band?.name ?? 'none',
      entries: ids,
      count: 1,
      verdict: piece.form.shortened ? 'shortened' : 'whole',
      tokens: piece.form.tokens,
      why: piece.band?.name ?? '',
    }
  })
}

function reasonOf(entry: Derived): string {
  if (entry.kind === 'fact' && entry.until !== undefined) return 'superseded'
  return entry.kind === 'knowledge' && entry.pending === true ? 'waits for approval' : 'no room'
}

/** Neighbouring lines with the same fate become one; a run holds messages or derived entries, never both. */
function joined(lines: readonly Line[]): Line[] {
  const result: Line[] = []
  for (const next of lines) {
    const last = result.at(-1)
    if (last?.entries != null && next.entries !== null && last.band === next.band && last.verdict === next.verdict && last.why === next.why) {
      result[result.length - 1] = { ...last, entries: [last.entries[0], next.entries[1]], count: last.count + next.count, tokens: last.tokens + next.tokens }
    } else result.push(next)
  }
  return result
}
