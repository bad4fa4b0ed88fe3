import type { SourcedChatMessage } from '../../context/entryText.ts'
import type { MessageInput, Payload } from '../../domain/chat.ts'
import { isObject } from '../../domain/error.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { type Block, isRejected, isToolResult, toAssistantMessage, toBlocks } from '../../formats/anthropic.ts'
import { joinMessages, toAnthropicHistory } from '../../formats/originals.ts'
import { invalidReplyError } from '../../providers/errors.ts'
import { countPromptOverhead } from '../../text/cost.ts'
import { getArray, getPath, getString, parseJson } from '../../text/json.ts'
import type { ErrorResponse } from '../http/httpError.ts'
import { type RawMessage, requireRawMessage, toChatMessages } from './messagesBlocks.ts'
import { createPayload, isPlainText } from './payloads.ts'
import type {
  ClientMessage,
  FilePart,
  ModelReply,
  ParsedRequest,
  Protocol,
  ReplyParser,
  RequestAdditions,
  RequestBody,
  Usage,
} from './protocol.ts'
import { JsonReplyParser, limitReply, parseJsonReply } from './replyParser.ts'
import {
  asArray,
  asNumber,
  createLazyRequest,
  findResentMedia,
  limitCount,
  limitInstructions,
  type ParsedConversation,
  parseClientMessage,
  readType,
  requireMessages,
  requireParts,
  toSystemMessage,
} from './request.ts'

/** Anthropic Messages. */
export const messagesProtocol: Protocol = {
  name: 'messages',
  path: '/messages',
  parseRequest,
  payloadOf,
  buildRequest,
  extendRequest,
  createReplyParser: createMessagesReplyParser,
  parseReply: parseMessagesReply,
  formatError,
  formatErrorEvent: (error) => `event: error\ndata: ${JSON.stringify(formatError(error))}\n\n`,
}

function parseRequest(body: RequestBody, tokenizer: Tokenizer): ParsedRequest {
  return createLazyRequest(
    {
      body,
      model: getString(body, 'model'),
      isStreaming: body.stream === true,
      maxTokens: asNumber(body.max_tokens),
      sessionHint: parseSession(getString(body, 'metadata', 'user_id')),
    },
    () => parseConversation(body, tokenizer),
  )
}

function parseConversation(body: RequestBody, tokenizer: Tokenizer): ParsedConversation {
  const rawMessages = requireMessages(body).map(requireRawMessage)
  requireParts(body.system ?? '', 'system', (type) => type === 'text')
  const files: FilePart[] = []
  const converted = rawMessages.flatMap((raw, index) =>
    toChatMessages(raw, files).map((message) => ({ message, index })),
  )
  // The limit is checked again, because each tool result becomes a message of its own.
  const all = limitCount(converted, 'messages').map(({ message, index }) => parseClientMessage(message, index))
  const instructions = [
    ...limitInstructions(
      toBlocks(body.system).map((block) => getString(block, 'text')),
      'system',
    ),
    ...all.filter(({ role }) => role === 'system').map(({ content }) => content),
  ].filter(Boolean)
  const tools = limitCount(asArray(body.tools), 'tools').map(toChatTool)
  return {
    messages: all.filter(({ role }) => role !== 'system'),
    turnStart: findTurnStart(rawMessages),
    promptOverheadTokens: countPromptOverhead(tokenizer, instructions.map(toSystemMessage), tools),
    instructions,
    hasTools: tools.length > 0,
    files,
    references: [],
  }
}

/** An element of the list may be several messages: each tool result is one of its own. */
function payloadOf(request: ParsedRequest, position: number): Payload | undefined {
  const { index } = request.messages[position] as ClientMessage
  const original = (request.body.messages as readonly unknown[])[index]
  return isPlainText(original) ? undefined : createPayload('messages', original, request.messages, position)
}

function buildRequest(
  request: ParsedRequest,
  history: readonly SourcedChatMessage[],
  from = request.turnStart,
): RequestBody {
  const list = request.body.messages as readonly RawMessage[]
  const { system, messages: converted } = toAnthropicHistory(history)
  const { system: ownSystem, tools } = request.body
  const shown = limitCacheMarkers(converted, maxCacheMarkers - countCacheMarkers([ownSystem, tools, list.slice(from)]))
  const instructions = list.slice(0, from).filter(({ role }) => role === 'system')
  const systemBlocks = [
    ...instructions.flatMap(({ content }) => toBlocks(content)),
    ...(system === '' ? [] : toBlocks(system)),
  ]
  const restored = restoreMedia(shown, findResentMedia(request.messages, list, from))
  return {
    ...request.body,
    ...(systemBlocks.length === 0 ? {} : { system: appendSystem(request.body.system, systemBlocks) }),
    messages: joinTurns(restored, list.slice(from)),
  }
}

