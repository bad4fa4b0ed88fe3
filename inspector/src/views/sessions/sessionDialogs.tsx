import { useRef } from 'preact/hooks'
import { apiPath, request, send } from '../../api/client.ts'
import type { Session, Usage } from '../../api/types.ts'
import { uploadFile } from '../../api/upload.ts'
import { useApp } from '../../appContext.ts'
import { Dialog, FormDialog } from '../../components/dialog.tsx'
import { SelectField, TextField } from '../../components/fields.tsx'
import { Stat, Stats } from '../../components/layout.tsx'
import { ResourceView } from '../../components/states.tsx'
import { formatCount, formatDollars, formatLatency, formatNumber, formatPercent } from '../../format.ts'
import { formatRoute, navigate } from '../../router.ts'
import { useResource } from '../../useResource.ts'

/** An action that was chosen for a session. */
export type SessionAction = { readonly name: 'metrics' | 'transfer' | 'export' | 'end'; readonly session: Session }

type ActionProps = { action: SessionAction; onClose: () => void; onChange: () => void }

export function SessionDialogs({ action: { name, session }, onClose, onChange }: ActionProps) {
  if (name === 'metrics') return <MetricsDialog session={session} onClose={onClose} />
  if (name === 'export') return <ExportDialog session={session} onClose={onClose} />
  const { key } = session
  const path = (...rest: readonly string[]): string => apiPath(['api', 'sessions', key, ...rest])
  if (name === 'end')
    return (
      <FormDialog
        title={`End ${key}?`}
        action="End session"
        isDangerous
        onClose={onClose}
        onSubmit={async () => {
          await request(path(), { method: 'DELETE' })
          onChange()
        }}
      >
        <p>
          Deletes {formatCount(session.messages, 'message')} with all summaries, facts and receipts permanently, and
          sends the end event to the webhook, if one is configured.
        </p>
      </FormDialog>
    )
  return (
    <FormDialog
      title={`Transfer ${key}`}
      action="Transfer"
      onClose={onClose}
      onSubmit={async (form) => {
        await request(path('transfer'), { method: 'POST', body: { to: String(form.get('to')) } })
        onChange()
      }}
    >
      <TextField
        label="New key"
        name="to"
        isRequired
        placeholder={`${key.split(':')[0]}:new-name`}
        hint="A session of the same tenant. The old key answers with the new one until it expires."
      />
    </FormDialog>
  )
}

function MetricsDialog({ session: { key }, onClose }: { session: Session; onClose: () => void }) {
  const usage = useResource((signal) => request<Usage>(apiPath(['api', 'sessions', key, 'metrics']), { signal }), [key])
  return (
    <Dialog title={`Metrics of ${key}`} onClose={onClose}>
      <ResourceView resource={usage} rows={3}>
        {(report) => <UsageStats usage={report} />}
      </ResourceView>
      <div class="row end dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  )
}

/** Figures of a session or a tenant since the server started. */
const UsageStats = ({ usage: { turns, failed, tokens, latency, compression, cost } }: { usage: Usage }) => (
  <Stats>
    <Stat label="Turns" value={formatNumber(turns)} note={`${formatNumber(failed)} failed`} />
    <Stat label="Tokens sent" value={formatNumber(tokens.shown)} note={`of ${formatNumber(tokens.history)} in full`} />
    <Stat
      label="Saved"
      value={formatNumber(tokens.saved)}
      {...(compression !== null && { note: `prompts are ${formatPercent(compression)} of the history` })}
    />
    <Stat
      label="Turn"
      value={latency === null ? '–' : formatLatency(latency.mean)}
      {...(latency !== null && { note: `${formatLatency(latency.memory)} in memory` })}
    />
    <Stat label="Cost" value={formatDollars(cost.total)} note={`${formatDollars(cost.upkeep)} for upkeep`} />
  </Stats>
)

function ExportDialog({ session: { key, messages }, onClose }: { session: Session; onClose: () => void }) {
  return (
    <FormDialog
      title={`Export ${key}`}
      action="Download"
      onClose={onClose}
      onSubmit={async () => {
        const response = await send(apiPath(['api', 'sessions', key, 'export']))
        const url = URL.createObjectURL(await response.blob())
        const link = document.createElement('a')
        link.href = url
        link.download = `${key.replaceAll(/[^\w.-]/g, '_')}.jsonl`
        link.click()
        URL.revokeObjectURL(url)
      }}
    >
      <p>
        Downloads {formatCount(messages, 'message')} with summaries, facts and receipts as a bundle that{' '}
        <code>threadkeep import</code> and this page can read. Masked secrets stay masked.
      </p>
    </FormDialog>
  )
}

export function NewSessionDialog({ onClose }: { onClose: () => void }) {
  const { access } = useApp()
  const [scope = 'demo'] = access.scopes.filter((name) => name !== '*')
  return (
    <FormDialog
      title="New session"
      action="Create"
      onClose={onClose}
      onSubmit={async (form) => {
        const [key, template] = [String(form.get('key')), String(form.get('template') ?? '')]
        await request('/api/sessions', { method: 'POST', body: { key, ...(template !== '' && { template }) } })
        navigate(formatRoute('chat', key))
      }}
    >
      <TextField label="Key" name="key" isRequired value={`${scope}:`} hint="Tenant and session, such as acme:ann." />
      {access.templates.length > 0 && (
        <SelectField
          label="Template"
          name="template"
          value=""
          options={[['', 'None'], ...access.templates.map((name) => [name, name] as const)]}
        />
      )}
    </FormDialog>
  )
}

export function ImportDialog({ onClose, onImport }: { onClose: () => void; onImport: () => void }) {
  const file = useRef<HTMLInputElement>(null)
  const { access } = useApp()
  const [scope = ''] = access.scopes.filter((name) => name !== '*')
  return (
    <FormDialog
      title="Import sessions"
      action="Import"
      onClose={onClose}
      onSubmit={async (form) => {
        const bundle = file.current?.files?.[0]
        if (bundle === undefined) return
        const path = apiPath(['api', 'scopes', String(form.get('scope')), 'import'], {
          existing: String(form.get('existing')),
        })
        await uploadFile(path, bundle, 'application/jsonl')
        onImport()
      }}
    >
      <div class="field">
        <label for="bundle">Bundle</label>
        <input id="bundle" ref={file} type="file" accept=".jsonl,application/jsonl" required />
      </div>
      <TextField
        label="Into tenant"
        name="scope"
        isRequired
        value={scope}
        hint="All sessions of the bundle become sessions of this tenant."
      />
      <SelectField
        label="Sessions that exist with other contents"
        name="existing"
        value="refuse"
        options={[
          ['refuse', 'Import nothing'],
          ['skip', 'Leave them as they are'],
          ['replace', 'Replace them'],
        ]}
      />
    </FormDialog>
  )
}
