import { sequenceOf, type Tokens } from '../../domain/entry.ts'
import type { ChatMessage, Ledger, Line } from '../../domain/ledger.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import type { Composed } from '../../context/compose.ts'
import { messageCost } from '../../text/cost.ts'
import type { Ask, Body, Dialect, Sent } from '../protocols/dialect.ts'

/** What a model is sent for one turn, and what that costs. */
export type Shown = {
  readonly body: Body
  readonly spent: Tokens
  /** Why the client's messages went through as they were: no room for its newest turn, or nothing memory can show of it. */
  readonly degraded?: 'budget' | 'messages'
  /** The receipt of what memory shows. */
  readonly ledger?: Ledger
}

/** What stands before memory: the words of a session's template. */
export type Preamble = { readonly messages: readonly ChatMessage[]; readonly tokens: Tokens }

type Means = {
  readonly dialect: Dialect
  readonly memory: { readonly tokenizer: Tokenizer }
  readonly preamble: Preamble
}

/**
 * The client's instructions, then memory, then the client's newest turn exactly as it was sent. `own` are the messages of
 * that turn which memory knows too, from sequence number `first` on: the context ends with them.
 */
export function withMemory(means: Means, ask: Ask, context: Composed, own: readonly Sent[], first: number): Shown {
  const { messages } = context
  const split = messages.length - own.length
  const fault = own.length === 0 ? undefined : faultIn(context.ledger, first)
  if (fault !== undefined) return asSent(means, ask, fault)
  if (split < 0 || !own.every((message, place) => messages[split + place]?.role === message.role))
    return asSent(means, ask, 'messages')
  const body = means.dialect.write(ask, behind(means.preamble, messages.slice(0, split)))
  return { body, spent: ask.owed + means.preamble.tokens + context.ledger.spent, ledger: context.ledger }
}

/** Memory, then what the client sent from a place on that memory does not know and is not to know. */
export function besideMemory(means: Means, ask: Ask, context: Composed, from: number): Shown {
  const body = means.dialect.write(ask, behind(means.preamble, context.messages), from)
  return { body, spent: ask.owed + means.preamble.tokens + context.ledger.spent, ledger: context.ledger }
}

const behind = ({ messages }: Preamble, others: readonly ChatMessage[]): readonly ChatMessage[] =>
  messages.length === 0 ? others : [...messages, ...others]

/** The client's messages, unchanged. */
export function asSent(
  { dialect, memory: { tokenizer }, preamble }: Means,
  ask: Ask,
  degraded: NonNullable<Shown['degraded']>,
): Shown {
  const spent = ask.owed + preamble.tokens + tokenizer.overhead.reply + costOf(tokenizer, ask.said)
  return { body: dialect.write(ask, preamble.messages, 0), spent, degraded }
}

export const costOf = (tokenizer: Tokenizer, said: readonly Sent[]): Tokens =>
  said.reduce((sum, message) => sum + messageCost(tokenizer, message), 0)

/** What keeps the newest turn from being shown whole. */
function faultIn(ledger: Ledger, first: number): Shown['degraded'] {
  const cut = ledger.lines.filter((line) => line.verdict !== 'whole' && reaches(line, first))
  if (cut.length === 0) return undefined
  return cut.some((line) => line.verdict === 'shortened' || line.why === 'no room') ? 'budget' : 'messages'
}

const reaches = ({ entries }: Line, first: number): boolean =>
  entries !== null && (sequenceOf(entries[1]) ?? 0) >= first
