import '../../styles/memory.css'
import { useState } from 'preact/hooks'
import { apiPath, request } from '../../api/client.ts'
import type { ForgetPreview, ForgetReceipt, Page, TranscriptMessage } from '../../api/types.ts'
import { TextField } from '../../components/fields.tsx'
import { Section, Stat, Stats, Tabs, View } from '../../components/layout.tsx'
import { useScope } from '../../components/scopeField.tsx'
import { ErrorState, LoadingState } from '../../components/states.tsx'
import { formatCount, formatNumber, formatTime } from '../../format.ts'
import { formatRoute, type Route, replaceSettings } from '../../router.ts'

const targets = [
  ['session', 'A session'],
  ['message', 'A message'],
  ['text', 'A text'],
] as const
type TargetKind = (typeof targets)[number][0]

type Target = { readonly key: string; readonly messageId?: string } | { readonly scope: string; readonly text: string }
type Step =
  | { readonly name: 'choose' | 'checking' | 'deleting' }
  | { readonly name: 'preview'; readonly target: Target; readonly preview: ForgetPreview; readonly message?: string }
  | { readonly name: 'done'; readonly receipt: ForgetReceipt }
  | { readonly name: 'failed'; readonly message: string }

/** Deletes a message, a session or a text for good: shows first what depends on it, and the receipt after. */
export function ForgetView({ route }: { route: Route }) {
  const scope = useScope(route.subject)
  const kind = targets.find(([name]) => name === route.settings.target)?.[0] ?? 'session'
  const [step, setStep] = useState<Step>({ name: 'choose' })
  const run = async (name: 'checking' | 'deleting', work: () => Promise<Step>): Promise<void> => {
    setStep({ name })
    try {
      setStep(await work())
    } catch (error) {
      setStep({ name: 'failed', message: error instanceof Error ? error.message : String(error) })
    }
  }
  const preview = (target: Target): void =>
    void run('checking', async () => ({
      name: 'preview',
      target,
      preview: await request<ForgetPreview>('/api/forget/preview', { method: 'POST', body: target }),
      ...('messageId' in target && { message: await readMessage(target.key, target.messageId ?? '') }),
    }))
  const forget = (target: Target): void =>
    void run('deleting', async () => ({
      name: 'done',
      receipt: await request<ForgetReceipt>('/api/forget', { method: 'POST', body: target }),
    }))
  const restart = (): void => setStep({ name: 'choose' })
  return (
    <View title="Forget" subtitle="Deletes permanently, with everything that was derived from it.">
      <Tabs
        label="What to forget"
        tabs={targets}
        selected={kind}
        onSelect={(name) => {
          restart()
          replaceSettings({ target: name })
        }}
      />
      <TargetForm key={kind} kind={kind} route={route} scope={scope} onPreview={preview} />
      {(step.name === 'checking' || step.name === 'deleting') && <LoadingState rows={4} />}
      {step.name === 'failed' && <ErrorState message={step.message} onRetry={restart} />}
      {step.name === 'preview' && <Preview {...step} onForget={() => forget(step.target)} onCancel={restart} />}
      {step.name === 'done' && <ReceiptSection receipt={step.receipt} />}
    </View>
  )
}

/** The text of a message, so that nobody deletes the wrong one. */
async function readMessage(key: string, id: string): Promise<string> {
  const sequence = Number(id.slice(1))
  const page = await request<Page<TranscriptMessage>>(
    apiPath(['api', 'sessions', key, 'messages'], { after: Math.max(0, sequence - 1), limit: 1 }),
  )
  return page.items.find((message) => message.id === id)?.content ?? ''
}

type FormProps = { kind: TargetKind; route: Route; scope: string; onPreview: (target: Target) => void }

