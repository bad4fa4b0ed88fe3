import '../../styles/conversation.css'
import '../../styles/chat.css'
import { useEffect, useRef, useState } from 'preact/hooks'
import { apiPath, request } from '../../api/client.ts'
import type { LedgerLine, Page, Receipt } from '../../api/types.ts'
import { useApp } from '../../appContext.ts'
import { TextField } from '../../components/fields.tsx'
import { Stat, Stats, View } from '../../components/layout.tsx'
import { MessageText } from '../../components/messageText.tsx'
import { EmptyState, ResourceView } from '../../components/states.tsx'
import { formatDollars, formatNumber } from '../../format.ts'
import { formatRoute, navigate, type Route, replaceSettings } from '../../router.ts'
import { useResource } from '../../useResource.ts'
import { BudgetBar } from '../conversation/budgetBar.tsx'
import { streamChat } from './streamChat.ts'

/** A question and its reply in this tab. */
type Exchange = {
  readonly question: string
  readonly reply: string
  readonly receipt?: string | undefined
  readonly error?: string
  readonly isDone: boolean
}

/** A chat with any key, with the receipt of each reply beside it. */
export function ChatView({ route }: { route: Route }) {
  const { access } = useApp()
  const [scope = 'demo'] = access.scopes.filter((name) => name !== '*')
  const key = route.subject === '' ? `${scope}:me` : route.subject
  const model = useModel(route.settings.model)
  const { exchanges, ask, stop } = useExchanges(key, model)
  const [chosen, setChosen] = useState<number>()
  const end = useRef<HTMLDivElement>(null)
  useEffect(() => end.current?.scrollIntoView({ block: 'end' }), [exchanges])
  useEffect(() => setChosen(undefined), [exchanges.length])
  const isBusy = exchanges.at(-1)?.isDone === false
  const shown = exchanges[chosen ?? exchanges.length - 1]
  return (
    <View
      title="Chat"
      subtitle={<a href={formatRoute('conversation', key)}>{key}</a>}
      actions={<ChatSettings session={key} model={model} />}
    >
      <div class="chat">
        <div class="chat-main">
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
          <div class="chat-log" role="log" aria-label="Conversation" tabIndex={0}>
            {exchanges.length === 0 && <Welcome session={key} onAsk={ask} />}
            {exchanges.map((exchange, index) => (
              <ExchangeItem
                key={index}
                exchange={exchange}
                isChosen={exchange === shown}
                onChoose={() => setChosen(index)}
              />
            ))}
            <div ref={end} />
          </div>
          <Composer isBusy={isBusy} onAsk={ask} onStop={stop} />
        </div>
        <aside class="chat-receipt" aria-label="Receipt">
          <h2>Receipt</h2>
          {shown?.receipt === undefined ? (
            <p class="muted">The receipt of a reply shows what the model was given, and why.</p>
          ) : (
            <ReceiptCard id={shown.receipt} />
          )}
        </aside>
      </div>
    </View>
  )
}

/** The exchanges of this tab, and functions to ask the next question and to stop the reply. */
function useExchanges(key: string, model: string) {
  const [exchanges, setExchanges] = useState<readonly Exchange[]>([])
  const running = useRef<AbortController>(null)
  const stop = (): void => running.current?.abort()
  useEffect(() => stop, [])
  const update = (change: Partial<Exchange>): void =>
    setExchanges((all) => all.with(-1, { ...(all.at(-1) as Exchange), ...change }))
  const run = async (question: string, signal: AbortSignal): Promise<void> => {
    let reply = ''
    try {
      const receipt = await streamChat({ key, model, question, signal }, (text) => {
        reply += text
        update({ reply })
      })
      update({ receipt, isDone: true })
    } catch (error) {
      const message = signal.aborted ? 'Stopped.' : error instanceof Error ? error.message : String(error)
      update({ error: message, isDone: true })
    }
  }
  const ask = (question: string): void => {
    running.current = new AbortController()
    setExchanges((all) => [...all, { question, reply: '', isDone: false }])
    void run(question, running.current.signal)
  }
  return { exchanges, ask, stop }
}

/** The chosen model, or the first one of the upstream. */
function useModel(chosen: string | undefined): string {
  const models = useResource(
    (signal) => request<{ readonly data: readonly { readonly id: string }[] }>('/v1/models', { signal }),
    [],
  )
  return chosen ?? models.data?.data[0]?.id ?? 'gpt-5.4-mini'
}

