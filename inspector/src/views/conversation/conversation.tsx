import '../../styles/conversation.css'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { apiPath, request } from '../../api/client.ts'
import type { Ledger, LedgerLine, Page, Session } from '../../api/types.ts'
import { useApp } from '../../appContext.ts'
import { SelectField } from '../../components/fields.tsx'
import { View } from '../../components/layout.tsx'
import { EmptyState, LoadingState, ResourceView } from '../../components/states.tsx'
import type { VirtualListHandle } from '../../components/virtualList.tsx'
import { formatCount, formatShortTime } from '../../format.ts'
import { formatRoute, type Route, replaceSettings } from '../../router.ts'
import { useResource } from '../../useResource.ts'
import { BudgetBar } from './budgetBar.tsx'
import { CompareField, Comparison, ProfileComparison } from './comparison.tsx'
import { lineLookup, messageRange, parseMessageId } from './ledgerLines.ts'
import { CurrentPrompt, PastPrompt } from './promptPane.tsx'
import { Transcript } from './transcript.tsx'
import { TurnSlider } from './turns.tsx'
import { useMessages } from './useMessages.ts'
import { type Turn, useContextNow, useDerivedTexts, useReceipt, useTurns } from './useTurns.ts'

type Branch = { readonly branch: number; readonly messages: number; readonly cutAt: number }

/** A session: its transcript beside the prompt that the model got in each turn. */
export function ConversationView({ route }: { route: Route }) {
  const key = route.subject
  const session = useResource(
    (signal) => request<Session>(apiPath(['api', 'sessions', key]), { signal }),
    [key],
    (event) => event.key === key,
  )
  const turns = useTurns(key)
  return (
    <View
      title={key}
      subtitle={session.data && formatCount(session.data.messages, 'message')}
      actions={
        <>
          <a class="button" href={formatRoute('chat', key)}>
            Chat
          </a>
          <a class="button" href={formatRoute('memory', key)}>
            Memory
          </a>
          <a class="button" href={formatRoute('forget', key)}>
            Forget…
          </a>
        </>
      }
    >
      <ResourceView resource={session}>
        {(found) =>
          found.lastSequence === 0 ? (
            <EmptyState title="This session has no messages yet." />
          ) : (
            <ResourceView resource={turns}>
              {(list) => (
                <ConversationContent key={route.settings.branch ?? ''} session={found} turns={list} route={route} />
              )}
            </ResourceView>
          )
        }
      </ResourceView>
    </View>
  )
}

type ContentProps = { session: Session; turns: readonly Turn[]; route: Route }

function ConversationContent({ session, turns, route }: ContentProps) {
  const { turn: turnId = '', compare = '', branch, message = '', span, pane = 'transcript' } = route.settings
  const messages = useMessages(session.key, branch)
  const list = useRef<VirtualListHandle>(null)
  const [selected, setSelected] = useState<LedgerLine>()
  const { ledger, index, isLoading, prompt } = useSelectedContext(session.key, turns, turnId)
  const lineOf = useMemo(() => (ledger === undefined ? () => undefined : lineLookup(ledger)), [ledger])
  const target = useMemo(() => readTarget(message, span), [message, span])
  const show = (sequence: number): void => list.current?.scrollTo(sequence - 1)
  const select = (line: LedgerLine | undefined): void => {
    setSelected(line)
    const range = line && messageRange(line)
    if (range !== undefined) show(range[0])
  }
  useEffect(() => {
    setSelected(undefined)
    const reply = turns[index]?.sequence
    if (target === undefined && reply !== undefined && reply !== null) show(reply)
  }, [turnId])
  useEffect(() => {
    if (target !== undefined) show(target.sequence)
  }, [message])
  return (
    <div class="conversation" data-pane={pane}>
      <Controls session={session} turns={turns} index={index} compare={compare} branch={branch} />
      <SelectedBudget ledger={ledger} isLoading={isLoading} selected={selected} onSelect={select} />
      {compare !== '' && (
        <CompareResult session={session} turns={turns} ledger={ledger} index={index} compare={compare} onShow={show} />
      )}
      <PaneSwitch pane={pane} />
      <div class="panes">
        <section class="pane transcript-pane" aria-label="Transcript">
          <h2>{branch === undefined ? 'Transcript' : 'Transcript of the branch that an edit cut off'}</h2>
          <Transcript
            messages={messages}
            lastSequence={session.lastSequence}
            lineOf={lineOf}
            selected={selected}
            target={target}
            handle={list}
          />
        </section>
        <section class="pane prompt-pane" aria-label="Prompt">
          <h2>Prompt as the model saw it</h2>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
          <div class="pane-scroll" tabIndex={0}>
            {prompt({ messages, selected, onSelect: select })}
          </div>
        </section>
      </div>
    </div>
  )
}

type BudgetProps = {
  ledger: Ledger | undefined
  isLoading: boolean
  selected: LedgerLine | undefined
  onSelect: (line: LedgerLine | undefined) => void
}

function SelectedBudget({ ledger, isLoading, selected, onSelect }: BudgetProps) {
  if (ledger !== undefined) return <BudgetBar ledger={ledger} label="Context" selected={selected} onSelect={onSelect} />
  if (isLoading) return <LoadingState rows={2} />
  return <p class="note">The receipt of this turn has no ledger: memory added nothing to what the client sent.</p>
}