function TargetForm({ kind, route, scope, onPreview }: FormProps) {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const [key, messageId, tenant, text] = ['key', 'message', 'scope', 'text'].map((name) =>
      String(form.get(name) ?? '').trim(),
    ) as [string, string, string, string]
    if (kind === 'text') onPreview({ scope: tenant, text })
    else onPreview(kind === 'message' ? { key, messageId } : { key })
  }
  return (
    <form class="filters" onSubmit={submit}>
      {kind === 'text' ? (
        <>
          <TextField label="Tenant" name="scope" isRequired value={scope} />
          <TextField
            label="Text"
            name="text"
            isRequired
            value={route.settings.text ?? ''}
            placeholder="A name, a number, a sentence"
          />
        </>
      ) : (
        <TextField label="Session" name="key" isRequired value={route.subject} placeholder="acme:ann" />
      )}
      {kind === 'message' && (
        <TextField label="Message" name="message" isRequired value={route.settings.message ?? ''} placeholder="m12" />
      )}
      <button type="submit" class="button">
        See what depends on it
      </button>
    </form>
  )
}

const countNames = [
  ['sessions', 'Sessions'],
  ['messages', 'Messages'],
  ['facts', 'Facts'],
  ['summaries', 'Summaries'],
  ['knowledge', 'Knowledge'],
  ['files', 'Files'],
  ['branches', 'Branches'],
  ['entities', 'Graph'],
  ['rows', 'Table rows'],
  ['other', 'Other'],
] as const

type PreviewProps = { preview: ForgetPreview; message?: string; onForget: () => void; onCancel: () => void }

function Preview({ preview: { counts, sessions, others }, message, onForget, onCancel }: PreviewProps) {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  if (total === 0) return <p class="note">Nothing to delete: nothing matches.</p>
  return (
    <Section title="This would be deleted" note="Nothing is deleted yet. Backups and exports are not changed.">
      <div class="stack">
        <Stats>
          {countNames
            .filter(([name]) => counts[name] > 0)
            .map(([name, label]) => (
              <Stat key={name} label={label} value={formatNumber(counts[name])} />
            ))}
        </Stats>
        {message !== undefined && message !== '' && <blockquote class="card message-text">{message}</blockquote>}
        <ul class="results">
          {sessions.map((session) => (
            <SessionDependants key={session.key} session={session} />
          ))}
          {others.map((text) => (
            <li key={text} class="result">
              {text}
            </li>
          ))}
        </ul>
        <div class="row">
          <button type="button" class="button danger-solid" onClick={onForget}>
            Delete all of this for good
          </button>
          <button type="button" class="button" onClick={onCancel}>
            Cancel
          </button>
        </div>
      </div>
    </Section>
  )
}

/** The first entries of a session that would go, in words. */
function SessionDependants({ session }: { session: ForgetPreview['sessions'][number] }) {
  const { key, messages, facts, summaries, first, derived } = session
  const counts = [
    formatCount(messages, 'message'),
    formatCount(facts, 'fact'),
    formatCount(summaries, 'summary', 'summaries'),
  ]
  return (
    <li class="result">
      <header class="row muted">
        <a class="mono" href={formatRoute(key.includes(':') ? 'conversation' : 'memory', key)}>
          {key}
        </a>
        <span>{counts.join(', ')}</span>
      </header>
      <ul class="dependants">
        {first.map(({ id, text }) => (
          <li key={id} class="message-text">
            <a class="mono" href={formatRoute('conversation', key, { message: id })}>
              {id}
            </a>{' '}
            {text}
          </li>
        ))}
        {messages > first.length && (
          <li class="muted">… and {formatCount(messages - first.length, 'other message')}</li>
        )}
        {derived.map(({ id, text }) => (
          <li key={id} class="message-text">
            {text}
          </li>
        ))}
      </ul>
    </li>
  )
}

function ReceiptSection({ receipt: { at, sessions } }: { receipt: ForgetReceipt }) {
  return (
    <Section title="Deleted" note={formatTime(at)}>
      <div role="status" class="stack">
        {sessions.length === 0 && <p>There was nothing to delete.</p>}
        {sessions.map(({ key, entries, rebuilt = [] }) => (
          <div key={key} class="card">
            <p>
              <b class="mono">{key}</b>: {formatCount(entries.length, 'entry', 'entries')} deleted
              {rebuilt.length > 0 &&
                `, ${formatCount(rebuilt.length, 'derived entry', 'derived entries')} rebuilt without them`}
            </p>
            <p class="mono muted ids">{entries.join(' ')}</p>
            {rebuilt.length > 0 && <p class="mono muted ids">rebuilt: {rebuilt.join(' ')}</p>}
          </div>
        ))}
      </div>
    </Section>
  )
}