function ChatSettings({ session, model }: { session: string; model: string }) {
  return (
    <form
      class="header-form"
      onSubmit={(event) => {
        event.preventDefault()
        const form = new FormData(event.currentTarget)
        navigate(formatRoute('chat', String(form.get('key')), { model: String(form.get('model')) }))
      }}
    >
      <TextField label="Key" name="key" value={session} placeholder="acme:ann" isRequired />
      <TextField label="Model" name="model" value={model} onInput={(name) => replaceSettings({ model: name })} />
      <button type="submit" class="button">
        Switch
      </button>
    </form>
  )
}

const firstQuestions = ['My cat is called Miso.', 'What is my cat called?', 'What do you know about me?']

function Welcome({ session, onAsk }: { session: string; onAsk: (question: string) => void }) {
  const earlier = useResource(
    (signal) => request<Page<unknown>>(apiPath(['api', 'sessions', session, 'messages'], { limit: 1 }), { signal }),
    [session],
  )
  return (
    <EmptyState title={earlier.data === undefined ? `Start the session ${session}` : `Continue ${session}`}>
      <p>
        Say something and ask about it later. Memory decides what the model sees.{' '}
        {earlier.data !== undefined && <a href={formatRoute('conversation', session)}>See the whole conversation.</a>}
      </p>
      <div class="row center">
        {firstQuestions.map((question) => (
          <button key={question} type="button" class="button" onClick={() => onAsk(question)}>
            {question}
          </button>
        ))}
      </div>
    </EmptyState>
  )
}

type ExchangeProps = { exchange: Exchange; isChosen: boolean; onChoose: () => void }

function ExchangeItem({ exchange: { question, reply, receipt, error, isDone }, isChosen, onChoose }: ExchangeProps) {
  return (
    <article class={`exchange ${isChosen ? 'chosen' : ''}`}>
      <div class="bubble question">
        <MessageText text={question} />
      </div>
      <div class="bubble reply">
        <MessageText text={reply === '' && !isDone ? '…' : reply} />
        {error !== undefined && (
          <p class="danger" role="alert">
            {error}
          </p>
        )}
        {receipt !== undefined && (
          <button type="button" class="button quiet small" aria-pressed={isChosen} onClick={onChoose}>
            Receipt
          </button>
        )}
      </div>
    </article>
  )
}

type ComposerProps = { isBusy: boolean; onAsk: (question: string) => void; onStop: () => void }

function Composer({ isBusy, onAsk, onStop }: ComposerProps) {
  const [text, setText] = useState('')
  const submit = (): void => {
    if (isBusy || text.trim() === '') return
    onAsk(text)
    setText('')
  }
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      <label class="visually-hidden" for="question">
        Message
      </label>
      <textarea
        id="question"
        class="input"
        rows={2}
        placeholder="Message. Enter sends, Shift and Enter starts a new line."
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
          event.preventDefault()
          submit()
        }}
      />
      {isBusy ? (
        <button type="button" class="button" onClick={onStop}>
          Stop
        </button>
      ) : (
        <button type="submit" class="button primary" disabled={text.trim() === ''}>
          Send
        </button>
      )}
    </form>
  )
}

/** The account of one reply. */
function ReceiptCard({ id }: { id: string }) {
  const receipt = useResource((signal) => request<Receipt>(apiPath(['api', 'receipts', id]), { signal }), [id])
  const [selected, setSelected] = useState<LedgerLine>()
  return (
    <ResourceView resource={receipt} rows={4}>
      {({ key, tokens, cost, ledger, model, degraded }) => (
        <div class="stack">
          {ledger !== null && <BudgetBar ledger={ledger} label="Context" selected={selected} onSelect={setSelected} />}
          <Stats>
            <Stat label="Shown" value={formatNumber(tokens.shown)} note="tokens" />
            <Stat label="Saved" value={formatNumber(tokens.saved)} note={`of ${formatNumber(tokens.history)}`} />
            <Stat label="Repeated" value={formatNumber(tokens.cacheable)} note="tokens of the prompt before" />
            <Stat
              label="Cost"
              value={cost === null ? '–' : formatDollars((cost as { total: number }).total)}
              note={model}
            />
          </Stats>
          {degraded.map(({ code, message }) => (
            <p key={code} class="note">
              {message}
            </p>
          ))}
          <a href={formatRoute('conversation', key, { turn: id })}>See what the model saw</a>
        </div>
      )}
    </ResourceView>
  )
}
