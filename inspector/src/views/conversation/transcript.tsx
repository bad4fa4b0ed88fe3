import type { Ref } from 'preact'
import type { LedgerLine, TranscriptMessage } from '../../api/types.ts'
import { memo } from '../../components/memo.ts'
import { MessageText } from '../../components/messageText.tsx'
import { VirtualList, type VirtualListHandle } from '../../components/virtualList.tsx'
import { formatNumber, formatShortTime, formatTime } from '../../format.ts'
import { verdictTexts } from './ledgerLines.ts'
import type { Messages } from './useMessages.ts'

/** Average pixels of a row before it was measured. */
const estimatedRowPx = 84

type TranscriptProps = {
  messages: Messages
  lastSequence: number
  /** Treatment of each message in the selected context. */
  lineOf: (sequence: number) => LedgerLine | undefined
  selected: LedgerLine | undefined
  /** Message that an address or a source points to. */
  target: { readonly sequence: number; readonly span?: readonly [number, number] | undefined } | undefined
  handle: Ref<VirtualListHandle>
}

/** The whole transcript, with the treatment of each message in the selected turn at its edge. */
export function Transcript({ messages, lastSequence, lineOf, selected, target, handle }: TranscriptProps) {
  const renderRow = (index: number) => {
    const message = messages.get(index + 1)
    if (message === undefined) return <div class="message loading-message" />
    if (message === 'missing') return null
    const line = lineOf(message.sequence)
    const isTarget = target?.sequence === message.sequence
    return (
      <MessageRow
        message={message}
        line={line}
        isHighlighted={isTarget || (line !== undefined && line === selected)}
        span={isTarget ? target.span : undefined}
      />
    )
  }
  return (
    <VirtualList
      label="Messages"
      count={lastSequence}
      estimatedHeight={estimatedRowPx}
      renderRow={renderRow}
      onVisible={(first, last) => messages.ensure(first + 1, last + 1)}
      initialIndex={(target?.sequence ?? lastSequence) - 1}
      handle={handle}
    />
  )
}

type MessageRowProps = {
  message: TranscriptMessage
  line?: LedgerLine | undefined
  isHighlighted?: boolean
  span?: readonly [number, number] | undefined
}

const MessageRow = memo(({ message, line, isHighlighted = false, span }: MessageRowProps) => {
  const { id, role, name, at, tokens, content, toolCalls = [], toolCallId } = message
  return (
    <article
      class={`message ${line?.verdict ?? 'outside'} ${isHighlighted ? 'highlighted' : ''}`}
      aria-label={`${id}, ${name ?? role}`}
    >
      <header class="message-header">
        <b class={`role ${role}`}>{name ?? role}</b>
        <span class="muted mono">{id}</span>
        <time class="muted" dateTime={new Date(at).toISOString()} title={formatTime(at)}>
          {formatShortTime(at)}
        </time>
        {line !== undefined && (
          <span class="muted verdict-text" title={line.why}>
            {verdictTexts[line.verdict]}
          </span>
        )}
        <span class="muted push">{formatNumber(tokens)}</span>
      </header>
      {toolCallId !== undefined && <p class="hint">Result of {toolCallId}</p>}
      <MessageText text={content} {...(span !== undefined && { span })} />
      {toolCalls.map((call) => (
        <p key={call.id} class="tool-call mono">
          {call.name}({call.arguments})
        </p>
      ))}
    </article>
  )
})
