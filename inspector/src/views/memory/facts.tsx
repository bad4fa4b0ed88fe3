import { apiPath, request } from '../../api/client.ts'
import type { Fact, Page } from '../../api/types.ts'
import { Badge, Section } from '../../components/layout.tsx'
import { EmptyState, ResourceView } from '../../components/states.tsx'
import { capitalise, formatCount, formatDate, formatTime, formatValue } from '../../format.ts'
import { useResource } from '../../useResource.ts'
import { SourceLinks } from './sources.tsx'

/** Facts of a session by field, each with its sources and the values that it replaced. */
export function FactsTab({ sessionKey }: { sessionKey: string }) {
  const facts = useResource(
    (signal) =>
      request<Page<Fact>>(apiPath(['api', 'sessions', sessionKey, 'facts'], { history: true, limit: 500 }), { signal }),
    [sessionKey],
    (event) => event.key === sessionKey,
  )
  return (
    <ResourceView resource={facts}>
      {({ items }) => {
        if (items.length === 0)
          return (
            <EmptyState title="No facts yet.">Upkeep extracts them from what users say, after the reply.</EmptyState>
          )
        return [...groupBy(items, ({ field }) => field)].sort(compareFields).map(([field, group]) => {
          const histories = toHistories(group)
          const areNames = histories.every(([newest, ...earlier]) => newest?.key === '' && earlier.length === 0)
          return (
            <Section
              key={field}
              title={formatField(field)}
              note={formatNote(histories.length, group.length - histories.length)}
            >
              <ul class={areNames ? 'names' : 'results'}>
                {histories.map((history) => (
                  <FactHistory key={history[0]?.id} sessionKey={sessionKey} history={history} />
                ))}
              </ul>
            </Section>
          )
        })
      }}
    </ResourceView>
  )
}

/** Names of people and places come last: there are many of them. */
const compareFields = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number =>
  Number(a === 'entities') - Number(b === 'entities')

const formatNote = (facts: number, earlier: number): string =>
  formatCount(facts, 'fact') + (earlier === 0 ? '' : `, ${formatCount(earlier, 'earlier value')}`)

const formatField = (field: string): string => capitalise(field.replaceAll('_', ' '))

function groupBy<T>(items: readonly T[], nameOf: (item: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) groups.set(nameOf(item), [...(groups.get(nameOf(item)) ?? []), item])
  return groups
}

/** Chains of facts that replaced each other, newest first. */
function toHistories(facts: readonly Fact[]): readonly (readonly Fact[])[] {
  const byId = new Map(facts.map((fact) => [fact.id, fact]))
  const replaced = new Set(facts.flatMap(({ supersedes }) => supersedes ?? []))
  return facts
    .filter(({ id }) => !replaced.has(id))
    .map((newest) => {
      const chain = [newest]
      for (let fact = byId.get(newest.supersedes ?? ''); fact !== undefined && !chain.includes(fact); )
        fact = byId.get(chain[chain.push(fact) - 1]?.supersedes ?? '')
      return chain
    })
}

function FactHistory({ sessionKey, history }: { sessionKey: string; history: readonly Fact[] }) {
  const [current, ...earlier] = history
  if (current === undefined) return null
  return (
    <li class="fact">
      {current.key !== '' && <span class="fact-name">{current.key.replaceAll(/[_.]/g, ' ')}</span>}
      <div class={`fact-value ${earlier.length > 0 ? 'with-history' : ''}`}>
        <span class="message-text">{formatValue(current.value)}</span>
        {current.until !== undefined && <Badge tone="warning">replaced</Badge>}
        {earlier.length > 0 && (
          <ol class="timeline" aria-label={`History of ${current.key}`}>
            {history.map((fact) => (
              <FactValue key={fact.id} sessionKey={sessionKey} fact={fact} />
            ))}
          </ol>
        )}
      </div>
      {earlier.length === 0 && <SourceLinks sessionKey={sessionKey} sources={current.sources} />}
    </li>
  )
}

/** A value with the period in which it held. */
const FactValue = ({ sessionKey, fact: { at, until, value, sources } }: { sessionKey: string; fact: Fact }) => (
  <li class={until === undefined ? 'current' : 'replaced'}>
    <span class="period">
      <time dateTime={new Date(at).toISOString()} title={formatTime(at)}>
        {formatDate(at)}
      </time>
      {' – '}
      {until === undefined ? (
        'now'
      ) : (
        <time dateTime={new Date(until).toISOString()} title={formatTime(until)}>
          {formatDate(until)}
        </time>
      )}
    </span>
    <span class="message-text">{formatValue(value)}</span>
    <SourceLinks sessionKey={sessionKey} sources={sources} />
  </li>
)
