import { useState } from 'preact/hooks'
import { apiPath, request } from '../../api/client.ts'
import type { Page, Session } from '../../api/types.ts'
import { useApp } from '../../appContext.ts'
import { SelectField, TextField } from '../../components/fields.tsx'
import { Badge, View } from '../../components/layout.tsx'
import { EmptyState, ResourceView } from '../../components/states.tsx'
import { formatAge, formatDuration, formatNumber, formatTime, formatValue } from '../../format.ts'
import { formatRoute, navigate, parseRoute, type Route, replaceSettings } from '../../router.ts'
import { useDelayed, useNow, useResource } from '../../useResource.ts'
import { ImportDialog, NewSessionDialog, type SessionAction, SessionDialogs } from './sessionDialogs.tsx'

const pageSize = 50

/** Lists sessions; each leads to its conversation. */
export function SessionsView({ route }: { route: Route }) {
  const { q = '', template = '', scope = '', metadata = '', after = '' } = route.settings
  const [delayedQuery, delayedMetadata] = [useDelayed(q, 200), useDelayed(metadata, 200)]
  const [dialog, setDialog] = useState<'new' | 'import' | undefined>()
  const sessions = useResource(
    (signal) =>
      request<Page<Session>>(
        apiPath(['api', 'sessions'], {
          q: delayedQuery,
          template,
          scope,
          after,
          limit: pageSize,
          ...parseMetadataFilter(delayedMetadata),
        }),
        { signal },
      ),
    [delayedQuery, delayedMetadata, template, scope, after],
    ({ type }) => type === 'session' || type === 'ended',
  )
  const filter = (changes: Readonly<Record<string, string>>): void => replaceSettings({ ...changes, after: '' })
  return (
    <View
      title="Sessions"
      actions={
        <>
          <button type="button" class="button" onClick={() => setDialog('import')}>
            Import…
          </button>
          <button type="button" class="button primary" onClick={() => setDialog('new')}>
            New session…
          </button>
        </>
      }
    >
      <SessionFilters settings={route.settings} onChange={filter} />
      <ResourceView resource={sessions} rows={10}>
        {({ items, next }) => (
          <>
            <SessionTable
              sessions={items}
              isFiltered={[q, template, scope, metadata].some((value) => value !== '')}
              onChange={sessions.reload}
            />
            <Pager after={after} next={next} />
          </>
        )}
      </ResourceView>
      {dialog === 'new' && <NewSessionDialog onClose={() => setDialog(undefined)} />}
      {dialog === 'import' && <ImportDialog onClose={() => setDialog(undefined)} onImport={sessions.reload} />}
    </View>
  )
}

/** Query parameters of fields such as `channel=web, plan=pro`; incomplete ones are left out. */
function parseMetadataFilter(text: string): Readonly<Record<string, string>> {
  const fields = text.split(',').map((field) => field.trim().split(/(?<!\s)\s*=\s*(.*)/s))
  return Object.fromEntries(
    fields.flatMap(([name, value]) => (name && value ? [[`metadata.${name}`, value] as const] : [])),
  )
}

type FilterProps = {
  settings: Route['settings']
  onChange: (changes: Readonly<Record<string, string>>) => void
}

function SessionFilters({ settings, onChange }: FilterProps) {
  const { q = '', template = '', scope = '', metadata = '' } = settings
  const { access } = useApp()
  return (
    <search class="filters">
      <TextField
        label="Search by key"
        type="search"
        value={q}
        placeholder="acme, +1555…"
        onInput={(text) => onChange({ q: text })}
      />
      <ScopeFilter scope={scope} onChange={(text) => onChange({ scope: text })} />
      {access.templates.length > 0 && (
        <SelectField
          label="Template"
          value={template}
          options={[['', 'All'], ...access.templates.map((name) => [name, name] as const)]}
          onChange={(name) => onChange({ template: name })}
        />
      )}
      <TextField
        label="Metadata"
        type="search"
        value={metadata}
        placeholder="channel=web, plan=pro"
        onInput={(text) => onChange({ metadata: text })}
      />
    </search>
  )
}

/** A choice of the tenants of the key; free text for a key of all tenants. */
function ScopeFilter({ scope, onChange }: { scope: string; onChange: (scope: string) => void }) {
  const { scopes } = useApp().access
  if (scopes.includes('*')) return <TextField label="Tenant" value={scope} placeholder="All" onInput={onChange} />
  if (scopes.length === 1) return null
  const options = [['', 'All'], ...scopes.map((name) => [name, name] as const)] as const
  return <SelectField label="Tenant" value={scope} options={options} onChange={onChange} />
}

type TableProps = { sessions: readonly Session[]; isFiltered: boolean; onChange: () => void }