/** Cache markers that the API accepts in one request. */
const maxCacheMarkers = 4

function countCacheMarkers(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, inner) => sum + countCacheMarkers(inner), 0)
  if (!isObject(value)) return 0
  const { cache_control: marker, content } = value
  return (isObject(marker) ? 1 : 0) + countCacheMarkers(content)
}

/** Removes all but the newest cache markers: each turn of a history had its own. */
function limitCacheMarkers(messages: readonly RawMessage[], maxMarkers: number): readonly RawMessage[] {
  let remaining = Math.max(0, maxMarkers)
  if (countCacheMarkers(messages) <= remaining) return messages
  const limited = messages.toReversed().map((message): RawMessage => {
    if (countCacheMarkers(message) <= remaining) {
      remaining -= countCacheMarkers(message)
      return message
    }
    remaining = 0
    return { ...message, content: withoutCacheMarkers(message.content) }
  })
  return limited.reverse()
}

function withoutCacheMarkers(content: unknown): unknown {
  if (!Array.isArray(content)) return content
  return content.map((block) => {
    if (!isObject(block)) return block
    const { cache_control: _marker, ...rest } = block
    return 'content' in rest ? { ...rest, content: withoutCacheMarkers(rest.content) } : rest
  })
}

function extendRequest(request: ParsedRequest, { preamble, memory, from = 0 }: RequestAdditions): RequestBody {
  if (preamble.length === 0 && memory === undefined && from === 0) return request.body
  const list = request.body.messages as readonly RawMessage[]
  // A reply that the client has begun must stay the last message.
  const isPrefilled = list.at(-1)?.role === 'assistant'
  const instructions = list.slice(0, from).filter(({ role }) => role === 'system')
  const systemBlocks = [
    ...instructions.flatMap(({ content }) => toBlocks(content)),
    ...preamble.flatMap(({ content }) => toBlocks(content)),
    ...(memory !== undefined && isPrefilled ? toBlocks(memory) : []),
  ]
  const addition = memory === undefined || isPrefilled ? [] : [{ role: 'user', content: toBlocks(memory) }]
  return {
    ...request.body,
    ...(systemBlocks.length === 0 ? {} : { system: appendSystem(request.body.system, systemBlocks) }),
    messages: [...list.slice(from), ...addition],
  }
}

/** Replaces media placeholders in memory messages with the media that the client sent again. */
function restoreMedia(shown: readonly RawMessage[], resent: ReadonlyMap<string, RawMessage>): readonly RawMessage[] {
  if (resent.size === 0) return shown
  return shown.map((message): RawMessage => {
    const { role, content } = message
    if (role !== 'user') return message
    if (typeof content === 'string') return resent.get(content) ?? message
    return {
      role,
      content: toBlocks(content).flatMap((block) =>
        toBlocks((block.type === 'text' && resent.get(getString(block, 'text'))?.content) || [block]),
      ),
    }
  })
}

/** Appends blocks to the client's system prompt, which stays first and unchanged: it may carry cache markers. */
const appendSystem = (own: unknown, blocks: readonly Block[]): readonly Block[] => [
  ...(own === '' ? [] : toBlocks(own)),
  ...blocks,
]

/**
 * Joins memory and the client's messages. Two adjacent user messages become one, with tool results first, as the API
 * requires.
 */
function joinTurns(memory: readonly RawMessage[], own: readonly RawMessage[]): readonly RawMessage[] {
  const [last, first] = [memory.at(-1), own[0]]
  if (last?.role !== 'user' || first?.role !== 'user') return [...memory, ...own]
  return [...memory.slice(0, -1), joinMessages(last, first), ...own.slice(1)]
}

/**
 * Finds the index of the newest user message that is not only tool results, or of the first of several in a row. User
 * messages at the start of the list are not such a row: memory may hold the replies between them. A user message with
 * tool results beside its text continues a turn that started earlier. If the client sends only tool results, all
 * messages belong to the turn.
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
    (looksLikeJsonObject.test(userId) && getString(parseJson(userId), 'session_id')) ||
    /(?<![\w-])(?=[\w-]+$)[\w-]*?_session_([\w-]+)/.exec(userId)?.[1] ||
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
function formatError({ message, type, code }: ErrorResponse['error']): unknown {
  const errorType = errorTypesByCode[code ?? ''] ?? errorTypesByType[type] ?? 'api_error'
  return { type: 'error', error: { type: errorType, message } }
}

/** Content block under assembly: its start event and the deltas received since. */
type PartialBlock = {
  readonly block: Block
  /** Joined deltas by the field they extend. */
  readonly texts: Record<string, string>
  json: string
  readonly citations: unknown[]
}

