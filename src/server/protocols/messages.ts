import { toAnthropic } from '../../context/anthropic.ts'
import { isObject } from '../../domain/checks.ts'
import type { AnthropicMessage, ChatMessage } from '../../domain/ledger.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { parseJson, textAt } from '../../providers/json.ts'
import { preludeCost } from '../../text/cost.ts'
import type { Problem } from '../http/httpError.ts'
import { findResentMedia } from './media.ts'
import {
  type Block,
  isToolResult,
  type RawMessage,
  requireRawMessage,
  toBlocks,
  toChatMessages,
} from './messagesBlocks.ts'
import { createMessagesReplyParser, parseMessagesReply } from './messagesReply.ts'
import type { Ask, Body, Dialect, FilePart } from './protocol.ts'
import { createLazyRequest, type ParsedConversation, parseClientMessage, toSystemMessage } from './request.ts'
import { asArray, asNumber, limitCount, requireMessages, requireParts } from './validation.ts'

/** Anthropic Messages. */
export const messages: Dialect = {
  name: 'messages',
  path: '/messages',
  read: parseRequest,
  write: buildRequest,
  listener: createMessagesReplyParser,
  hear: parseMessagesReply,
  problem: formatError,
  failure: (error) => `event: error\ndata: ${JSON.stringify(formatError(error))}\n\n`,
}

function parseRequest(body: Body, tokenizer: Tokenizer): Ask {
  return createLazyRequest(
    {
      body,
      model: textAt(body, 'model'),
      streams: body.stream === true,
      maxTokens: asNumber(body.max_tokens),
      session: parseSession(textAt(body, 'metadata', 'user_id')),
    },
    () => parseConversation(body, tokenizer),
  )
}

function parseConversation(body: Body, tokenizer: Tokenizer): ParsedConversation {
  const rawMessages = requireMessages(body).map(requireRawMessage)
  requireParts(body.system ?? '', 'system', (type) => type === 'text')
  const files: FilePart[] = []
  const converted = rawMessages.flatMap((raw, index) =>
    toChatMessages(raw, files).map((message) => ({ message, index })),
  )
  // The limit is checked again, because each tool result becomes a message of its own.
  const all = limitCount(converted, 'messages').map(({ message, index }) => parseClientMessage(message, index))
  const instructions = [
    ...toBlocks(body.system).map((block) => textAt(block, 'text')),
    ...all.filter(({ role }) => role === 'system').map(({ content }) => content),
  ].filter(Boolean)
  const tools = limitCount(asArray(body.tools), 'tools').map(toChatTool)
  return {
    said: all.filter(({ role }) => role !== 'system'),
    turn: findTurnStart(rawMessages),
    owed: preludeCost(tokenizer, instructions.map(toSystemMessage), tools),
    instructions,
    hasTools: tools.length > 0,
    files,
  }
}

function buildRequest(request: Ask, memory: readonly ChatMessage[], from = request.turn): Body {
  const list = request.body.messages as readonly RawMessage[]
  const { system, messages: shown } = toAnthropic(memory)
  const instructions = list.slice(0, from).filter(({ role }) => role === 'system')
  const systemBlocks = [
    ...instructions.flatMap(({ content }) => toBlocks(content)),
    ...(system === '' ? [] : toBlocks(system)),
  ]
  const restored = restoreMedia(shown, findResentMedia(request.said, list, from))
  return {
    ...request.body,
    ...(systemBlocks.length === 0 ? {} : { system: appendSystem(request.body.system, systemBlocks) }),
    messages: joinTurns(restored, list.slice(from)),
  }
}

/** Replaces media placeholders in memory messages with the media that the client sent again. */
function restoreMedia(
  shown: readonly AnthropicMessage[],
  resent: ReadonlyMap<string, RawMessage>,
): readonly RawMessage[] {
  if (resent.size === 0) return shown
  return shown.map((message): RawMessage => {
    const { role, content } = message
    if (role !== 'user') return message
    if (typeof content === 'string') return resent.get(content) ?? message
    return {
      role,
      content: content.flatMap((block) =>
        toBlocks((block.type === 'text' && resent.get(block.text)?.content) || [block]),
      ),
    }
  })
}

