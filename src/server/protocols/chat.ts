import { isDeepStrictEqual } from 'node:util'
import { type SourcedChatMessage, toChatMessage } from '../../context/entryText.ts'
import type { MessageInput, Payload } from '../../domain/chat.ts'
import type { ToolCall } from '../../domain/entry.ts'
import { isObject } from '../../domain/error.ts'
import type { ChatMessage, ChatToolCall } from '../../domain/ledger.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import {
  fromFunctionCall,
  hasToolCalls,
  isCustom,
  normalizeToolCalls,
  parseToolCall,
  toArguments,
  toFunctionCall,
} from '../../formats/openai.ts'
import { hasInlineMedia, restorePayloads } from '../../formats/originals.ts'
import { invalidReplyError } from '../../providers/errors.ts'
import { countPromptOverhead } from '../../text/cost.ts'
import { getArray, getPath, getString, parseJson } from '../../text/json.ts'
import { readSessionHint } from '../auth/identity.ts'
import { isPlainText } from './payloads.ts'
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
  addFilePart,
  addMediaUrl,
  asArray,
  asNumber,
  createLazyRequest,
  describeOutput,
  findResentMedia,
  findTurnStart,
  formatPlaceholder,
  limitCount,
  limitMessage,
  type ParsedConversation,
  parseClientMessage,
  parsePlainMessage,
  readRole,
  readType,
  requireMessages,
  toTextPart,
} from './request.ts'
import { SseTemplateCache } from './sseTemplateCache.ts'

/** OpenAI chat completions. */
export const chatProtocol: Protocol = {
  name: 'chat',
  path: '/chat/completions',
  parseRequest,
  payloadOf,
  buildRequest,
  extendRequest,
  createReplyParser: createChatReplyParser,
  parseReply: parseChatReply,
  formatError: (error) => ({ error }),
  formatErrorEvent: (error) => `data: ${JSON.stringify({ error })}\n\n`,
}

function parseRequest(body: RequestBody, tokenizer: Tokenizer): ParsedRequest {
  return createLazyRequest(
    {
      body,
      model: getString(body, 'model'),
      isStreaming: body.stream === true,
      maxTokens: asNumber(body.max_completion_tokens ?? body.max_tokens),
      sessionHint: readSessionHint(body),
    },
    () => parseConversation(body, tokenizer),
  )
}

/** Parses the messages in a single pass: every turn carries the whole history. */
function parseConversation(body: RequestBody, tokenizer: Tokenizer): ParsedConversation {
  const files: FilePart[] = []
  const messages: ClientMessage[] = []
  const instructions: ClientMessage[] = []
  const list = requireMessages(body)
  for (let index = 0; index < list.length; index++) {
    const message = parsePlainMessage(list[index], index) ?? parseClientMessage(normalize(list[index], files), index)
    if (message.role === 'system') instructions.push(message)
    else messages.push(message)
  }
  const tools = readToolDefinitions(body)
  const counted = [...instructions, ...describeOutput(body.response_format, body.prediction)]
  return {
    messages,
    turnStart: findTurnStart(messages) ?? list.length,
    promptOverheadTokens:
      counted.length === 0 && tools.length === 0 ? 0 : countPromptOverhead(tokenizer, counted, tools),
    instructions: instructions.map(({ content }) => content),
    hasTools: tools.length > 0,
    files,
    references: [],
  }
}

/** Reads `tools` and the deprecated `functions`. */
function readToolDefinitions({ tools, functions }: RequestBody): readonly unknown[] {
  if (tools === undefined && functions === undefined) return []
  return limitCount(Array.isArray(functions) ? [...asArray(tools), ...functions] : asArray(tools), 'tools')
}

function payloadOf(request: ParsedRequest, position: number): Payload | undefined {
  const message = request.messages[position] as ClientMessage
  const original = (request.body.messages as readonly unknown[])[message.index]
  if (isPlainText(original) || hasInlineMedia(original)) return undefined
  return isDeepStrictEqual(original, toChatMessage(message)) ? undefined : { protocol: 'chat', items: [original] }
}

