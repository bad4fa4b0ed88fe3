import { type Derived, type Message, messageId, type Run, sequenceOf, type Tokens } from '../domain/entry.ts'
import type { Line, Origin, Verdict } from '../domain/ledger.ts'
import { countBetween, type Gap, type Head, isWithin } from '../domain/session.ts'
import type { Gathered } from './gather.ts'
import type { Fitted, Said, Told } from './piece.ts'
import { firstOf, lastOf, type Unit } from './unit.ts'

/** One line for each run of entries with the same fate: every entry of the session once, and what the words around them cost. */
export function receipt(gathered: Gathered, fitted: Fitted): Line[] {
  const lines: Draft[] = []
  const { fees: tokens } = fitted
  if (tokens > 0)
    lines.push({
      band: 'frame',
      entries: null,
      count: 0,
      verdict: 'whole',
      tokens,
      why: 'headings and what the provider adds',
    })
  addMessages(lines, gathered, fitted)
  return gathered.derived.length === 0 ? lines : [...lines, ...derivedLines(gathered, fitted.told)]
}

/** A line that may still grow. */
type Draft = Omit<Line, 'entries' | 'count' | 'tokens'> & {
  readonly entries: [first: string, last: string] | null
  count: number
  tokens: Tokens
}

/** Neighbouring entries with the same fate become one line. */
function add(
  lines: Draft[],
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
  // passages of files are told one by one: what lies between two of them was not found
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

/** Why a run of messages is not shown itself. */
type Absence = { readonly run: Run; readonly verdict: 'covered' | 'dropped'; readonly why: string }

function absences({ pressure }: Gathered, told: readonly Told[]): Absence[] {
  if (told.length + pressure.dropped.length === 0) return []
  const covers = told.flatMap(({ derived }): Absence[] =>
    derived.kind === 'summary' ? [{ run: derived.covers, verdict: 'covered', why: 'summary' }] : [],
  )
  const items = told.flatMap(({ derived }) => (derived.kind === 'item' ? derived.sources : []))
  const promoted = items.flatMap(({ message }): Absence[] => {
    const sequence = sequenceOf(message) ?? 0
    return isWithin(pressure.promoted, sequence)
      ? [{ run: [sequence, sequence], verdict: 'covered', why: 'long-term' }]
      : []
  })
  return [
    ...covers,
    ...promoted,
    ...pressure.dropped.map((run): Absence => ({ run, verdict: 'dropped', why: 'triage' })),
  ]
}

type Stop = Said | { readonly unit: Unit; readonly form?: undefined }

function addMessages(lines: Draft[], gathered: Gathered, { said, told }: Fitted): void {
  const { head } = gathered
  const absent = absences(gathered, told)
  let next = head.first?.sequence ?? 1
  for (const stop of stopsIn(gathered, said)) {
    addAbsent(lines, head, next, firstOf(stop.unit) - 1, absent)
    if (stop.form === undefined) addUnit(lines, stop.unit, 0, 'none', 'dropped', stop.unit.fault as string)
    else addShown(lines, stop)
    next = lastOf(stop.unit) + 1
  }
  addAbsent(lines, head, next, head.last, absent)
}

/** What is shown, and what is passed over because it is broken, in conversation order. */
function stopsIn({ wishes, since }: Gathered, said: readonly Said[]): readonly Stop[] {
  const broken: Unit[] = []
  for (const { units } of wishes) for (const unit of units) if (unit.fault !== undefined) broken.push(unit)
  for (const unit of since) if (unit.fault !== undefined) broken.push(unit)
  if (broken.length === 0) return said
  // message by message: one of a broken group may have been recalled by itself
  const faults = new Map<number, Stop>()
  for (const { fault, messages } of broken)
    for (const message of messages) faults.set(message.sequence, { unit: { messages: [message], fault } })
  for (const { unit } of said) for (const { sequence } of unit.messages) faults.delete(sequence)
  return [...said, ...faults.values()].sort((a, b) => firstOf(a.unit) - firstOf(b.unit))
}

const reasons = { newest: 'the newest turn', opening: 'the session opens with it', since: 'said since the newest turn' }

function addShown(lines: Draft[], { part, band, form, rung, unit }: Said): void {
  const name = band?.name
  const why = part === 'band' ? (name ?? '') : reasons[part]
  if (form.shortened) addUnit(lines, unit, form.tokens, name ?? part, 'shortened', `${why}; ${unit.fault ?? rung}`)
  else addUnit(lines, unit, form.tokens, name ?? part, 'whole', why)
}

function addUnit(
  lines: Draft[],
  { messages }: Unit,
  tokens: Tokens,
  band: string,
  verdict: Verdict,
  why: string,
): void {
  add(lines, (messages[0] as Message).id, (messages.at(-1) as Message).id, messages.length, tokens, band, verdict, why)
}

/** The messages between two that are shown: stood for by something else, or left out. */
function addAbsent(lines: Draft[], head: Head, first: number, last: number, known: readonly Absence[]): void {
  for (let at = first; at <= last; ) {
    const cover = known.find(({ run: [from, to] }) => from <= at && at <= to)
    const ahead = known.filter(({ run: [from] }) => from > at).map(({ run: [from] }) => from - 1)
    const end = Math.min(last, cover === undefined ? Math.min(last, ...ahead) : cover.run[1])
    const [from, to] = trimmed(head.gaps, at, end)
    const count = countBetween(head.gaps, at, end)
    if (count > 0)
      add(lines, messageId(from), messageId(to), count, 0, 'none', cover?.verdict ?? 'dropped', cover?.why ?? 'no room')
    at = end + 1
  }
}

/** The run without the gaps at its ends. */
function trimmed(gaps: readonly Gap[], first: number, last: number): Gap {
  let [from, to] = [first, last]
  // no gap touches another: at each end there is one at most
  for (const [start, end] of gaps) {
    if (start <= from && from <= end) from = end + 1
    if (start <= to && to <= end) to = start - 1
  }
  return [from, to]
}

function derivedLines({ derived, origins }: Gathered, told: readonly Told[]): Draft[] {
  const lines: Draft[] = []
  const shown = new Map(told.map((piece) => [piece.derived, piece]))
  for (const entry of derived) {
    const { band, form } = shown.get(entry) ?? {}
    const verdict = form === undefined ? 'dropped' : form.shortened ? 'shortened' : 'whole'
    const why = form === undefined ? reasonOf(entry) : (band?.name ?? '')
    add(lines, entry.id, entry.id, 1, form?.tokens ?? 0, band?.name ?? 'none', verdict, why, origins.get(entry))
  }
  return lines
}

function reasonOf(entry: Derived): string {
  if (entry.kind === 'fact' && entry.until !== undefined) return 'superseded'
  return entry.kind === 'knowledge' && entry.pending ? 'waits for approval' : 'no room'
}
