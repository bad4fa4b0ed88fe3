import type { SourcedChatMessage } from '../../context/entryText.ts'
import type { Payload } from '../../domain/chat.ts'
import { isBlank, utf8Length } from '../../domain/entry.ts'
import { isObject } from '../../domain/error.ts'
import type { ChatMessage, ChatToolCall } from '../../domain/ledger.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { estimateSize } from '../../domain/stringify.ts'
import { hasInlineMedia, restorePayloads } from '../../formats/originals.ts'
import { invalidReplyError } from '../../providers/errors.ts'
import { countPromptOverhead } from '../../text/cost.ts'
import { getArray, getPath, getString, parseJson } from '../../text/json.ts'
import { readSessionHint } from '../auth/identity.ts'
import { type ErrorResponse, HttpError } from '../http/httpError.ts'
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
  asArray,
  asNumber,
  createLazyRequest,
  describeOutput,
  findResentMedia,
  findTurnStart,
  limitCount,
  limitInstructions,
  type ParsedConversation,
  parseClientMessage,
  readType,
  toSystemMessage,
} from './request.ts'
import {
  type Item,
  isAssistantItem,
  isInstruction,
  isReference,
  isUnanswerableCall,
  isUnread,
  itemsToMessages,
  readCallId,
  toReplyMessage,
  validateItems,
} from './responsesItems.ts'

/** OpenAI Responses. */
export const responsesProtocol: Protocol = {
  name: 'responses',
  path: '/responses',
  parseRequest,
  payloadOf,
  buildRequest,
  extendRequest,
  createReplyParser: createResponsesReplyParser,
  parseReply: parseResponsesReply,
  formatError: (error) => ({ error }),
  formatErrorEvent,
}

function parseRequest(body: RequestBody, tokenizer: Tokenizer): ParsedRequest {
  return createLazyRequest(
    {
      body,
      model: getString(body, 'model'),
      isStreaming: body.stream === true,
      maxTokens: asNumber(body.max_output_tokens),
      sessionHint: readSessionHint(body),
      previousResponseId: getString(body, 'previous_response_id') || undefined,
      conversationId: getString(body, 'conversation') || getString(body, 'conversation', 'id') || undefined,
    },
    () => parseConversation(body, tokenizer),
  )
}

function parseConversation(body: RequestBody, tokenizer: Tokenizer): ParsedConversation {
  const items = validateItems(limitCount(readItems(body), 'messages', 'input'), 'input')
  const files: FilePart[] = []
  const all = itemsToMessages(items, files).map(({ message, index }) => parseClientMessage(message, index))
  // Memory already holds a referenced item and everything before it.
  const lastReference = items.findLastIndex(isReference)
  const messages = all.filter(({ role, index }) => role !== 'system' && index > lastReference)
  const instructions = [
    ...limitInstructions([getString(body, 'instructions')], 'instructions'),
    ...all.filter(({ role }) => role === 'system').map(({ content }) => content),
  ].filter(Boolean)
  const definitions = [...asArray(body.tools), ...items.flatMap((item) => getArray(item, 'tools'))]
  const tools = limitCount(definitions, 'tools').map(toChatTool)
  const referenced = all.filter(({ role, index }) => role !== 'system' && index < lastReference)
  const counted = [
    ...instructions.map(toSystemMessage),
    ...referenced,
    ...describeOutput(getPath(body, 'text', 'format')),
  ]
  const unread = findUnread(items, messages).map((item) => JSON.stringify(item))
  const [long, short] = [unread.filter(isLongText), unread.filter((text) => !isLongText(text))]
  return {
    messages,
    turnStart: findTurnStart(messages) ?? items.length,
    promptOverheadTokens: long.reduce(
      (sum, text) => sum + utf8Length(text),
      countPromptOverhead(tokenizer, [...counted, ...short.map(toSystemMessage)], tools),
    ),
    instructions,
    hasTools: tools.length > 0,
    files,
    references: items.filter(isReference).map((item) => getString(item, 'id')),
  }
}

