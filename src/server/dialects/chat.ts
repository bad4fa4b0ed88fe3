import { type Incoming, parseMessage } from '../../domain/chat.ts'
import { isObject } from '../../domain/checks.ts'
import type { ChatMessage } from '../../domain/ledger.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { textAt } from '../../models/json.ts'
import { preludeCost } from '../../text/cost.ts'
import { sessionIn } from '../gate/identity.ts'
import { type Problem, Refusal } from '../problem.ts'
import { askOf, startOfTurn } from './ask.ts'
import { withOwnCalls, withPlainCalls } from './chatCalls.ts'
import { chatListener, hearChat } from './chatReply.ts'
import { fewIn } from './checks.ts'
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
  return askOf(envelope, () => {
    const files: FilePart[] = []
    // The time is of no account here: memory gives each message its own when it stores it.
    const sent = messagesIn(body).map((message, place): Sent => ({ ...parseMessage(readable(message, files), place, 0), place }))
    const instructions = sent.filter(isInstruction)
    const said = sent.filter((message) => !isInstruction(message))
    const definitions = fewIn([...listOf(body.tools), ...listOf(body.functions)], 'tools')
    return {
      said,
      turn: startOfTurn(said) ?? sent.length,
      owed: preludeCost(tokenizer, instructions, definitions),
      instructions: instructions.map(({ content }) => content),
      hasTools: definitions.length > 0,
      files,
    }
  })
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
  const messages = ask.body.messages as readonly Incoming[]
  const instructions = messages.slice(0, from).filter(({ role }) => role === 'system' || role === 'developer')
  const resent = resentMedia(ask.said, messages, from)
  const shown = withOwnCalls(memory, ask.body).map((message) => (message.role === 'user' ? resent.get(textAt(message, 'content')) : undefined) ?? message)
  return { ...ask.body, messages: [...instructions, ...shown, ...messages.slice(from)] }
}

const isInstruction = (message: Sent): boolean => message.role === 'system'

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
  const type = textAt(part, 'type')
  if (type === 'image_url') return urlPart('image', textAt(part, 'image_url', 'url') || textAt(part, 'image_url'), files)
  if (type === 'input_audio') return textPart(placeholder('audio', Buffer.from(textAt(part, 'input_audio', 'data'), 'base64')))
  if (type !== 'file') return part
  return filePart({ name: textAt(part, 'file', 'filename'), data: textAt(part, 'file', 'file_data'), where: textAt(part, 'file', 'file_id') }, files)
}

/** An instruction in plain text as a message, by which it is priced. */
export const instruction = (content: string): { readonly role: string; readonly content: string } => ({ role: 'system', content })
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
export const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)