function buildRequest(
  request: ParsedRequest,
  history: readonly SourcedChatMessage[],
  from = request.turnStart,
): RequestBody {
  const list = request.body.messages as readonly MessageInput[]
  const resent = findResentMedia(request.messages, list, from)
  const converted = restoreToolCalls(history, request.body)
  let position = 0
  const shown = restorePayloads(history, 'chat').flatMap((part): readonly unknown[] => {
    const message = converted[position++] as Fields
    if ('items' in part) return part.items
    return [(message.role === 'user' ? resent.get(getString(message, 'content')) : undefined) ?? message]
  })
  const messages = shown.concat(list.slice(from))
  return {
    ...request.body,
    messages: request.instructions.length === 0 ? messages : selectInstructions(list, from).concat(messages),
  }
}

function extendRequest(request: ParsedRequest, { preamble, memory, from = 0 }: RequestAdditions): RequestBody {
  const list = request.body.messages as readonly MessageInput[]
  if (preamble.length === 0 && memory === undefined && from === 0) return request.body
  const own = from === 0 ? list : [...selectInstructions(list, from), ...list.slice(from)]
  const start = own.findIndex((message) => !isInstruction(message))
  const addition = memory === undefined ? [] : [{ role: 'system', content: memory }]
  // A reply that the client has begun must stay the last message.
  const end = readRole(own.at(-1)) === 'assistant' ? own.length - 1 : own.length
  const messages = [...own.slice(0, start), ...preamble, ...own.slice(start, end), ...addition, ...own.slice(end)]
  return { ...request.body, messages }
}

const isInstruction = (message: unknown): boolean => ['system', 'developer'].includes(readRole(message))

function selectInstructions(messages: readonly MessageInput[], end: number): unknown[] {
  return messages.slice(0, end).filter(isInstruction)
}

/** Converts all tool calls to function calls and media to placeholders; collects files in `files`. */
function normalize(message: unknown, files: FilePart[]): unknown {
  if (!isObject(message)) return message
  const normalized = limitMessage(normalizeToolCalls(message))
  if (!Array.isArray(normalized.content)) return normalized
  // Files in tool results get a placeholder only: the user did not upload them.
  const collected = normalized.role === 'tool' ? [] : files
  return { ...normalized, content: normalized.content.map((part) => normalizePart(part, collected)) }
}

function normalizePart(part: unknown, files: FilePart[]): unknown {
  const type = readType(part)
  if (type === 'image_url')
    return addMediaUrl('image', getString(part, 'image_url', 'url') || getString(part, 'image_url'), files)
  if (type === 'input_audio')
    return toTextPart(formatPlaceholder('audio', Buffer.from(getString(part, 'input_audio', 'data'), 'base64')))
  if (type !== 'file') return part
  return addFilePart(
    {
      name: getString(part, 'file', 'filename'),
      data: getString(part, 'file', 'file_data'),
      address: getString(part, 'file', 'file_id'),
    },
    files,
  )
}

type Fields = Readonly<Record<string, unknown>>

/** Tool call under assembly; `input` is the text input of a custom tool. */
type PartialCall = { id: string; name: string; arguments: string; input: string | undefined }

/** Deltas are joined in batches of this size: an unjoined slice may keep the whole chunk it was cut from in memory. */
const deltaBatchSize = 32

/** Assembles the assistant message from a streamed chat completion. Reads only the choice with index 0. */
class ChatReplyParser extends JsonReplyParser {
  private text = ''
  /** Deltas that are not yet part of `text`. */
  private readonly pendingDeltas: string[] = []
  private readonly templates = new SseTemplateCache()
  /** Undefined until the first call: few replies have any. */
  private calls: Map<number, PartialCall> | undefined
  /** Fields of the message beside text and calls, such as reasoning; undefined until the first one. */
  private extras: Record<string, unknown> | undefined
  private hasFinishReason = false
  private done = false
  private id: string | undefined
  private usage: Usage | undefined

  get isComplete(): boolean {
    return !this.hasFailed && (this.hasFinishReason || this.done)
  }

  get hasEnded(): boolean {
    return this.done
  }

  toReply(): ModelReply {
    const calls =
      this.calls === undefined ? [] : [...this.calls].sort(([a], [b]) => a - b).map(([, call]) => toToolCall(call))
    return {
      message: createAssistantMessage(this.text + this.pendingDeltas.join(''), calls, this.extras),
      id: this.id,
      usage: this.usage,
    }
  }

  protected override handleDone(): void {
    this.done = true
  }

  protected override handleTemplateEvent(text: string): boolean {
    const delta = this.templates.match(text)
    if (delta === undefined) return false
    this.appendText(delta)
    return true
  }

