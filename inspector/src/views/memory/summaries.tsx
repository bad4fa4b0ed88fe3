import { apiPath, request } from '../../api/client.ts'
import type { Page, Summary } from '../../api/types.ts'
import { Badge, Section } from '../../components/layout.tsx'
import { MessageText } from '../../components/messageText.tsx'
import { EmptyState, ResourceView } from '../../components/states.tsx'
import { formatCount, formatTime } from '../../format.ts'
import { formatRoute } from '../../router.ts'
import { useResource } from '../../useResource.ts'

const tiers = [
  ['session', 'Whole sessions'],
  ['progressive', 'Running summary'],
  ['hour', 'By the hour'],
  ['batch', 'Batches'],
] as const

/** Summaries of a session by tier, each with the messages whose details it leaves out. */
export function SummariesTab({ sessionKey }: { sessionKey: string }) {
  const summaries = useResource(
    (signal) =>
      request<Page<Summary>>(apiPath(['api', 'sessions', sessionKey, 'summaries'], { limit: 500 }), { signal }),
    [sessionKey],
    (event) => event.key === sessionKey,
  )
  return (
    <ResourceView resource={summaries}>
      {({ items }) => {
        if (items.length === 0)
          return (
            <EmptyState title="No summaries yet.">
              Upkeep writes one when the history outgrows its share of the budget.
            </EmptyState>
          )
        return tiers
          .map(([tier, title]) => [title, items.filter((summary) => summary.tier === tier)] as const)
          .filter(([, found]) => found.length > 0)
          .map(([title, found]) => (
            <Section key={title} title={title} note={formatCount(found.length, 'summary', 'summaries')}>
              <ul class="results">
                {found.map((summary) => (
                  <li key={summary.id}>
                    <SummaryItem sessionKey={sessionKey} summary={summary} />
                  </li>
                ))}
              </ul>
            </Section>
          ))
      }}
    </ResourceView>
  )
}

const SummaryItem = ({ sessionKey, summary }: { sessionKey: string; summary: Summary }) => (
  <article class="result stack">
    <header class="row muted">
      <a class="mono" href={formatRoute('conversation', sessionKey, { message: `m${summary.covers[0]}` })}>
        m{summary.covers[0]}–m{summary.covers[1]}
      </a>
      <Badge>{summary.by}</Badge>
      <span>version {summary.version}</span>
      <time dateTime={new Date(summary.at).toISOString()}>{formatTime(summary.at)}</time>
    </header>
    <div class="prose">
      <MessageText text={summary.text} />
    </div>
    {(summary.lossyRanges ?? []).length > 0 && (
      <p class="hint">
        Leaves out a name, number or condition of{' '}
        {summary.lossyRanges.map(([first, last], index) => (
          <span key={first}>
            {index > 0 && ', '}
            <a class="mono" href={formatRoute('conversation', sessionKey, { message: `m${first}` })}>
              {first === last ? `m${first}` : `m${first}–m${last}`}
            </a>
          </span>
        ))}
      </p>
    )}
  </article>
)
