import type { Incoming } from '../domain/chat.ts'
import { sequenceOf, type Tokens } from '../domain/entry.ts'
import type { Context, Ledger, Line } from '../domain/ledger.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { messageCost } from '../text/cost.ts'
import { type Ask, isInstruction } from './ask.ts'

/** What a model is sent for one turn, and what that costs. */
export type Shown = {
  readonly messages: readonly unknown[]
  readonly spent: Tokens
  /** Why the client's messages went through as they were: no room for its newest turn, or nothing memory can show of it. */
  readonly degraded?: 'budget' | 'messages'
  /** The receipt of what memory shows. */
  readonly ledger?: Ledger
}

/** The client's instructions, then memory, then the client's newest turn exactly as it was sent. `first` is the sequence number the turn begins with. */
export function withMemory(ask: Ask, context: Context, first: number, tokenizer: Tokenizer): Shown {
  const own = ask.turn.filter((message) => !isInstruction(message))
  const split = context.messages.length - own.length
  const atEnd = context.messages.slice(Math.max(0, split))
  const fault = faultIn(context.ledger, first)
  if (fault !== undefined) return asSent(ask, tokenizer, fault)
  if (own.length === 0 || !own.every((message, place) => atEnd[place]?.role === message.role)) return asSent(ask, tokenizer, 'messages')
  const messages = [...ask.instructions.map(rawOf), ...context.messages.slice(0, split), ...ask.turn.map(rawOf)]
  return { messages, spent: ask.owed + context.ledger.spent, ledger: context.ledger }
}

/** The client's messages, unchanged. */
export function asSent(ask: Ask, tokenizer: Tokenizer, degraded: NonNullable<Shown['degraded']>): Shown {
  const said = ask.sent.filter((message) => !isInstruction(message))
  const spent = said.reduce((sum, message) => sum + messageCost(tokenizer, message), ask.owed + tokenizer.overhead.reply)
  return { messages: ask.sent.map(rawOf), spent, degraded }
}

/** What keeps the newest turn from being shown whole. */
function faultIn(ledger: Ledger, first: number): Shown['degraded'] {
  const cut = ledger.lines.filter((line) => reaches(line, first) && line.verdict !== 'whole')
  if (cut.length === 0) return undefined
  return cut.some((line) => line.verdict === 'shortened' || line.why === 'no room') ? 'budget' : 'messages'
}

const reaches = ({ entries }: Line, first: number): boolean => entries !== null && (sequenceOf(entries[1]) ?? 0) >= first
const rawOf = ({ raw }: { readonly raw: Incoming }): Incoming => raw
