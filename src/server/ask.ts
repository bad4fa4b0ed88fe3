import { type Incoming, type Parsed, parseMessage } from '../domain/chat.ts'
import type { Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { messageCost, toolsCost } from '../text/cost.ts'
import { Refusal } from './problem.ts'

/** A message of the client's: as it was sent, and as memory reads it. */
export type Sent = Parsed & { readonly raw: Incoming }

/** A chat completion as the client asks for it. What it sends is its own: instructions and tools are never shortened, nor is its newest turn. */
export type Ask = {
  readonly body: Readonly<Record<string, unknown>>
  /** Everything sent, in order. */
  readonly sent: readonly Sent[]
  /** Instructions that stand before the newest turn. */
  readonly instructions: readonly Sent[]
  /** The newest turn: the last message of the user and all that follows it, instructions too. */
  readonly turn: readonly Sent[]
  /** What instructions and tools cost. */
  readonly owed: Tokens
}

/** Checks a request for a chat completion, as far as memory is concerned; the rest is the model server's business. */
export function parseAsk(body: Readonly<Record<string, unknown>>, tokenizer: Tokenizer): Ask {
  const { messages, tools, functions } = body
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new Refusal(
      400,
      'missing_messages',
      'messages is missing: it must be a list with at least one message such as { "role": "user", "content": "Hello" }.',
      'messages',
    )
  }
  // The time is of no account here: memory gives each message its own when it stores it.
  const sent = messages.map((message, place): Sent => ({ ...parseMessage(message, place, 0), raw: message as Incoming }))
  const start = startOfTurn(sent)
  const owed = sent.filter(isInstruction).reduce((sum, message) => sum + messageCost(tokenizer, message), 0)
  return {
    body,
    sent,
    instructions: sent.slice(0, start).filter(isInstruction),
    turn: sent.slice(start),
    owed: owed + toolsCost(tokenizer, [...listOf(tools), ...listOf(functions)]),
  }
}

export const isInstruction = (message: Pick<Parsed, 'role'>): boolean => message.role === 'system'

/** A client that leaves its history to memory may send tool results alone: then all it sends belongs to the newest turn. */
function startOfTurn(sent: readonly Sent[]): number {
  const asked = sent.findLastIndex((message) => message.role === 'user')
  const first = sent.findIndex((message) => !isInstruction(message))
  return asked >= 0 ? asked : first >= 0 ? first : sent.length
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
