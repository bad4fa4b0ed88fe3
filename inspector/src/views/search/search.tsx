import '../../styles/memory.css'
import { apiPath, request } from '../../api/client.ts'
import type { Page, SearchHit } from '../../api/types.ts'
import { SelectField, TextField } from '../../components/fields.tsx'
import { Badge, View } from '../../components/layout.tsx'
import { ScopeField, useScope } from '../../components/scopeField.tsx'
import { EmptyState, ResourceView } from '../../components/states.tsx'
import { TenantLinks } from '../../components/tenantLinks.tsx'
import { formatCount, formatTime, formatValue } from '../../format.ts'
import { formatRoute, type Route, replaceSettings, replaceSubject } from '../../router.ts'
import { useDelayed, useResource } from '../../useResource.ts'
import { SourceLinks } from '../memory/sources.tsx'
import { highlightTerms, type TextPart } from './highlightTerms.ts'

const kinds = [
  ['', 'All'],
  ['message', 'Messages'],
  ['summary', 'Summaries'],
  ['fact', 'Facts'],
  ['knowledge', 'Knowledge'],
  ['item', 'Items'],
] as const

/** Searches a tenant with all its sessions and files. */
export function SearchView({ route }: { route: Route }) {
  const scope = useScope(route.subject)
  const { q = '', kind = '', from = '', to = '', session = '' } = route.settings
  const query = useDelayed(q.trim(), 250)
  const tenant = useDelayed(scope, 250)
  const results = useResource(
    async (signal) =>
      query === '' || tenant === ''
        ? null
        : request<Page<SearchHit>>(
            apiPath(['api', 'scopes', tenant, 'search'], { q: query, kinds: kind, from, to, session, limit: 50 }),
            { signal },
          ),
    [query, tenant, kind, from, to, session],
  )
  return (
    <View title="Search" subtitle={results.data && formatCount(results.data.items.length, 'result')}>
      <search class="filters with-query">
        <ScopeField scope={scope} onChange={replaceSubject} />
        <TextField
          label="Text"
          type="search"
          value={q}
          placeholder="What did Ann say about the refund last week?"
          onInput={(text) => replaceSettings({ q: text })}
        />
        <SelectField label="Kind" value={kind} options={kinds} onChange={(name) => replaceSettings({ kind: name })} />
        <TextField
          label="Session"
          value={session}
          placeholder="All"
          onInput={(name) => replaceSettings({ session: name })}
        />
        <TextField label="From" type="date" value={from} onInput={(date) => replaceSettings({ from: date })} />
        <TextField label="To" type="date" value={to} onInput={(date) => replaceSettings({ to: date })} />
      </search>
      <ResourceView resource={results}>
        {(page) =>
          page === null ? (
            <SearchHelp hasTenant={tenant !== ''} />
          ) : page.items.length === 0 ? (
            <EmptyState title="Nothing was found.">Try other words, or fewer filters.</EmptyState>
          ) : (
            <ol class="results">
              {page.items.map((hit) => (
                <li key={`${hit.key} ${hit.entry.id}`}>
                  <Result hit={hit} query={query} />
                </li>
              ))}
            </ol>
          )
        }
      </ResourceView>
    </View>
  )
}

const SearchHelp = ({ hasTenant }: { hasTenant: boolean }) => (
  <EmptyState title="Search the memory of a tenant">
    <p>Names, numbers and related words are found. Phrases such as “yesterday” or “in March” restrict the time.</p>
    {!hasTenant && <TenantLinks view="search" />}
  </EmptyState>
)

/** Tab of the memory view that shows the entries of a kind. */
const tabOf: Readonly<Record<string, string>> = { fact: 'facts', summary: 'summaries', knowledge: 'knowledge' }

function Result({ hit: { key, from, entry, passage, score, repeats = [] }, query }: { hit: SearchHit; query: string }) {
  const isMessage = entry.kind === 'message' && from === undefined && key.includes(':')
  const text = entry.content ?? entry.text ?? [entry.key, formatValue(entry.value)].filter(Boolean).join(': ')
  // The text of other entries is put together here; a passage that is the whole text needs no mark.
  const isOwnText = entry.content !== undefined || entry.text !== undefined
  const marked = !isOwnText || passage === undefined || passage[1] - passage[0] >= text.length ? undefined : passage
  return (
    <article class="result">
      <header class="row muted">
        <Badge>{from === 'files' ? 'file' : entry.kind}</Badge>
        <a
          class="mono"
          href={
            isMessage
              ? formatRoute('conversation', key, { message: entry.id, span: marked?.join('-') })
              : formatRoute('memory', key, { tab: from === 'files' ? 'files' : tabOf[entry.kind] })
          }
        >
          {isMessage ? `${key} ${entry.id}` : from === 'files' ? (entry.name ?? key) : key}
        </a>
        <time dateTime={new Date(entry.at).toISOString()}>{formatTime(entry.at)}</time>
        {entry.kind === 'fact' && <SourceLinks sessionKey={key} sources={entry.sources ?? []} />}
        {repeats.length > 0 && <span>also in {formatCount(repeats.length, 'other place')}</span>}
        <span class="push score" title="Score: higher is more relevant">
          {score.toFixed(2)}
        </span>
      </header>
      <p class="message-text">
        {highlightTerms(text, query, marked).map((part, index) => (
          <ResultPart key={index} part={part} />
        ))}
      </p>
    </article>
  )
}

const ResultPart = ({ part: { text, isMatch, isPassage } }: { part: TextPart }) => (
  <span class={isPassage ? 'passage' : undefined}>{isMatch ? <mark>{text}</mark> : text}</span>
)
