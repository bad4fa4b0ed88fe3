import type { Incoming } from '../../domain/chat.ts'
import { isObject } from '../../domain/checks.ts'
import type { ChatMessage } from '../../domain/ledger.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { textAt } from '../../providers/json.ts'
import { preludeCost } from '../../text/cost.ts'
import { sessionIn } from '../auth/identity.ts'
import { type Problem, Refusal } from '../http/httpError.ts'
import { askOf, plainlySent, sentOf, startOfTurn, type Talk } from './ask.ts'
import { withOwnCalls, withPlainCalls } from './chatCalls.ts'
import { chatListener, hearChat } from './chatReply.ts'
import { fewIn, typeOf } from './checks.ts'
import type { Ask, Body, Dialect, FilePart, Sent } from './dialect.ts'
import { filePart, placeholder, resentMedia, textPart, urlPart } from './media.ts'

/** OpenAI's chat completions. */
export const chat: Dialect = {
  name: 'chat',
  path: '/chat/completions',
  read,
  write,
  listener: chatListener,
  hear: hearChat,
  problem: (error) => ({ error }),
  failure: (error: Problem['error']) => `data: ${JSON.stringify({ error })}\n\n`,
}

function read(body: Body, tokenizer: Tokenizer): Ask {
  const envelope = {
    body,
    model: textAt(body, 'model'),
    streams: body.stream === true,
    maxTokens: numberOf(body.max_completion_tokens ?? body.max_tokens),
    session: sessionIn(body),
  }
  return askOf(envelope, () => talkIn(body, tokenizer))
}

/** All of a history comes with each turn of it, so it is gone through once. */
function talkIn(body: Body, tokenizer: Tokenizer): Talk {
  const files: FilePart[] = []
  const said: Sent[] = []
  const instructions: Sent[] = []
  const messages = messagesIn(body)
  for (let place = 0; place < messages.length; place++) {
    const message = plainlySent(messages[place], place) ?? sentOf(readable(messages[place], files), place)
    if (message.role === 'system') instructions.push(message)
    else said.push(message)
  }
  const definitions = definitionsIn(body)
  return {
    said,
    turn: startOfTurn(said) ?? messages.length,
    owed: instructions.length === 0 && definitions.length === 0 ? 0 : preludeCost(tokenizer, instructions, definitions),
    instructions: instructions.map(({ content }) => content),
    hasTools: definitions.length > 0,
    files,
  }
}

/** The definitions of what a client's model may call, under either of the names they go by. */
function definitionsIn({ tools, functions }: Body): readonly unknown[] {
  if (tools === undefined && functions === undefined) return []
  return fewIn(Array.isArray(functions) ? [...listOf(tools), ...functions] : listOf(tools), 'tools')
}

/** The messages of a request; without any there is nothing to answer. */
export function messagesIn({ messages }: Body): readonly unknown[] {
  if (Array.isArray(messages) && messages.length > 0) return fewIn(messages, 'messages')
  throw new Refusal(
    400,
    'missing_messages',
    'messages is missing: it must be a list with at least one message such as { "role": "user", "content": "Hello" }.',
    'messages',
  )
}

function write(ask: Ask, memory: readonly ChatMessage[], from = ask.turn): Body {
  const sent = ask.body.messages as readonly Incoming[]
  const resent = resentMedia(ask.said, sent, from)
  const own = withOwnCalls(memory, ask.body)
  const shown =
    resent.size === 0
      ? own
      : own.map((message) => (message.role === 'user' ? resent.get(textAt(message, 'content')) : undefined) ?? message)
  const messages = (shown as readonly unknown[]).concat(sent.slice(from))
  return {
    ...ask.body,
    messages: ask.instructions.length === 0 ? messages : instructionsIn(sent, from).concat(messages),
  }
}

function instructionsIn(messages: readonly Incoming[], until: number): unknown[] {
  const found: unknown[] = []
  for (let place = 0; place < until; place++) {
    const role = messages[place]?.role
    if (role === 'system' || role === 'developer') found.push(messages[place])
  }
  return found
}

/** A message whose calls are those of functions, and whose pictures and sounds are told in words; files in it are found on the way. */
function readable(message: unknown, files: FilePart[]): unknown {
  if (!isObject(message)) return message
  const plain = withPlainCalls(message)
  if (!Array.isArray(plain.content)) return plain
  // What a tool brings along was not sent by anybody: a file in it is told of, and no upload.
  const found = plain.role === 'tool' ? [] : files
  return { ...plain, content: plain.content.map((part) => partOf(part, found)) }
}

function partOf(part: unknown, files: FilePart[]): unknown {
  const type = typeOf(part)
  if (type === 'image_url')
    return urlPart('image', textAt(part, 'image_url', 'url') || textAt(part, 'image_url'), files)
  if (type === 'input_audio')
    return textPart(placeholder('audio', Buffer.from(textAt(part, 'input_audio', 'data'), 'base64')))
  if (type !== 'file') return part
  return filePart(
    {
      name: textAt(part, 'file', 'filename'),
      data: textAt(part, 'file', 'file_data'),
      where: textAt(part, 'file', 'file_id'),
    },
    files,
  )
}

/** An instruction in plain text as a message, by which it is priced. */
export const instruction = (content: string): { readonly role: string; readonly content: string } => ({
  role: 'system',
  content,
})
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
export const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)