  protected override consumeTemplateEvents(text: string, start: number): number {
    return this.templates.consume(text, start, this.appendText)
  }

  private readonly appendText = (delta: string): void => {
    if (this.pendingDeltas.push(this.limitSize(delta)) < deltaBatchSize) return
    this.text += this.pendingDeltas.join('')
    this.pendingDeltas.length = 0
  }

  /** Runs for every few characters of a reply, so it reads fields directly instead of walking paths. */
  protected handleEvent(event: Fields, text: string): void {
    const { id, usage, choices } = event
    if (this.id === undefined && typeof id === 'string' && id !== '') this.id = id
    if (isObject(usage)) this.usage = toUsage(usage)
    const choice = Array.isArray(choices) ? choices.find(isFirstChoice) : undefined
    if (choice === undefined) return
    const { delta, finish_reason: reason } = choice
    if (isObject(delta)) this.appendDelta(delta)
    if (typeof reason === 'string' && reason !== '') this.hasFinishReason = true
    // Events without usage carry nothing but text that matters when repeated, so they may serve as a template.
    if (isTextDelta(delta) && !isObject(usage)) this.templates.learn(text, delta.content, readContent)
  }

  private appendDelta(delta: Fields): void {
    const { content, refusal, tool_calls: calls, function_call: functionCall } = delta
    const text = typeof content === 'string' && content !== '' ? content : refusal
    if (typeof text === 'string') this.appendText(text)
    if (Array.isArray(calls)) for (const [position, call] of calls.entries()) this.appendCall(call, position)
    else if (isObject(functionCall)) this.appendCall(fromFunctionCall(functionCall), 0)
    for (const [field, value] of Object.entries(delta))
      if (!knownFields.has(field) && !isEmptyValue(value)) {
        this.limitSize(typeof value === 'string' ? value : JSON.stringify(value))
        this.extras = { ...this.extras, [field]: mergeDelta(this.extras?.[field], value) }
      }
  }

  private appendCall(delta: unknown, position: number): void {
    const index = getPath(delta, 'index')
    const slot = typeof index === 'number' ? index : position
    this.calls ??= new Map()
    const call = this.calls.get(slot) ?? { id: '', name: '', arguments: '', input: undefined }
    // Ids and names arrive complete, and some servers repeat them; arguments arrive in pieces.
    call.id ||= getString(delta, 'id')
    call.name ||= getString(delta, 'function', 'name') || getString(delta, 'custom', 'name')
    call.arguments += this.limitSize(getString(delta, 'function', 'arguments'))
    const input = getPath(delta, 'custom', 'input')
    if (typeof input === 'string') call.input = `${call.input ?? ''}${this.limitSize(input)}`
    this.calls.set(slot, call)
  }
}

/** Fields of a reply that are stored as text and calls, or mean nothing in a request. */
const knownFields = new Set(['role', 'content', 'tool_calls', 'function_call', 'refusal', 'annotations'])
const isEmptyValue = (value: unknown): boolean =>
  value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)

/** Merges a delta into what has arrived: texts are joined, lists by the index of their elements, objects by field. */
function mergeDelta(current: unknown, delta: unknown): unknown {
  if (typeof current === 'string' && typeof delta === 'string') return current + delta
  if (Array.isArray(current) && Array.isArray(delta)) {
    const merged: unknown[] = [...current]
    for (const element of delta) {
      const index = getPath(element, 'index')
      const at = typeof index === 'number' ? merged.findIndex((one) => getPath(one, 'index') === index) : -1
      if (at < 0) merged.push(element)
      else merged[at] = mergeDelta(merged[at], element)
    }
    return merged
  }
  if (!isObject(current) || !isObject(delta)) return delta
  const fields = Object.entries(delta).map(([field, value]) => [
    field,
    field === 'type' || field === 'id' || field === 'format' ? value : mergeDelta(current[field], value),
  ])
  return { ...current, ...Object.fromEntries(fields) }
}

const readContent = (event: unknown): unknown =>
  getPath(getArray(event, 'choices').find(isFirstChoice), 'delta', 'content')
const isTextDelta = (delta: unknown): delta is { readonly content: string } =>
  isObject(delta) &&
  typeof delta.content === 'string' &&
  delta.content !== '' &&
  typeof delta.refusal !== 'string' &&
  !hasToolCalls(delta) &&
  readExtras(delta) === undefined
