import type { Incoming } from '../../domain/chat.ts'
import { isObject } from '../../domain/checks.ts'
import type { ChatMessage } from '../../domain/ledger.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { textAt } from '../../providers/json.ts'
import { preludeCost } from '../../text/cost.ts'
import { sessionIn } from '../auth/identity.ts'
import { createChatReplyParser, parseChatReply } from './chatReply.ts'
import { normalizeToolCalls, restoreToolCalls } from './chatToolCalls.ts'
import { addFilePart, addMediaUrl, findResentMedia, formatPlaceholder, toTextPart } from './media.ts'
import type { Ask, Body, Dialect, FilePart, Sent } from './protocol.ts'
import {
  createLazyRequest,
  findTurnStart,
  type ParsedConversation,
  parseClientMessage,
  parsePlainMessage,
} from './request.ts'
import { asArray, asNumber, limitCount, readType, requireMessages } from './validation.ts'

/** OpenAI chat completions. */
export const chat: Dialect = {
  name: 'chat',
  path: '/chat/completions',
  read: parseRequest,
  write: buildRequest,
  listener: createChatReplyParser,
  hear: parseChatReply,
  problem: (error) => ({ error }),
  failure: (error) => `data: ${JSON.stringify({ error })}\n\n`,
}

function parseRequest(body: Body, tokenizer: Tokenizer): Ask {
  return createLazyRequest(
    {
      body,
      model: textAt(body, 'model'),
      streams: body.stream === true,
      maxTokens: asNumber(body.max_completion_tokens ?? body.max_tokens),
      session: sessionIn(body),
    },
    () => parseConversation(body, tokenizer),
  )
}

/** Parses the messages in a single pass: every turn carries the whole history. */
function parseConversation(body: Body, tokenizer: Tokenizer): ParsedConversation {
  const files: FilePart[] = []
  const messages: Sent[] = []
  const instructions: Sent[] = []
  const list = requireMessages(body)
  for (let index = 0; index < list.length; index++) {
    const message = parsePlainMessage(list[index], index) ?? parseClientMessage(normalize(list[index], files), index)
    if (message.role === 'system') instructions.push(message)
    else messages.push(message)
  }
  const tools = readToolDefinitions(body)
  return {
    said: messages,
    turn: findTurnStart(messages) ?? list.length,
    owed: instructions.length === 0 && tools.length === 0 ? 0 : preludeCost(tokenizer, instructions, tools),
    instructions: instructions.map(({ content }) => content),
    hasTools: tools.length > 0,
    files,
  }
}

/** Reads `tools` and the deprecated `functions`. */
function readToolDefinitions({ tools, functions }: Body): readonly unknown[] {
  if (tools === undefined && functions === undefined) return []
  return limitCount(Array.isArray(functions) ? [...asArray(tools), ...functions] : asArray(tools), 'tools')
}

function buildRequest(request: Ask, memory: readonly ChatMessage[], from = request.turn): Body {
  const list = request.body.messages as readonly Incoming[]
  const resent = findResentMedia(request.said, list, from)
  const restored = restoreToolCalls(memory, request.body)
  const shown =
    resent.size === 0
      ? restored
      : restored.map(
          (message) => (message.role === 'user' ? resent.get(textAt(message, 'content')) : undefined) ?? message,
        )
  const messages = (shown as readonly unknown[]).concat(list.slice(from))
  return {
    ...request.body,
    messages: request.instructions.length === 0 ? messages : selectInstructions(list, from).concat(messages),
  }
}

function selectInstructions(messages: readonly Incoming[], end: number): unknown[] {
  const found: unknown[] = []
  for (let index = 0; index < end; index++) {
    const role = messages[index]?.role
    if (role === 'system' || role === 'developer') found.push(messages[index])
  }
  return found
}

/** Converts all tool calls to function calls and media to placeholders; collects files in `files`. */
function normalize(message: unknown, files: FilePart[]): unknown {
  if (!isObject(message)) return message
  const normalized = normalizeToolCalls(message)
  if (!Array.isArray(normalized.content)) return normalized
  // Files in tool results get a placeholder only: the user did not upload them.
  const collected = normalized.role === 'tool' ? [] : files
  return { ...normalized, content: normalized.content.map((part) => normalizePart(part, collected)) }
}

function normalizePart(part: unknown, files: FilePart[]): unknown {
  const type = readType(part)
  if (type === 'image_url')
    return addMediaUrl('image', textAt(part, 'image_url', 'url') || textAt(part, 'image_url'), files)
  if (type === 'input_audio')
    return toTextPart(formatPlaceholder('audio', Buffer.from(textAt(part, 'input_audio', 'data'), 'base64')))
  if (type !== 'file') return part
  return addFilePart(
    {
      name: textAt(part, 'file', 'filename'),
      data: textAt(part, 'file', 'file_data'),
      address: textAt(part, 'file', 'file_id'),
    },
    files,
  )
}