/** Texts of more characters are bounded by their UTF-8 length: counting the tokens of encoded bytes is slow. */
const isLongText = (text: string): boolean => text.length > 65_536

/**
 * Items that are not counted with a message: those before the first one, such as the encrypted summary of a compacted
 * conversation, and those beside media, with which they are not stored.
 */
function findUnread(items: readonly Item[], messages: readonly ClientMessage[]): readonly Item[] {
  const start = messages[0]?.index ?? items.length
  const besideMedia = messages.flatMap(({ index }, position) => {
    const range = items.slice(index, messages[position + 1]?.index)
    return range.some(isUnread) && hasInlineMedia(range) ? range : []
  })
  return [...items.slice(0, start), ...besideMedia].filter(isUnread)
}

/** Items from the message's first one up to the next message, with the reasoning and references between them. */
function payloadOf(request: ParsedRequest, position: number): Payload | undefined {
  const { messages, body } = request
  const { index } = messages[position] as ClientMessage
  const items = readItems(body)
    .slice(index, messages[position + 1]?.index)
    .filter((item) => !isInstruction(item))
  if (items.every(isPlainText) || hasInlineMedia(items)) return undefined
  return { protocol: 'responses', items }
}

/**
 * Builds the upstream request with the history in `input`, so without ids that only memory can resolve. The upstream
 * may not have stored the history either; encrypted reasoning is asked for, because nothing else can be sent back
 * later.
 */
function buildRequest(
  request: ParsedRequest,
  history: readonly SourcedChatMessage[],
  from = request.turnStart,
): RequestBody {
  const { previous_response_id: _previous, conversation: _conversation, ...rest } = request.body
  const items = readItems(request.body)
  const [before, own] = [items.slice(0, from), items.slice(from)]
  const shown = toItems(history, own, findResentMedia(request.messages, items, from))
  // With nothing to add or leave out, the input keeps its form, such as plain text.
  const isComplete = shown.length === 0 && before.every(isInstruction)
  const input = isComplete ? request.body.input : [...before.filter(isInstruction), ...shown, ...own]
  if (input === undefined) return rest
  return { ...rest, ...includeEncryptedReasoning(rest), input }
}

/** Asks for encrypted reasoning where the upstream does not store the response. */
function includeEncryptedReasoning({ store, include, reasoning }: RequestBody): RequestBody {
  if (store !== false || !isObject(reasoning)) return {}
  const fields = asArray(include)
  return fields.includes(encryptedReasoning) ? {} : { include: [...fields, encryptedReasoning] }
}

const encryptedReasoning = 'reasoning.encrypted_content'

function extendRequest(
  request: ParsedRequest,
  { preamble, memory, from = 0, isHeldUpstream = false }: RequestAdditions,
): RequestBody {
  const { previous_response_id: _previous, conversation: _conversation, ...rest } = request.body
  const hasIds = request.previousResponseId !== undefined || request.conversationId !== undefined
  const body = isHeldUpstream || !hasIds ? request.body : rest
  if (preamble.length === 0 && memory === undefined && from === 0) return body
  const items = readItems(request.body)
  const own = from === 0 ? items : [...items.slice(0, from).filter(isInstruction), ...items.slice(from)]
  const start = own.findIndex((item) => !isInstruction(item))
  const text = { type: 'input_text', text: memory }
  const addition = memory === undefined ? [] : [{ type: 'message', role: 'developer', content: [text] }]
  return { ...body, input: [...own.slice(0, start), ...preamble, ...own.slice(start), ...addition] }
}

/**
 * Converts a history to items. `following` are the client's items after it: a result among them determines the type of
 * the call it answers, because the API rejects a result whose call has another type. `resent` are the client's original
 * items by the text that memory stores for them.
 */