function SessionTable({ sessions, isFiltered, onChange }: TableProps) {
  const now = useNow(1_000)
  const [action, setAction] = useState<SessionAction>()
  if (sessions.length === 0)
    return isFiltered ? (
      <EmptyState title="No session matches." />
    ) : (
      <EmptyState title="There are no sessions yet.">
        <p>
          Point a client at <code>{window.location.origin}/v1/demo:me</code>, or start in the{' '}
          <a href={formatRoute('chat', 'demo:me')}>chat</a>.
        </p>
      </EmptyState>
    )
  return (
    <>
      <div class="table-frame">
        <table class="stacked">
          <thead>
            <tr>
              <th scope="col">Session</th>
              <th scope="col" class="number">
                Messages
              </th>
              <th scope="col" class="number">
                Tokens
              </th>
              <th scope="col" class="number">
                Last write
              </th>
              <th scope="col" class="number">
                Expires
              </th>
              <th scope="col">Details</th>
              <th scope="col">
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {sessions.map((session) => (
              <SessionRow key={session.key} session={session} now={now} onAction={setAction} />
            ))}
          </tbody>
        </table>
      </div>
      {action !== undefined && (
        <SessionDialogs action={action} onClose={() => setAction(undefined)} onChange={onChange} />
      )}
    </>
  )
}

type RowProps = { session: Session; now: number; onAction: (action: SessionAction) => void }

function SessionRow({ session, now, onAction }: RowProps) {
  const { key, messages, tokens, touchedAt, expiresAt, template, person, metadata } = session
  return (
    <tr>
      <td class="session-key">
        <a class="mono" href={formatRoute('conversation', key)}>
          {key}
        </a>
      </td>
      <td class="number" data-label="Messages">
        {formatNumber(messages)}
      </td>
      <td class="number" data-label="Tokens">
        {tokens === undefined ? '–' : formatNumber(tokens)}
      </td>
      <td class="number" data-label="Last write">
        <time dateTime={new Date(touchedAt).toISOString()} title={formatTime(touchedAt)}>
          {formatAge(touchedAt, now)}
        </time>
      </td>
      <td class="number" data-label={expiresAt === null ? 'Never expires' : 'Expires'}>
        <Expiry expiresAt={expiresAt} now={now} />
      </td>
      <td class="details">
        <span class="row">
          {template !== undefined && <Badge>{template}</Badge>}
          {person !== undefined && <Badge>{person}</Badge>}
          <Metadata value={metadata} />
        </span>
      </td>
      <td class="shrink">
        <label class="visually-hidden" for={`actions-${key}`}>
          Actions for {key}
        </label>
        <select
          id={`actions-${key}`}
          class="input actions"
          value=""
          onChange={(event) => {
            const name = event.currentTarget.value
            event.currentTarget.value = ''
            if (name === 'memory' || name === 'chat') navigate(formatRoute(name, key))
            else onAction({ name: name as SessionAction['name'], session })
          }}
        >
          <option value="">Actions</option>
          <option value="chat">Chat</option>
          <option value="memory">Memory</option>
          <option value="metrics">Metrics…</option>
          <option value="transfer">Transfer…</option>
          <option value="export">Export</option>
          <option value="end">End…</option>
        </select>
      </td>
    </tr>
  )
}

/** Fields of metadata, each with a link to the sessions that share it; other JSON as text. */
function Metadata({ value }: { value: unknown }) {
  if (value === undefined) return null
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return <span class="clip muted">{formatValue(value)}</span>
  return Object.entries(value).map(([name, field]) => {
    const text = `${name}=${formatValue(field)}`
    return typeof field === 'object' || text.includes(',') ? (
      <span key={name} class="clip muted">
        {text}
      </span>
    ) : (
      <a key={name} class="metadata" href={formatRoute('sessions', '', { metadata: text })}>
        {text}
      </a>
    )
  })
}

/** Counts down to the expiry of a session. */
function Expiry({ expiresAt, now }: { expiresAt: number | null; now: number }) {
  if (expiresAt === null) return <span class="muted wide-only">never</span>
  const left = expiresAt - now
  if (left <= 0) return <span class="danger">expired</span>
  const isSoon = left < 600_000
  return (
    <time
      class={isSoon ? 'warning' : undefined}
      dateTime={new Date(expiresAt).toISOString()}
      title={formatTime(expiresAt)}
    >
      in {formatDuration(left)}
    </time>
  )
}

/** The page before each page that this tab has shown. A page that was opened by its address leads to the first one. */
const pagesBefore = new Map<string, string>()

function Pager({ after, next }: { after: string; next: string | null }) {
  if (after === '' && next === null) return null
  const show = (cursor: string): void =>
    navigate(formatRoute('sessions', '', { ...parseRoute(window.location.hash).settings, after: cursor }))
  return (
    <nav class="row pager" aria-label="Pages">
      <button type="button" class="button" disabled={after === ''} onClick={() => show(pagesBefore.get(after) ?? '')}>
        Previous
      </button>
      <button
        type="button"
        class="button"
        disabled={next === null}
        onClick={() => {
          if (next === null) return
          pagesBefore.set(next, after)
          show(next)
        }}
      >
        Next
      </button>
    </nav>
  )
}
