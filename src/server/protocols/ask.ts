import { parseMessage, wellFormed } from '../../domain/chat.ts'
import type { Ask, Sent } from './dialect.ts'

/** What of a request is the conversation's, and so memory's alone. */
export type Talk = Pick<Ask, 'said' | 'turn' | 'owed' | 'instructions' | 'hasTools' | 'files'>
type Envelope = Omit<Ask, keyof Talk>

/**
 * A request whose conversation is read, and refused if it cannot be, only when memory first looks at it: where memory
 * takes no part, all of it is the model server's business.
 */
export const askOf = (envelope: Envelope, read: () => Talk): Ask => new LazyAsk(envelope, read)

/** The request as if some of its conversation were another. */
export const withTalk = (ask: Ask, { said = ask.said, owed = ask.owed }: Partial<Pick<Talk, 'said' | 'owed'>>): Ask => {
  const { turn, instructions, hasTools, files } = ask
  return new LazyAsk(ask, () => ({ said, turn, owed, instructions, hasTools, files }))
}

class LazyAsk implements Ask {
  readonly body: Ask['body']
  readonly model: string
  readonly streams: boolean
  readonly maxTokens: number | undefined
  readonly session: string | undefined
  readonly previous: string | undefined
  readonly conversation: string | undefined
  private readonly read: () => Talk
  private talk: Talk | undefined

  constructor({ body, model, streams, maxTokens, session, previous, conversation }: Envelope, read: () => Talk) {
    this.body = body
    this.model = model
    this.streams = streams
    this.maxTokens = maxTokens
    this.session = session
    this.previous = previous
    this.conversation = conversation
    this.read = read
  }

  get said(): Talk['said'] {
    return this.known().said
  }

  get turn(): Talk['turn'] {
    return this.known().turn
  }

  get owed(): Talk['owed'] {
    return this.known().owed
  }

  get instructions(): Talk['instructions'] {
    return this.known().instructions
  }

  get hasTools(): Talk['hasTools'] {
    return this.known().hasTools
  }

  get files(): Talk['files'] {
    return this.known().files
  }

  private known(): Talk {
    this.talk ??= this.read()
    return this.talk
  }
}

/** A message as memory reads it. The time is of no account here: memory gives each message its own when it stores it. */
export function sentOf(message: unknown, place: number): Sent {
  const parsed = parseMessage(message, place, 0)
  const { at, role, content, name, calls, answers } = parsed
  if (name === undefined && calls === undefined && answers === undefined) return { at, role, content, place }
  return { ...parsed, place }
}

/** What a message of the chat may hold, none of it checked. */
type Raw = Readonly<Record<'role' | 'content' | 'name' | 'at' | 'tool_calls' | 'function_call', unknown>>

/** The same for a message of plain words, as nearly all of a history are: nothing in it need be looked at any closer. Undefined for any other. */
export function plainlySent(message: unknown, place: number): Sent | undefined {
  if (typeof message !== 'object' || message === null) return undefined
  const { role, content, name, at, tool_calls: calls, function_call: call } = message as Raw
  if ((role !== 'user' && role !== 'assistant') || typeof content !== 'string') return undefined
  if (name !== undefined || at !== undefined || calls !== undefined || call !== undefined) return undefined
  return { at: 0, role, content: wellFormed(content), place }
}

/**
 * The place where the newest turn begins: with the last words of the user, or with the first of several messages in a row.
 * Those with which a client begins are no such row: where it leaves the replies to memory, each of them may have had one.
 * A client that leaves its history to memory may send results of tools alone: then all it sends belongs to the turn.
 */
export function startOfTurn(said: readonly Sent[]): number | undefined {
  let last = said.length - 1
  while (last >= 0 && said[last]?.role !== 'user') last--
  let before = last - 1
  while (before >= 0 && said[before]?.role === 'user') before--
  return said[before < 0 ? Math.max(0, last) : before + 1]?.place
}
