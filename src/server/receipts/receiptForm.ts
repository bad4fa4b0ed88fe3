import type { Ledger, Line, Origin } from '../../domain/ledger.ts'
import type { Receipt } from './receipts.ts'

/** A receipt in little room: lists in place of names, and nothing that its session, its time or its other numbers tell. */
export type Compact = readonly [
  /** What tells its id from others of the same session. */
  mark: string,
  request: string,
  response: string | null,
  sequence: number | null,
  protocol: string,
  model: string,
  upstream: string,
  how: string,
  tokens: readonly [
    shown: number,
    history: number,
    cacheable: number,
    prompt: number | null,
    completion: number | null,
    cached: number | null,
  ],
  cost: unknown,
  degraded: readonly string[],
  ledger: CompactLedger | null,
]

type CompactLedger = readonly [
  profile: string,
  tokenizer: string,
  counted: Ledger['counted'],
  numbers: readonly [
    budget: number,
    spent: number,
    history: number,
    due: 0 | 1,
    cacheableMessages: number,
    cacheableTokens: number,
  ],
  lines: readonly CompactLines[],
  knowledge: readonly string[],
  degraded: Ledger['degraded'],
]

/** Neighbouring lines that share everything but which entries they are about, and what those cost. */
type CompactLines = readonly [
  band: string,
  verdict: Line['verdict'],
  why: string,
  from: Origin | null,
  entries: readonly CompactRun[],
]
type CompactRun =
  | readonly [count: number, tokens: number]
  | readonly [id: string, tokens: number]
  | readonly [first: string, last: string, count: number, tokens: number]

/**
 * A receipt in two parts, each a list as JSON: what most receipts of a session have in common, and what is its own. Many
 * can be put together, with what they share told once, without reading any of them.
 */
export type Parted = { readonly shape: string; readonly own: string }

export type Shape = readonly [
  protocol: string,
  model: string,
  upstream: string,
  how: string,
  degraded: readonly string[],
  ledger: LedgerShape | null,
]
type LedgerShape = readonly [
  profile: string,
  tokenizer: string,
  counted: Ledger['counted'],
  groups: readonly Group[],
  knowledge: readonly string[],
  degraded: Ledger['degraded'],
]
type Group = readonly [band: string, verdict: Line['verdict'], why: string, from: Origin | null]
export type Own = readonly [
  mark: string,
  request: string,
  response: string | null,
  sequence: number | null,
  tokens: Compact[8],
  cost: unknown,
  ledger: readonly [numbers: CompactLedger[3], runs: readonly (readonly CompactRun[])[]] | null,
]

/** The one that was parted last: most have its shape, and share the text of that instead of each having the same one for itself. */
let last: { readonly form: Compact; readonly shape: string } | undefined

/** A receipt in its two parts. */
export function parted(form: Compact): Parted {
  const [mark, request, response, sequence, , , , , tokens, cost, , ledger] = form
  if (last === undefined || !isAlike(form, last.form)) last = { form, shape: JSON.stringify(shapeOf(form)) }
  const own = JSON.stringify([
    mark,
    request,
    response,
    sequence,
    tokens,
    cost,
    ledger && [ledger[3], ledger[4].map((lines) => lines[4])],
  ] satisfies Own)
  return { shape: last.shape, own }
}

/** Whether two receipts have the same shape; those with something out of the ordinary in them are not compared. */
function isAlike(form: Compact, other: Compact): boolean {
  const [, , , , protocol, model, upstream, how, , , degraded, ledger] = form
  if (
    protocol !== other[4] ||
    model !== other[5] ||
    upstream !== other[6] ||
    how !== other[7] ||
    degraded.length + other[10].length > 0
  )
    return false
  const before = other[11]
  return ledger === null || before === null ? ledger === before : isAlikeLedger(ledger, before)
}

function isAlikeLedger(
  [profile, tokenizer, counted, , lines, knowledge, degraded]: CompactLedger,
  other: CompactLedger,
): boolean {
  if (profile !== other[0] || tokenizer !== other[1] || counted !== other[2] || lines.length !== other[4].length)
    return false
  if (knowledge.length + other[5].length + degraded.length + other[6].length > 0) return false
  return lines.every((line, place) => isSameGroup(line, other[4][place] as CompactLines))
}

const isSameGroup = (lines: CompactLines, other: CompactLines): boolean =>
  lines[0] === other[0] && lines[1] === other[1] && lines[2] === other[2] && lines[3] === other[3]

const shapeOf = ([, , , , protocol, model, upstream, how, , , degraded, ledger]: Compact): Shape => {
  return [protocol, model, upstream, how, degraded, ledger && ledgerShapeOf(ledger)]
}

const ledgerShapeOf = ([profile, tokenizer, counted, , lines, knowledge, degraded]: CompactLedger): LedgerShape => [
  profile,
  tokenizer,
  counted,
  lines.map(([band, verdict, why, from]): Group => [band, verdict, why, from]),
  knowledge,
  degraded,
]