const isFirstChoice = (choice: unknown): choice is Fields => isObject(choice) && (choice.index ?? 0) === 0
const toToolCall = ({ id, name, arguments: text, input }: PartialCall): ToolCall => ({
  id,
  name,
  arguments: input === undefined ? text : toArguments(input),
})

export function createChatReplyParser(address: string): ReplyParser {
  return new ChatReplyParser(address)
}

const toUsage = (usage: Fields): Usage => ({
  prompt: Number(usage.prompt_tokens) || 0,
  completion: Number(usage.completion_tokens) || 0,
  cached: Number(getPath(usage, 'prompt_tokens_details', 'cached_tokens')) || 0,
})

/** Parses a complete chat completion. Throws if the text is not one. */
function parseChatReply(text: string, address: string): ModelReply {
  const json = parseJsonReply(text, address)
  const message = getPath(json, 'choices', 0, 'message')
  if (!isObject(message)) throw invalidReplyError(address, 'JSON of another kind')
  const content = limitReply(getString(message, 'content') || getString(message, 'refusal'), address)
  return {
    message: createAssistantMessage(content, limitReply(readToolCalls(message), address), readExtras(message)),
    id: getString(json, 'id') || undefined,
    usage: isObject(json) && isObject(json.usage) ? toUsage(json.usage) : undefined,
  }
}

function readToolCalls(message: Fields): readonly ToolCall[] {
  if (!hasToolCalls(message)) return []
  return getArray(normalizeToolCalls({ role: 'assistant', ...message }), 'tool_calls').map(parseToolCall)
}

/** Fields of a complete message beside text and calls; undefined if they say nothing. */
function readExtras({ role: _role, content: _text, tool_calls: _calls, function_call: _call, ...extras }: Fields) {
  return Object.entries(extras).some(([field, value]) => !knownFields.has(field) && !isEmptyValue(value))
    ? extras
    : undefined
}

/**
 * Creates the assistant message of a reply; with `extras`, they are kept in its payload. Drops calls without an id or a
 * name: no tool result can refer to them.
 */
function createAssistantMessage(content: string, calls: readonly ToolCall[], extras?: Fields): MessageInput {
  const valid = calls.filter((call) => call.id !== '' && call.name !== '')
  const message: MessageInput =
    valid.length === 0
      ? { role: 'assistant', content }
      : { role: 'assistant', content, tool_calls: valid.map(toFunctionCall) }
  if (extras === undefined || hasInlineMedia(extras)) return message
  const original = { ...message, content: content === '' ? null : content, ...extras }
  return { ...message, payload: { protocol: 'chat', items: [original] } }
}

/** Converts calls and results in memory messages back to the kinds of tools that the client declares. */
function restoreToolCalls(memory: readonly ChatMessage[], body: RequestBody): readonly Fields[] {
  if (!Array.isArray(body.tools)) return Array.isArray(body.functions) ? restoreFunctionCalls(memory) : memory
  const tools = body.tools.filter(isCustom)
  if (tools.length === 0) return memory
  const customNames = new Set(tools.map((tool) => getString(tool, 'custom', 'name')))
  customNames.delete('')
  return memory.map((message) => restoreCustomCalls(message, customNames))
}

function restoreCustomCalls(message: ChatMessage, customNames: ReadonlySet<string>): Fields {
  if (message.role !== 'assistant' || message.tool_calls === undefined) return message
  const restore = (call: ChatToolCall) => (customNames.has(call.function.name) ? toCustomCall(call) : call)
  return { ...message, tool_calls: message.tool_calls.map(restore) }
}

const toCustomCall = ({ id, function: { name, arguments: text } }: ChatToolCall): Fields => ({
  id,
  type: 'custom',
  custom: { name, input: getString(parseJson(text), 'input') },
})

/** Restores deprecated function calls: a server asked with `functions` may not support `tools`. */
function restoreFunctionCalls(memory: readonly ChatMessage[]): readonly Fields[] {
  const restoredIds = new Set<string>()
  return memory.map((message): Fields => {
    if (message.role === 'tool' && restoredIds.has(message.tool_call_id))
      return { role: 'function', name: message.tool_call_id, content: message.content }
    if (message.role !== 'assistant' || message.tool_calls === undefined) return message
    const { tool_calls: calls, ...rest } = message
    const [call, ...others] = calls
    if (call === undefined || others.length > 0 || call.id !== call.function.name) return message
    restoredIds.add(call.id)
    return { ...rest, function_call: call.function }
  })
}
