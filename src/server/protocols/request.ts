import { parseMessage, wellFormed } from '../../domain/chat.ts'
import type { Ask, Sent } from './protocol.ts'

/** Fields of a request that describe its conversation. */
export type ParsedConversation = Pick<Ask, 'said' | 'turn' | 'owed' | 'instructions' | 'hasTools' | 'files'>
type Envelope = Omit<Ask, keyof ParsedConversation>

/**
 * Creates a request whose conversation is parsed and validated on first access. Requests that bypass memory are therefore
 * validated by the model server alone.
 */
export const createLazyRequest = (envelope: Envelope, parse: () => ParsedConversation): Ask =>
  new LazyRequest(envelope, parse)

/** Copies a request with other messages or another prompt overhead. */
export const withTalk = (
  request: Ask,
  { said: messages = request.said, owed: overhead = request.owed }: Partial<Pick<ParsedConversation, 'said' | 'owed'>>,
): Ask => {
  const { turn, instructions, hasTools, files } = request
  return new LazyRequest(request, () => ({ said: messages, turn, owed: overhead, instructions, hasTools, files }))
}

class LazyRequest implements Ask {
  readonly body: Ask['body']
  readonly model: string
  readonly streams: boolean
  readonly maxTokens: number | undefined
  readonly session: string | undefined
  readonly previous: string | undefined
  readonly conversation: string | undefined
  private readonly parse: () => ParsedConversation
  private parsed: ParsedConversation | undefined

  constructor(envelope: Envelope, parse: () => ParsedConversation) {
    this.body = envelope.body
    this.model = envelope.model
    this.streams = envelope.streams
    this.maxTokens = envelope.maxTokens
    this.session = envelope.session
    this.previous = envelope.previous
    this.conversation = envelope.conversation
    this.parse = parse
  }

  get said(): Ask['said'] {
    return this.getConversation().said
  }

  get turn(): Ask['turn'] {
    return this.getConversation().turn
  }

  get owed(): Ask['owed'] {
    return this.getConversation().owed
  }

  get instructions(): Ask['instructions'] {
    return this.getConversation().instructions
  }

  get hasTools(): Ask['hasTools'] {
    return this.getConversation().hasTools
  }

  get files(): Ask['files'] {
    return this.getConversation().files
  }

  private getConversation(): ParsedConversation {
    this.parsed ??= this.parse()
    return this.parsed
  }
}

/** Parses one message. Its time is 0: memory assigns the time when it stores the message. */
export function parseClientMessage(message: unknown, index: number): Sent {
  const parsed = parseMessage(message, index, 0)
  const { at, role, content, name, calls, answers } = parsed
  if (name === undefined && calls === undefined && answers === undefined) return { at, role, content, place: index }
  return { ...parsed, place: index }
}

/** Unvalidated fields of a chat message. */
type RawMessage = Readonly<Record<'role' | 'content' | 'name' | 'at' | 'tool_calls' | 'function_call', unknown>>

/**
 * Fast path of `parseClientMessage` for a user or assistant message that has only text, as most of a history does.
 * Returns undefined for any other message.
 */
export function parsePlainMessage(message: unknown, index: number): Sent | undefined {
  if (typeof message !== 'object' || message === null) return undefined
  const { role, content, name, at, tool_calls: calls, function_call: call } = message as RawMessage
  if ((role !== 'user' && role !== 'assistant') || typeof content !== 'string') return undefined
  if (name !== undefined || at !== undefined || calls !== undefined || call !== undefined) return undefined
  return { at: 0, role, content: wellFormed(content), place: index }
}

/**
 * Finds the client's index at which the newest turn starts: the first of the user messages in a row that end with the last
 * user message. A list that begins with several user messages is not such a row, because the client may leave the replies
 * between them to memory. Without any user message (tool results only) the turn starts with the first message.
 */
export function findTurnStart(messages: readonly Sent[]): number | undefined {
  let last = messages.length - 1
  while (last >= 0 && messages[last]?.role !== 'user') last--
  let previous = last - 1
  while (previous >= 0 && messages[previous]?.role === 'user') previous--
  return messages[previous < 0 ? Math.max(0, last) : previous + 1]?.place
}

/** Wraps an instruction in a system message, so that its tokens can be counted. */
export const toSystemMessage = (content: string): { readonly role: string; readonly content: string } => ({
  role: 'system',
  content,
})
