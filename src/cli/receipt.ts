import type { Ledger } from '../domain/ledger.ts'
import { aligned } from './say.ts'

const titles = ['band', 'entries', 'count', 'verdict', 'tokens', 'why']
/** Columns of numbers stand flush right. */
const numbers: ReadonlySet<number> = new Set([2, 4])

/** The receipt of a turn as a small table. */
export function receiptTable({ lines, spent, budget, cacheable }: Ledger): string {
  const rows = lines.map(({ band, entries, count, verdict, tokens, why }) => [
    band,
    span(entries),
    `${count}`,
    verdict,
    `${tokens}`,
    why,
  ])
  return [
    ...aligned([titles, ...rows], numbers),
    `${spent} of ${budget} tokens, ${cacheable.tokens} of them cacheable`,
  ].join('\n')
}

function span(entries: Ledger['lines'][number]['entries']): string {
  if (entries === null) return '-'
  return entries[0] === entries[1] ? entries[0] : `${entries[0]}-${entries[1]}`
}