/** Assembles the assistant message from a streamed Anthropic message. */
class MessagesReplyParser extends JsonReplyParser {
  private readonly blocks = new Map<number, PartialBlock>()
  private id: string | undefined
  private usage: Block | undefined
  private hasStopReason = false
  private stopped = false

  get isComplete(): boolean {
    return !this.hasFailed && (this.hasStopReason || this.stopped)
  }

  get hasEnded(): boolean {
    return this.stopped
  }

  toReply(): ModelReply {
    const blocks = [...this.blocks].sort(([a], [b]) => a - b).map(([, partial]) => toBlock(partial))
    return { message: toReplyMessage(blocks), id: this.id, usage: toUsage(this.usage) }
  }

  protected handleEvent(event: Block): void {
    const type = readType(event)
    if (type === 'message_start') {
      this.id = getString(event, 'message', 'id') || undefined
      this.updateUsage(getPath(event, 'message', 'usage'))
    } else if (type === 'content_block_start' && isObject(event.content_block)) {
      this.limitSize(JSON.stringify(event.content_block))
      this.blocks.set(Number(event.index), { block: event.content_block, texts: {}, json: '', citations: [] })
    } else if (type === 'content_block_delta') this.appendDelta(this.blocks.get(Number(event.index)), event.delta)
    else if (type === 'message_delta') {
      if (getString(event, 'delta', 'stop_reason') !== '') this.hasStopReason = true
      this.updateUsage(event.usage)
    } else if (type === 'message_stop') this.stopped = true
  }

  private appendDelta(partial: PartialBlock | undefined, delta: unknown): void {
    if (partial === undefined) return
    partial.json += this.limitSize(getString(delta, 'partial_json'))
    for (const field of textFields) {
      const text = this.limitSize(getString(delta, field))
      if (text !== '') partial.texts[field] = (partial.texts[field] ?? '') + text
    }
    const citation = getPath(delta, 'citation')
    if (citation === undefined) return
    this.limitSize(JSON.stringify(citation))
    partial.citations.push(citation)
  }

  /** Merges cumulative counts; missing and null counts keep their previous value. */
  private updateUsage(usage: unknown): void {
    if (!isObject(usage)) return
    this.usage = { ...this.usage, ...Object.fromEntries(Object.entries(usage).filter(([, value]) => value !== null)) }
  }
}

/** Fields of a block that deltas extend. */
const textFields = ['text', 'thinking', 'signature']

function toBlock({ block, texts, json, citations }: PartialBlock): Block {
  const extended = Object.entries(texts).map(([field, text]) => [field, getString(block, field) + text])
  return {
    ...block,
    ...Object.fromEntries(extended),
    ...(json === '' ? {} : { input: parseJson(json) ?? json }),
    ...(citations.length === 0 ? {} : { citations: [...getArray(block, 'citations'), ...citations] }),
  }
}

/** The assistant message of a reply, with the blocks that can be sent back. */
function toReplyMessage(blocks: readonly unknown[]): MessageInput {
  const message = toAssistantMessage(blocks)
  const content = blocks.filter((block) => !isRejected(block))
  if (content.length === 0) return message
  return { ...message, payload: { protocol: 'messages', items: [{ role: 'assistant', content }] } }
}

function createMessagesReplyParser(address: string): ReplyParser {
  return new MessagesReplyParser(address)
}

/** Parses a complete Anthropic message. Throws if the text is not one. */
function parseMessagesReply(text: string, address: string): ModelReply {
  const json = parseJsonReply(text, address)
  if (!Array.isArray(getPath(json, 'content'))) throw invalidReplyError(address, 'JSON of another kind')
  return {
    message: toReplyMessage(limitReply(getArray(json, 'content'), address)),
    id: getString(json, 'id') || undefined,
    usage: toUsage(getPath(json, 'usage')),
  }
}

/** Converts usage. Anthropic does not include cache reads and cache writes in `input_tokens`. */
function toUsage(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined
  const readCount = (field: string): number => Number(usage[field]) || 0
  const cached = readCount('cache_read_input_tokens')
  return {
    prompt: readCount('input_tokens') + cached + readCount('cache_creation_input_tokens'),
    completion: readCount('output_tokens'),
    cached,
  }
}