type PromptProps = Pick<Parameters<typeof PastPrompt>[0], 'messages' | 'selected' | 'onSelect'>

/** The ledger and the prompt of the selected turn, or of the present. */
function useSelectedContext(key: string, turns: readonly Turn[], turnId: string) {
  const found = turns.findIndex(({ id }) => id === turnId)
  const index = found < 0 ? turns.length : found
  const turn = turns[index]
  const receipt = useReceipt(turn?.id)
  const now = useContextNow(key, turn === undefined)
  const derived = useDerivedTexts(key)
  const ledger: Ledger | undefined = turn === undefined ? now.data?.ledger : (receipt.data?.ledger ?? undefined)
  const prompt = (props: PromptProps) => {
    if (turn === undefined)
      return <ResourceView resource={now}>{(context) => context && <CurrentPrompt context={context} />}</ResourceView>
    if (ledger === undefined)
      return receipt.isLoading ? (
        <LoadingState />
      ) : (
        <p class="muted">The client's own conversation was forwarded as it was sent.</p>
      )
    return <PastPrompt ledger={ledger} derived={derived.data ?? new Map()} {...props} />
  }
  return { ledger, index, isLoading: turn === undefined ? now.isLoading : receipt.isLoading, prompt }
}

/** The message, and the part of it, that an address names: `message=m12&span=4-20`. */
function readTarget(message: string, span: string | undefined) {
  const sequence = parseMessageId(message)
  if (sequence === undefined) return undefined
  const [from, to] = (span ?? '').split('-').map(Number)
  return from === undefined || to === undefined || Number.isNaN(to)
    ? { sequence }
    : { sequence, span: [from, to] as const }
}

type ControlsProps = {
  session: Session
  turns: readonly Turn[]
  index: number
  compare: string
  branch: string | undefined
}

function Controls({ session, turns, index, compare, branch }: ControlsProps) {
  const { access } = useApp()
  const branches = useResource(
    (signal) => request<Page<Branch>>(apiPath(['api', 'sessions', session.key, 'branches']), { signal }),
    [session.key],
    (event) => event.key === session.key,
  )
  return (
    <div class="conversation-controls">
      {turns.length === 0 ? (
        <p class="muted turn-slider">
          No turn went through this server yet; this is the context that a model would get now.
        </p>
      ) : (
        <TurnSlider
          turns={turns}
          index={index}
          onSelect={(next) => replaceSettings({ turn: turns[next]?.id ?? '', message: '', span: '' })}
        />
      )}
      <CompareField
        turns={turns}
        profiles={access.profiles}
        value={compare}
        onChange={(value) => replaceSettings({ compare: value })}
      />
      {(branches.data?.items.length ?? 0) > 0 && (
        <SelectField
          label="Branch"
          value={branch ?? ''}
          options={[
            ['', 'Current'],
            ...(branches.data?.items ?? []).map(
              (cut) =>
                [
                  String(cut.branch),
                  `Until ${formatShortTime(cut.cutAt)}: from m${cut.branch} (${cut.messages})`,
                ] as const,
            ),
          ]}
          onChange={(value) => replaceSettings({ branch: value })}
        />
      )}
    </div>
  )
}

type CompareProps = {
  session: Session
  turns: readonly Turn[]
  ledger: Ledger | undefined
  index: number
  compare: string
  onShow: (sequence: number) => void
}

function CompareResult({ session, turns, ledger, index, compare, onShow }: CompareProps) {
  const [kind, name = ''] = compare.split(/:(.*)/s)
  const other = useReceipt(kind === 'turn' ? name : undefined)
  if (kind === 'profile')
    return (
      <ProfileComparison sessionKey={session.key} profile={name} lastSequence={session.lastSequence} onShow={onShow} />
    )
  if (ledger === undefined) return null
  const names = [
    describeTurn(turns, index),
    describeTurn(
      turns,
      turns.findIndex(({ id }) => id === name),
    ),
  ] as const
  return (
    <ResourceView resource={other} rows={4}>
      {(receipt) =>
        receipt?.ledger ? (
          <Comparison
            ledger={receipt.ledger}
            other={ledger}
            names={[names[1], names[0]]}
            lastSequence={session.lastSequence}
            onShow={onShow}
          />
        ) : (
          <p class="muted">That turn has no ledger.</p>
        )
      }
    </ResourceView>
  )
}

const describeTurn = (turns: readonly Turn[], index: number): string =>
  index < 0 || index >= turns.length ? 'Now' : `Turn ${index + 1}`

/** Chooses the pane on a narrow screen. */
const PaneSwitch = ({ pane }: { pane: string }) => (
  <div class="pane-switch row">
    {(['transcript', 'prompt'] as const).map((name) => (
      <button
        key={name}
        type="button"
        class="button small"
        aria-pressed={pane === name}
        onClick={() => replaceSettings({ pane: name })}
      >
        {name === 'transcript' ? 'Transcript' : 'Prompt'}
      </button>
    ))}
  </div>
)
