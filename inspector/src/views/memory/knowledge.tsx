import { useState } from 'preact/hooks'
import { apiPath, request } from '../../api/client.ts'
import type { Knowledge, Page } from '../../api/types.ts'
import { FormDialog } from '../../components/dialog.tsx'
import { SelectField, TextField } from '../../components/fields.tsx'
import { Section } from '../../components/layout.tsx'
import { EmptyState, ErrorState, ResourceView } from '../../components/states.tsx'
import { formatAge, formatPercent, formatValue } from '../../format.ts'
import { replaceSettings } from '../../router.ts'
import { useDelayed, useResource } from '../../useResource.ts'
import { SourceLinks } from './sources.tsx'

const categories = ['domain', 'execution_pattern', 'user_preference', 'website_knowledge', 'error_pattern'] as const

/** A tenant, or a person of it. */
type Owner = { scope: string; person: string }

const knowledgePath = (
  { scope, person }: Owner,
  query: Readonly<Record<string, string | number | boolean>> = {},
  ...rest: readonly string[]
): string => apiPath(['api', 'scopes', scope, 'knowledge', ...rest], { person, ...query })

/** Knowledge of a tenant; pending entries wait for approval. */
export function KnowledgeTab({ scope, person }: Owner) {
  const [edited, setEdited] = useState<Knowledge | 'new'>()
  const [error, setError] = useState('')
  const owner = useDelayed(person.trim(), 250)
  const knowledge = useResource(
    (signal) =>
      request<Page<Knowledge>>(knowledgePath({ scope, person: owner }, { archived: true, limit: 500 }), { signal }),
    [scope, owner],
    (event) => event.key === scope,
  )
  const perform = (work: () => Promise<unknown>): void => {
    setError('')
    work().then(knowledge.reload, (cause: Error) => setError(cause.message))
  }
  return (
    <>
      <div class="filters">
        <TextField
          label="Person"
          type="search"
          value={person}
          placeholder={`Nobody: knowledge of ${scope}`}
          onInput={(name) => replaceSettings({ person: name })}
        />
        <button type="button" class="button push" onClick={() => setEdited('new')}>
          Add knowledge…
        </button>
      </div>
      {error !== '' && <ErrorState message={error} />}
      <ResourceView resource={knowledge}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title={`Nothing is known about ${owner === '' ? 'this tenant' : owner} yet.`}>
              Clients and upkeep add what holds in every session.
            </EmptyState>
          ) : (
            groups(items).map(([title, note, found]) => (
              <Section key={title} title={title} note={note}>
                <KnowledgeTable owner={{ scope, person: owner }} items={found} onEdit={setEdited} onPerform={perform} />
              </Section>
            ))
          )
        }
      </ResourceView>
      {edited !== undefined && (
        <KnowledgeDialog
          owner={{ scope, person: owner }}
          known={edited === 'new' ? undefined : edited}
          onClose={() => setEdited(undefined)}
          onSave={knowledge.reload}
        />
      )}
    </>
  )
}

/** Entries by state: those that wait for a decision first. */
function groups(items: readonly Knowledge[]) {
  const [pending, archived, active] = [
    items.filter((known) => known.pending === true),
    items.filter((known) => known.archived === true),
    items.filter((known) => known.pending !== true && known.archived !== true),
  ]
  const all = [
    ['Waiting for approval', 'Claims of a model. No model sees them before you approve them.', pending],
    ['Known', 'Shown to models in every session.', active],
    ['Archived', 'Not used for a long time. Neither shown nor found.', archived],
  ] as const
  return all.filter(([, , found]) => found.length > 0)
}

type TableProps = {
  owner: Owner
  items: readonly Knowledge[]
  onEdit: (known: Knowledge) => void
  onPerform: (work: () => Promise<unknown>) => void
}

const KnowledgeTable = ({ owner, items, onEdit, onPerform }: TableProps) => (
  <div class="table-frame">
    <table class="knowledge stacked">
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Value</th>
          <th scope="col">Category</th>
          <th scope="col">Confidence</th>
          <th scope="col" class="number">
            Used
          </th>
          <th scope="col">Source</th>
          <th scope="col">
            <span class="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {items.map((known) => (
          <KnowledgeRow key={known.id} owner={owner} known={known} onEdit={onEdit} onPerform={onPerform} />
        ))}
      </tbody>
    </table>
  </div>
)

