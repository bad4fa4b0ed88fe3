import type { Ledger, LedgerLine, Verdict } from '../../api/types.ts'

/** Sequence numbers of the messages of a line; undefined for other entries and for entries of other sessions. */
export function messageRange({ entries, from }: LedgerLine): readonly [first: number, last: number] | undefined {
  if (entries === null || from !== undefined) return undefined
  const [first, last] = entries.map(parseMessageId)
  return first === undefined || last === undefined ? undefined : [first, last]
}

export const parseMessageId = (id: string): number | undefined =>
  /^m[1-9]\d{0,14}$/.test(id) ? Number(id.slice(1)) : undefined

/** Finds the line of a message. */
export function lineLookup({ lines }: Ledger): (sequence: number) => LedgerLine | undefined {
  const ranges = lines.flatMap((line) => {
    const range = messageRange(line)
    return range === undefined ? [] : [{ first: range[0], last: range[1], line }]
  })
  ranges.sort((a, b) => a.first - b.first)
  return (sequence) => {
    let [low, high] = [0, ranges.length - 1]
    while (low <= high) {
      const middle = (low + high) >> 1
      const range = ranges[middle] as (typeof ranges)[number]
      if (sequence < range.first) high = middle - 1
      else if (sequence > range.last) low = middle + 1
      else return range.line
    }
    return undefined
  }
}

/** Lines that take part of the budget, with the bands in the order of their first line. */
export function shownLines({ lines }: Ledger): readonly LedgerLine[] {
  const bands = [...new Set(lines.map(({ band }) => band))]
  return lines.filter(({ tokens }) => tokens > 0).sort((a, b) => bands.indexOf(a.band) - bands.indexOf(b.band))
}

export const verdictTexts: Readonly<Record<Verdict, string>> = {
  whole: 'shown whole',
  shortened: 'shown shortened',
  covered: 'covered by a summary',
  dropped: 'left out',
}

export const verdicts: readonly Verdict[] = ['whole', 'shortened', 'covered', 'dropped']

/** Number of entries and tokens by verdict. */
export function countVerdicts({ lines }: Ledger): Readonly<Record<Verdict, { entries: number; tokens: number }>> {
  const counts = {
    whole: { entries: 0, tokens: 0 },
    shortened: { entries: 0, tokens: 0 },
    covered: { entries: 0, tokens: 0 },
    dropped: { entries: 0, tokens: 0 },
  }
  for (const { verdict, count, tokens } of lines) {
    counts[verdict].entries += count
    counts[verdict].tokens += tokens
  }
  return counts
}

/** Text of the entries of a line: `m12`, `m12–m15` or the id of another entry. */
export function formatEntries({ entries, count }: LedgerLine): string {
  if (entries === null) return 'headings and overhead'
  const [first, last] = entries
  return first === last || count <= 1 ? first : `${first}–${last}`
}

/** Reason of a line. The id of the running summary says less than its name. */
export const formatReason = ({ why }: LedgerLine): string =>
  why === 'covered by summary summary' ? 'covered by the running summary' : why

const origins = { scope: 'the tenant', person: 'the person', files: 'files of the tenant' } as const

/** Source of a line: the session itself, or memory outside of it. */
export const formatSource = ({ from }: LedgerLine): string => (from === undefined ? 'this session' : origins[from])

/** Messages that two contexts treat differently. */
export type VerdictChange = {
  readonly first: number
  readonly last: number
  /** Undefined if the message is not part of that context. */
  readonly was: Verdict | undefined
  readonly is: Verdict | undefined
}

/** Compares the treatment of the messages 1…`lastSequence` in two contexts. */
export function compareLedgers(was: Ledger, is: Ledger, lastSequence: number): readonly VerdictChange[] {
  const [before, after] = [lineLookup(was), lineLookup(is)]
  const changes: { first: number; last: number; was: Verdict | undefined; is: Verdict | undefined }[] = []
  for (let sequence = 1; sequence <= lastSequence; sequence++) {
    const [old, current] = [before(sequence)?.verdict, after(sequence)?.verdict]
    if (old === current) continue
    const last = changes.at(-1)
    if (last !== undefined && last.last === sequence - 1 && last.was === old && last.is === current)
      last.last = sequence
    else changes.push({ first: sequence, last: sequence, was: old, is: current })
  }
  return changes
}