function toItems(
  history: readonly SourcedChatMessage[],
  following: readonly Item[],
  resent: ReadonlyMap<string, Item>,
): Item[] {
  const callTypes = new Map(
    following.map((item) => [readCallId(item), getString(item, 'type').replace(/_output$/, '')]),
  )
  return restorePayloads(history, 'responses').flatMap((part): readonly Item[] =>
    'items' in part ? toInput(part.items as readonly Item[]) : convertMessage(part.message, callTypes, resent),
  )
}

/**
 * Items of a stored message as input. Without its reasoning, an item must not have its id: the API then looks for the
 * reasoning that belongs to it.
 */
function toInput(items: readonly Item[]): readonly Item[] {
  const kept = items.filter((item) => !isUnresolvable(item))
  return kept.length === items.length ? items : kept.map(({ id: _id, ...item }) => item)
}

function convertMessage(
  message: ChatMessage,
  callTypes: ReadonlyMap<string, string>,
  resent: ReadonlyMap<string, Item>,
): Item[] {
  if (message.role === 'tool')
    return [{ type: 'function_call_output', call_id: message.tool_call_id, output: message.content }]
  const original = message.role === 'user' ? resent.get(message.content) : undefined
  if (original !== undefined) return [original]
  const text =
    message.content === null || isBlank(message.content) ? [] : [{ role: message.role, content: message.content }]
  const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : []
  return [...text, ...calls.map((call) => toCallItem(call, callTypes.get(call.id)))]
}

function toCallItem({ id, function: { name, arguments: text } }: ChatToolCall, type = 'function_call'): Item {
  if (type === 'function_call') return { type, call_id: id, name, arguments: text }
  const fields = parseJson(text) as Item | undefined
  return { type, call_id: id, ...(type === 'custom_tool_call' ? { name } : { status: 'completed' }), ...fields }
}

/**
 * True for an item that is only the id of something stored, such as reasoning without content: an upstream that did not
 * store it rejects it.
 */
const isUnresolvable = (item: Item): boolean =>
  isReference(item) ||
  (readType(item) === 'reasoning' &&
    getString(item, 'encrypted_content') === '' &&
    getArray(item, 'content').length === 0)

/** Reads the input items. Plain text is one user message; with a stored `prompt` the input may be missing or empty. */
function readItems({ input, prompt }: RequestBody): readonly Item[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  if (Array.isArray(input) && (input.length > 0 || isObject(prompt))) return input
  if ((input ?? undefined) === undefined && isObject(prompt)) return []
  throw new HttpError(
    400,
    'missing_input',
    'input is missing: it must be text, or a list with at least one item such as { "role": "user", "content": "Hello" }.',
    'input',
  )
}

/** Converts a function to its chat completions form, so that its tokens can be counted. */
function toChatTool(tool: unknown): unknown {
  if (!isObject(tool) || getPath(tool, 'type') !== 'function') return tool
  const { type, ...definition } = tool
  return { type, function: definition }
}

/**
 * Formats an error event. The API reference has the fields at the top level, the service sends them below `error`;
 * clients read either.
 */
function formatErrorEvent(error: ErrorResponse['error']): string {
  const { message, code, param } = error
  return `event: error\ndata: ${JSON.stringify({ type: 'error', code, message, param, sequence_number: 0, error })}\n\n`
}

/** Output item under assembly: the item as announced or finished, and the deltas received in between. */
type PartialItem = {
  item: Item
  done: boolean
  readonly parts: Map<number, { type: string; [field: string]: string }>
  input: string
  /** Characters of its deltas, which the finished item repeats. */
  characters: number
}

const finalEventTypes = ['response.completed', 'response.incomplete', 'response.failed']

/** Assembles the assistant message from a streamed response. */
class ResponsesReplyParser extends JsonReplyParser {
  private readonly items = new Map<number, PartialItem>()
  private response: unknown
  private ended = false

  get isComplete(): boolean {
    return !this.hasFailed && this.ended
  }

  get hasEnded(): boolean {
    return this.ended
  }