type RowProps = Omit<TableProps, 'items'> & { known: Knowledge }

function KnowledgeRow({ owner, known, onEdit, onPerform }: RowProps) {
  const { key, value, category, confidence, usedAt, origin, sources } = known
  return (
    <tr>
      <td class="lead">
        <span class="message-text">{key}</span>
      </td>
      <td class="lead">
        <span class="message-text">{formatValue(value)}</span>
      </td>
      <td class="muted">{category.replaceAll('_', ' ')}</td>
      <td class="shrink">
        <Confidence value={confidence} />
      </td>
      <td class="number" data-label="Used">
        {formatAge(usedAt)}
      </td>
      <td data-label="Source">
        {origin === 'operator' ? (
          <span class="muted">operator</span>
        ) : (
          <SourceLinks sessionKey={owner.scope} sources={sources} />
        )}
      </td>
      <td class="shrink lead">
        <KnowledgeActions owner={owner} known={known} onEdit={onEdit} onPerform={onPerform} />
      </td>
    </tr>
  )
}

function KnowledgeActions({ owner, known, onEdit, onPerform }: RowProps) {
  const { id, key, pending, archived } = known
  const change = (method: 'POST' | 'DELETE', ...rest: readonly string[]): void =>
    onPerform(() => request(knowledgePath(owner, {}, id, ...rest), { method }))
  const removal = pending === true ? 'Reject' : 'Delete'
  return (
    <span class="row">
      {pending === true && (
        <button
          type="button"
          class="button small primary"
          aria-label={`Approve ${key}`}
          onClick={() => change('POST', 'approve')}
        >
          Approve
        </button>
      )}
      {archived === true && (
        <button
          type="button"
          class="button small"
          aria-label={`Restore ${key}`}
          onClick={() => change('POST', 'restore')}
        >
          Restore
        </button>
      )}
      <button type="button" class="button small" aria-label={`Edit ${key}`} onClick={() => onEdit(known)}>
        Edit
      </button>
      <button type="button" class="button small" aria-label={`${removal} ${key}`} onClick={() => change('DELETE')}>
        {removal}
      </button>
    </span>
  )
}

const Confidence = ({ value }: { value: number }) => (
  <span class="confidence">
    <span class="progress">
      <span style={{ width: `${100 * value}%` }} />
    </span>
    {formatPercent(value)}
  </span>
)

type DialogProps = { owner: Owner; known: Knowledge | undefined; onClose: () => void; onSave: () => void }

function KnowledgeDialog({ owner, known, onClose, onSave }: DialogProps) {
  const save = async (form: FormData): Promise<void> => {
    const read = (name: string): string => String(form.get(name)).trim()
    const [category, key, value] = [read('category'), read('key'), read('value')]
    if (key === '' || value === '') throw new Error('The name and the value must not be blank.')
    const person = owner.person === '' ? {} : { person: owner.person }
    await request(knowledgePath({ scope: owner.scope, person: '' }), {
      method: 'POST',
      body: { category, key, value, ...person },
    })
    // An entry is identified by its category and name: with others, the old one would stay beside the new one.
    if (known !== undefined && (known.category !== category || known.key !== key))
      await request(knowledgePath(owner, {}, known.id), { method: 'DELETE' })
    onSave()
  }
  return (
    <FormDialog
      title={known === undefined ? 'Add knowledge' : `Edit ${known.key}`}
      action={known?.pending === true ? 'Save and approve' : 'Save'}
      onClose={onClose}
      onSubmit={save}
    >
      <SelectField
        label="Category"
        name="category"
        value={known?.category ?? 'domain'}
        options={categories.map((name) => [name, name.replaceAll('_', ' ')] as const)}
      />
      <TextField label="Name" name="key" isRequired value={known?.key ?? ''} />
      <TextField label="Value" name="value" isRequired value={known === undefined ? '' : formatValue(known.value)} />
    </FormDialog>
  )
}
