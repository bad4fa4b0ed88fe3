import type { Ledger } from '../../domain/ledger.ts'
import type { Line } from './output.ts'
import { formatTable } from './table.ts'

const columns = ['band', 'entries', 'count', 'verdict', 'tokens', 'why']
const numeric: ReadonlySet<number> = new Set([2, 4])

/** Formats a receipt as a table and its sum. */
export function formatReceipt(ledger: Ledger): Line[] {
  const rows = ledger.lines.map(({ band, entries, count, verdict, tokens, why }) => [
    band,
    formatEntries(entries),
    `${count}`,
    verdict,
    `${tokens}`,
    why,
  ])
  return [
    ...formatTable([columns, ...rows], { header: true, numeric }),
    formatSpending(ledger),
    ...ledger.degraded.map(({ message }) => message),
  ]
}

/** Formats the tokens of a context: `74 of 16000 tokens, 61 cacheable`. */
export const formatSpending = ({ spent, budget, cacheable }: Ledger): string =>
  `${spent} of ${budget} tokens, ${cacheable.tokens} cacheable`

function formatEntries(entries: Ledger['lines'][number]['entries']): string {
  if (entries === null) return '-'
  return entries[0] === entries[1] ? entries[0] : `${entries[0]}-${entries[1]}`
}