/** A receipt from its two parts. */
export function joined([protocol, model, upstream, how, degraded, ledger]: Shape, own: Own): Compact {
  const [mark, request, response, sequence, tokens, cost, counts] = own
  return [
    mark,
    request,
    response,
    sequence,
    protocol,
    model,
    upstream,
    how,
    tokens,
    cost,
    degraded,
    ledger && counts && ledgerOf(ledger, counts),
  ]
}

function ledgerOf(
  [profile, tokenizer, counted, groups, knowledge, degraded]: LedgerShape,
  [numbers, runs]: NonNullable<Own[6]>,
): CompactLedger {
  const lines = groups.map(
    ([band, verdict, why, from], place): CompactLines => [band, verdict, why, from, runs[place] ?? []],
  )
  return [profile, tokenizer, counted, numbers, lines, knowledge, degraded]
}

/** What of a receipt cannot be told from elsewhere. */
export const compacted = ({
  id,
  request,
  response,
  sequence,
  protocol,
  model,
  upstream,
  how,
  tokens,
  cost,
  degraded,
  ledger,
}: Receipt): Compact => [
  markOf(id),
  request,
  response,
  sequence,
  protocol,
  model,
  upstream,
  how,
  [tokens.shown, tokens.history, tokens.cacheable, tokens.prompt, tokens.completion, tokens.cached],
  cost,
  degraded,
  ledger && compactLedger(ledger),
]

/** The receipt again, of the session with this key. */
export function restored(form: Compact, key: string, at: number): Receipt {
  const [
    mark,
    request,
    response,
    sequence,
    protocol,
    model,
    upstream,
    how,
    [shown, history, cacheable, prompt, completion, cached],
    cost,
    degraded,
    ledger,
  ] = form
  const counted = {
    shown,
    history,
    saved: history - shown,
    cacheable,
    cacheableShare: shown === 0 ? 0 : cacheable / shown,
  }
  return {
    ...{ id: idOf(key, mark), key, at, request, response, sequence, protocol, model, upstream, how },
    tokens: { ...counted, prompt, completion, cached },
    ...{ cost, degraded, ledger: ledger && restoredLedger(ledger) },
  }
}

/** The id of the receipt of a session; the key in it tells where to look. With the letters that a key may hold, Base64 needs none that an address does not. */
export const idOf = (key: string, mark: string): string =>
  `rc_${btoa(key).slice(0, Math.ceil((key.length * 4) / 3))}_${mark}`

/** What follows on the key in the id of a receipt: sixteen digits. */
export const markOf = (id: string): string => id.slice(-16)

function compactLedger({
  profile,
  tokenizer,
  counted,
  budget,
  spent,
  history,
  due,
  cacheable,
  lines,
  knowledge,
  degraded,
}: Ledger): CompactLedger {
  const numbers = [budget, spent, history, due ? 1 : 0, cacheable.messages, cacheable.tokens] as const
  return [profile, tokenizer, counted, numbers, compactLines(lines), knowledge, degraded]
}

function restoredLedger([profile, tokenizer, counted, numbers, lines, knowledge, degraded]: CompactLedger): Ledger {
  const [budget, spent, history, due, messages, tokens] = numbers
  const whole = lines.flatMap(restoredLines)
  return {
    profile,
    tokenizer,
    counted,
    budget,
    spent,
    history,
    due: due === 1,
    cacheable: { messages, tokens },
    lines: whole,
    knowledge,
    degraded,
  }
}

function compactLines(lines: readonly Line[]): readonly CompactLines[] {
  const groups: CompactLines[] = []
  let runs: CompactRun[] = []
  for (const line of lines) {
    const { band, verdict, why, from = null } = line
    const last = groups.at(-1)
    if (last !== undefined && last[0] === band && last[1] === verdict && last[2] === why && last[3] === from)
      runs.push(runOf(line))
    else {
      runs = [runOf(line)]
      groups.push([band, verdict, why, from, runs])
    }
  }
  return groups
}

function runOf({ entries, count, tokens }: Line): CompactRun {
  if (entries === null) return [count, tokens]
  const [first, last] = entries
  return first === last && count === 1 ? [first, tokens] : [first, last, count, tokens]
}

const restoredLines = ([band, verdict, why, from, runs]: CompactLines): Line[] =>
  runs.map((run) => ({
    band,
    ...restoredRun(run),
    verdict,
    tokens: run.at(-1) as number,
    why,
    ...(from === null ? {} : { from }),
  }))

function restoredRun(run: CompactRun): Pick<Line, 'entries' | 'count'> {
  if (run.length === 4) return { entries: [run[0], run[1]], count: run[2] }
  const [what] = run
  return typeof what === 'number' ? { entries: null, count: what } : { entries: [what, what], count: 1 }
}