/** Appends blocks to the client's system prompt, which stays first and unchanged: it may carry cache markers. */
const appendSystem = (own: unknown, blocks: readonly Block[]): readonly Block[] => [
  ...(own === '' ? [] : toBlocks(own)),
  ...blocks,
]

/** Joins memory and the client's messages. Two adjacent user messages become one, with tool results first, as the API requires. */
function joinTurns(memory: readonly RawMessage[], own: readonly RawMessage[]): readonly RawMessage[] {
  const [last, first] = [memory.at(-1), own[0]]
  if (last?.role !== 'user' || first?.role !== 'user') return [...memory, ...own]
  const blocks = [...toBlocks(last.content), ...toBlocks(first.content)]
  const content = [...blocks.filter(isToolResult), ...blocks.filter((block) => !isToolResult(block))]
  return [...memory.slice(0, -1), { ...first, content }, ...own.slice(1)]
}

/**
 * Finds the index of the newest user message that is not only tool results, or of the first of several in a row. User
 * messages at the start of the list are not such a row: memory may hold the replies between them. A user message with tool
 * results beside its text continues a turn that started earlier. If the client sends only tool results, all messages
 * belong to the turn.
 */
function findTurnStart(list: readonly RawMessage[]): number {
  const isUserMessage = ({ role, content }: RawMessage, test: (blocks: readonly Block[]) => boolean): boolean =>
    role === 'user' && test(toBlocks(content))
  const isWithoutResults = (message: RawMessage): boolean =>
    isUserMessage(message, (blocks) => !blocks.some(isToolResult))
  const question = list.findLastIndex((message) => isUserMessage(message, (blocks) => !blocks.every(isToolResult)))
  const start = list.slice(0, question + 1).findLastIndex(isWithoutResults)
  const previous = list
    .slice(0, Math.max(0, start))
    .findLastIndex((message) => message.role !== 'system' && !isWithoutResults(message))
  if (start >= 0 && previous < 0) return start
  const first = list.findIndex(({ role }, index) => index > previous && role !== 'system')
  return first >= 0 ? first : list.length
}

/** Guards JSON.parse: a failed attempt costs as much as parsing ten messages. */
const looksLikeJsonObject = /^\s*\{/

/** Extracts the session id from `metadata.user_id`. Coding agents put it in a JSON object or after `_session_`. */
function parseSession(userId: string): string | undefined {
  const session =
    (looksLikeJsonObject.test(userId) && textAt(parseJson(userId), 'session_id')) ||
    /_session_([\w-]+)$/.exec(userId)?.[1] ||
    userId
  return session.trim() === '' ? undefined : session
}

/** Converts a tool to its chat completions form, so that its tokens can be counted. */
function toChatTool(tool: unknown): unknown {
  if (!isObject(tool) || tool.input_schema === undefined) return tool
  const { input_schema: parameters, cache_control: _cacheControl, ...definition } = tool
  return { type: 'function', function: { ...definition, parameters } }
}

const errorTypesByType: Readonly<Record<string, string>> = {
  invalid_request_error: 'invalid_request_error',
  authentication_error: 'authentication_error',
  permission_error: 'permission_error',
  not_found_error: 'not_found_error',
  conflict_error: 'invalid_request_error',
  moved_error: 'not_found_error',
  rate_limit_error: 'rate_limit_error',
  timeout_error: 'timeout_error',
}
const errorTypesByCode: Readonly<Record<string, string>> = {
  body_too_large: 'request_too_large',
  closed: 'overloaded_error',
  busy: 'overloaded_error',
}

/** Formats an error with one of Anthropic's error types; `api_error` when none fits. */
function formatError({ message, type, code }: Problem['error']): unknown {
  const errorType = errorTypesByCode[code ?? ''] ?? errorTypesByType[type] ?? 'api_error'
  return { type: 'error', error: { type: errorType, message } }
}