  toReply(): ModelReply {
    // Some servers send a final response without the output.
    const output = getArray(this.response, 'output')
    return toReply(this.response, output.length > 0 ? output : this.assembleItems())
  }

  protected handleEvent(event: Item): void {
    const type = readType(event)
    limitOutput(getArray(event, 'response', 'output'), this.address)
    if (type === 'response.failed') this.fail()
    if (finalEventTypes.includes(type)) this.ended = true
    if (isObject(event.response)) this.response = event.response
    else if (isAssistantItem(event.item)) this.setItem(event, event.item as Item)
    else if (type.endsWith('.delta')) this.appendDelta(event, type)
  }

  private setItem({ output_index: index, type }: Item, item: Item): void {
    const done = type === 'response.output_item.done'
    const counted = this.items.get(Number(index))?.characters ?? 0
    const characters = done ? Math.max(counted, estimateSize(item, Number.POSITIVE_INFINITY)) : counted
    this.addSize(characters - counted)
    this.items.set(Number(index), { item, done, parts: new Map(), input: '', characters })
  }

  private appendDelta(event: Item, type: string): void {
    const partial = this.items.get(Number(event.output_index))
    if (partial === undefined) return
    const delta = this.limitSize(getString(event, 'delta'))
    partial.characters += delta.length
    const index = Number(event.content_index)
    if (type === 'response.output_text.delta')
      partial.parts.set(index, { type: 'output_text', text: `${partial.parts.get(index)?.text ?? ''}${delta}` })
    if (type === 'response.refusal.delta')
      partial.parts.set(index, { type: 'refusal', refusal: `${partial.parts.get(index)?.refusal ?? ''}${delta}` })
    if (type === 'response.function_call_arguments.delta' || type === 'response.custom_tool_call_input.delta')
      partial.input += delta
  }

  private assembleItems(): Item[] {
    return sortByIndex(this.items).map(({ item, done, parts, input }) => {
      if (done) return item
      return {
        ...item,
        ...(parts.size === 0 ? {} : { content: sortByIndex(parts) }),
        ...(input === '' ? {} : { [readType(item) === 'function_call' ? 'arguments' : 'input']: input }),
      }
    })
  }
}

const sortByIndex = <T>(map: ReadonlyMap<number, T>): T[] =>
  [...map].sort(([a], [b]) => a - b).map(([, value]) => value)

function createResponsesReplyParser(address: string): ReplyParser {
  return new ResponsesReplyParser(address)
}

/** Parses a complete response. Throws if the text is not one. */
function parseResponsesReply(text: string, address: string): ModelReply {
  const json = parseJsonReply(text, address)
  if (!Array.isArray(getPath(json, 'output'))) throw invalidReplyError(address, 'JSON of another kind')
  return toReply(json, limitOutput(getArray(json, 'output'), address))
}

/** Returns the output of a response unchanged, or throws if its messages and calls are longer than a message may be. */
function limitOutput(output: readonly unknown[], address: string): readonly unknown[] {
  limitReply(output.filter(isAssistantItem), address)
  return output
}

function toReply(response: unknown, output: readonly unknown[]): ModelReply {
  const items = output.filter((item) => !isUnanswerableCall(item))
  return {
    message: {
      ...toReplyMessage(output),
      ...(items.length > 0 && !hasInlineMedia(items) && { payload: { protocol: 'responses', items } }),
    },
    id: getString(response, 'id') || undefined,
    usage: toUsage(getPath(response, 'usage')),
    isStoredUpstream: getPath(response, 'store') === true,
    isFinished: !['queued', 'in_progress'].includes(getString(response, 'status')),
  }
}

function toUsage(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined
  const readCount = (...path: readonly string[]): number => Number(getPath(usage, ...path)) || 0
  return {
    prompt: readCount('input_tokens'),
    completion: readCount('output_tokens'),
    cached: readCount('input_tokens_details', 'cached_tokens'),
  }
}
