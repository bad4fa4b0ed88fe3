import { useEffect, useState } from 'preact/hooks'
import type { Context, Ledger, LedgerLine } from '../../api/types.ts'
import { MessageText } from '../../components/messageText.tsx'
import { formatCount, formatNumber } from '../../format.ts'
import { formatEntries, formatReason, formatSource, messageRange, verdictTexts } from './ledgerLines.ts'
import type { Messages } from './useMessages.ts'

/** Texts of summaries, facts and knowledge by id, with the memory that they come from. */
export type DerivedTexts = ReadonlyMap<string, string>

/** Messages of one line that are rendered without being asked for. */
const maxShownMessages = 12

/** The context that a model would get now, with its exact text. */
export function CurrentPrompt({ context: { messages, ledger } }: { context: Context }) {
  return (
    <div class="prompt">
      <p class="hint">The exact text that a model would get now, with placeholders for secrets.</p>
      <ol>
        {messages.map((message, index) => (
          <li key={index}>
            <div class="prompt-part whole">
              <b class={`role ${message.role}`}>{message.role}</b>
              <MessageText
                text={typeof message.content === 'string' ? message.content : JSON.stringify(message.content)}
              />
            </div>
            {ledger.cacheable.messages === index + 1 && <CacheBoundary tokens={ledger.cacheable.tokens} />}
          </li>
        ))}
      </ol>
    </div>
  )
}

const CacheBoundary = ({ tokens }: { tokens: number }) => (
  <p class="cache-boundary">The cacheable prefix ends here, after {formatCount(tokens, 'token')}.</p>
)

type PastPromptProps = {
  ledger: Ledger
  messages: Messages
  derived: DerivedTexts
  selected: LedgerLine | undefined
  onSelect: (line: LedgerLine) => void
}

/** The context of an earlier turn, put together from the ids of its receipt, which contains no text. */
export function PastPrompt({ ledger, messages, derived, selected, onSelect }: PastPromptProps) {
  return (
    <div class="prompt">
      <p class="hint">
        Put together from the ids of the receipt, which contains no text. Texts that were shortened or have changed
        since are marked.
      </p>
      {ledger.cacheable.tokens > 0 && (
        <p class="hint">
          The first {formatNumber(ledger.cacheable.tokens)} tokens ({formatCount(ledger.cacheable.messages, 'message')})
          are the cacheable prefix.
        </p>
      )}
      <ol>
        {groupLines(ledger).map(({ line, hidden }, index) => (
          <li key={index}>
            {hidden === undefined ? (
              <PromptLine
                line={line}
                messages={messages}
                derived={derived}
                isSelected={line === selected}
                onSelect={onSelect}
              />
            ) : (
              <p class={`hidden-lines ${line.verdict}`}>
                {formatCount(hidden, 'entry', 'entries')}: {formatReason(line)}
              </p>
            )}
          </li>
        ))}
      </ol>
    </div>
  )
}

type LineGroup = {
  readonly line: LedgerLine
  /** Number of entries without text in the prompt; undefined for a line with text. */
  readonly hidden?: number
}

/** Lines in order; neighbouring lines without text and with the same reason are one group. */
function groupLines({ lines }: Ledger): readonly LineGroup[] {
  const groups: LineGroup[] = []
  for (const line of lines) {
    if (line.entries === null) continue
    const isShown = line.tokens > 0
    const last = groups.at(-1)
    if (!isShown && last?.hidden !== undefined && last.line.verdict === line.verdict && last.line.why === line.why)
      groups[groups.length - 1] = { line: last.line, hidden: last.hidden + line.count }
    else groups.push(isShown ? { line } : { line, hidden: line.count })
  }
  return groups
}

type PromptLineProps = {
  line: LedgerLine
  messages: Messages
  derived: DerivedTexts
  isSelected: boolean
  onSelect: (line: LedgerLine) => void
}

function PromptLine({ line, messages, derived, isSelected, onSelect }: PromptLineProps) {
  const range = messageRange(line)
  return (
    <section class={`prompt-part ${line.verdict} ${isSelected ? 'highlighted' : ''}`}>
      <button type="button" class="prompt-head" aria-pressed={isSelected} onClick={() => onSelect(line)}>
        <b>{line.band}</b>
        <span class="mono">{formatEntries(line)}</span>
        <span class="prompt-reason">
          {line.verdict === 'whole' ? '' : `${verdictTexts[line.verdict]}, `}
          {formatReason(line)}
          {line.from !== undefined && `, from ${formatSource(line)}`}
        </span>
        <span class="push">{formatNumber(line.tokens)}</span>
      </button>
      {line.verdict === 'shortened' && (
        <p class="hint">
          The model got {formatCount(line.tokens, 'token')} of this. The shortened text is not stored; this is the
          original:
        </p>
      )}
      {range === undefined ? (
        <DerivedText line={line} derived={derived} />
      ) : (
        <LineMessages first={range[0]} last={range[1]} messages={messages} />
      )}
    </section>
  )
}

function LineMessages({ first, last, messages }: { first: number; last: number; messages: Messages }) {
  const [limit, setLimit] = useState(maxShownMessages)
  const end = Math.min(last, first + limit - 1)
  useEffect(() => messages.ensure(first, end), [first, end])
  const sequences = Array.from({ length: end - first + 1 }, (_, index) => first + index)
  return (
    <>
      {sequences.map((sequence) => {
        const message = messages.get(sequence)
        if (message === undefined) return <p key={sequence} class="loading-row" />
        if (message === 'missing')
          return (
            <p key={sequence} class="hint">
              m{sequence} is not stored any more.
            </p>
          )
        return (
          <div key={sequence} class="prompt-message">
            <b class={`role ${message.role}`}>{message.name ?? message.role}</b>
            <MessageText text={message.content} />
          </div>
        )
      })}
      {end < last && (
        <button type="button" class="button small" onClick={() => setLimit(limit + 100)}>
          Show {formatCount(last - end, 'more message', 'more messages')}
        </button>
      )}
    </>
  )
}

function DerivedText({ line, derived }: { line: LedgerLine; derived: DerivedTexts }) {
  const ids = [...new Set(line.entries ?? [])]
  return (
    <>
      {ids.map((id) => {
        const text = derived.get(`${line.from ?? 'session'} ${id}`)
        return text === undefined ? (
          <p key={id} class="hint">
            {line.from === 'files' ? `A passage of a file, ${id}.` : `${id} is not stored any more in this form.`}
          </p>
        ) : (
          <div key={id} class="prompt-message">
            <MessageText text={text} />
          </div>
        )
      })}
      {line.count > ids.length && (
        <p class="hint">… and {formatCount(line.count - ids.length, 'entry', 'entries')} between.</p>
      )}
    </>
  )
}
