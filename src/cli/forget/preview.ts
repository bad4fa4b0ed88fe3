import type { SearchIndex, Store } from '../../domain/ports.ts'
import type { ForgetTarget } from '../../memory/forgetTarget.ts'
import { type ForgetPreview as ForgetData, type PreviewCounts, rehearseForget } from '../../server/forget/preview.ts'
import { formatCount } from '../../text/formatCount.ts'
import type { Line } from '../terminal/output.ts'
import { fitLine } from '../terminal/table.ts'

/** Entries that forgetting a target would erase, as JSON and as lines. */
export type ForgetPreview = {
  readonly isEmpty: boolean
  readonly value: Pick<ForgetData, 'counts' | 'sessions'> & { readonly wouldForget: ForgetTarget }
  readonly lines: readonly Line[]
}

const countNames = {
  sessions: ['session'],
  messages: ['message'],
  facts: ['fact'],
  summaries: ['summary', 'summaries'],
  knowledge: ['piece of knowledge', 'pieces of knowledge'],
  files: ['file'],
  branches: ['branch', 'branches'],
  entities: ['graph entity', 'graph entities'],
  rows: ['table row'],
  other: ['other entry', 'other entries'],
} as const satisfies Readonly<Record<keyof PreviewCounts, readonly [string, string?]>>

/** Sessions that are shown. */
const maxShownSessions = 20

/** Finds everything that forgetting a target would erase, by rehearsing it. Nothing is changed. */
export async function previewForget(store: Store & SearchIndex, target: ForgetTarget): Promise<ForgetPreview> {
  const { counts, sessions, others } = await rehearseForget(store, target)
  const isEmpty = Object.values(counts).every((count) => count === 0)
  const lines = isEmpty ? ['Nothing to delete.'] : formatPreview(sessions, others, counts)
  return { isEmpty, value: { wouldForget: target, counts, sessions }, lines }
}

function formatPreview(sessions: ForgetData['sessions'], others: readonly string[], counts: PreviewCounts): Line[] {
  const more = (shown: number, total: number, one: string): string[] =>
    total > shown ? [`… and ${formatCount(total - shown, one)} more`] : []
  return [
    { text: 'Would delete for good:', style: 'bold' },
    ...sessions
      .slice(0, maxShownSessions)
      .flatMap(({ key, messages, facts, summaries, first, derived }) => [
        `  ${key}: ${formatCounts({ messages, facts, summaries })}`,
        ...first.map(({ id, text }) => fitLine(`${id} ${text}`, 4)),
        ...more(first.length, messages, 'message').map((text) => `    ${text}`),
        ...derived.map(({ id, text }) => fitLine(`${id} ${text}`, 4)),
      ]),
    ...more(maxShownSessions, sessions.length, 'session').map((text) => `  ${text}`),
    ...others.slice(0, maxShownSessions).map((text) => fitLine(text, 2)),
    ...more(maxShownSessions, others.length, 'entry').map((text) => `  ${text}`),
    `In total: ${formatCounts(counts)}.`,
  ]
}

/** Formats the counts that are not zero: `1 session, 4 messages, 2 facts`. */
function formatCounts(counts: Partial<PreviewCounts>): string {
  const parts = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => {
      const [one, many] = countNames[name as keyof PreviewCounts] as readonly [string, string?]
      return formatCount(count, one, many)
    })
  return parts.length === 0 ? 'no messages' : parts.join(', ')
}
