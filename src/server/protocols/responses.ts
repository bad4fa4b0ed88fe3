import { isObject } from '../../domain/checks.ts'
import { isBlank } from '../../domain/entry.ts'
import type { ChatMessage, ChatToolCall } from '../../domain/ledger.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { at, listAt, parseJson, textAt } from '../../providers/json.ts'
import { preludeCost } from '../../text/cost.ts'
import { sessionIn } from '../auth/identity.ts'
import { type Problem, Refusal } from '../http/httpError.ts'
import { findResentMedia } from './media.ts'
import type { Ask, Body, Dialect, FilePart } from './protocol.ts'
import {
  createLazyRequest,
  findTurnStart,
  type ParsedConversation,
  parseClientMessage,
  toSystemMessage,
} from './request.ts'
import { checkItems, type Item, isInstruction, isReference, readCallId, spokenIn } from './responsesItems.ts'
import { createResponsesReplyParser, parseResponsesReply } from './responsesReply.ts'
import { asArray, asNumber, limitCount, readType } from './validation.ts'

/** OpenAI Responses. */
export const responses: Dialect = {
  name: 'responses',
  path: '/responses',
  read: parseRequest,
  write: buildRequest,
  listener: createResponsesReplyParser,
  hear: parseResponsesReply,
  problem: (error) => ({ error }),
  failure: formatErrorEvent,
}

function parseRequest(body: Body, tokenizer: Tokenizer): Ask {
  return createLazyRequest(
    {
      body,
      model: textAt(body, 'model'),
      streams: body.stream === true,
      maxTokens: asNumber(body.max_output_tokens),
      session: sessionIn(body),
      previous: textAt(body, 'previous_response_id') || undefined,
      conversation: textAt(body, 'conversation') || textAt(body, 'conversation', 'id') || undefined,
    },
    () => parseConversation(body, tokenizer),
  )
}

function parseConversation(body: Body, tokenizer: Tokenizer): ParsedConversation {
  const items = checkItems(limitCount(readItems(body), 'messages', 'input'), 'input')
  const files: FilePart[] = []
  const all = spokenIn(items, files).map(({ message, index }) => parseClientMessage(message, index))
  // Memory already holds a referenced item and everything before it.
  const lastReference = items.findLastIndex(isReference)
  const messages = all.filter(({ role, place: index }) => role !== 'system' && index > lastReference)
  const instructions = [
    textAt(body, 'instructions'),
    ...all.filter(({ role }) => role === 'system').map(({ content }) => content),
  ].filter(Boolean)
  const definitions = [...asArray(body.tools), ...items.flatMap((item) => listAt(item, 'tools'))]
  const tools = limitCount(definitions, 'tools').map(toChatTool)
  return {
    said: messages,
    turn: findTurnStart(messages) ?? items.length,
    owed: preludeCost(tokenizer, instructions.map(toSystemMessage), tools),
    instructions,
    hasTools: tools.length > 0,
    files,
  }
}

/** Builds the upstream request with `store: false` and without ids that only memory can resolve. */
function buildRequest(request: Ask, memory: readonly ChatMessage[], from = request.turn): Body {
  const { previous_response_id: _previous, conversation: _conversation, ...rest } = request.body
  const items = readItems(request.body)
  const own = items.slice(from).filter((item) => includesReasoning(request.body) || !isReasoningReference(item))
  const input = [
    ...items.slice(0, from).filter(isInstruction),
    ...toItems(memory, own, findResentMedia(request.said, items, from)),
    ...own,
  ]
  return { ...rest, ...(input.length === 0 && !('input' in rest) ? {} : { input }), store: false }
}

/**
 * Converts memory messages to items. `following` are the client's items after them: a result among them determines the type
 * of the call it answers, because the API rejects a result whose call has another type. `resent` are the client's original
 * items by the text that memory stores for them.
 */
function toItems(
  memory: readonly ChatMessage[],
  following: readonly Item[],
  resent: ReadonlyMap<string, Item>,
): Item[] {
  const callTypes = new Map(following.map((item) => [readCallId(item), textAt(item, 'type').replace(/_output$/, '')]))
  return memory.flatMap((message): Item[] => {
    if (message.role === 'tool')
      return [{ type: 'function_call_output', call_id: message.tool_call_id, output: message.content }]
    const original = message.role === 'user' ? resent.get(message.content) : undefined
    if (original !== undefined) return [original]
    const text =
      message.content === null || isBlank(message.content) ? [] : [{ role: message.role, content: message.content }]
    const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : []
    return [...text, ...calls.map((call) => toCallItem(call, callTypes.get(call.id)))]
  })
}

function toCallItem({ id, function: { name, arguments: text } }: ChatToolCall, type = 'function_call'): Item {
  if (type === 'function_call') return { type, call_id: id, name, arguments: text }
  const fields = parseJson(text) as Item | undefined
  return { type, call_id: id, ...(type === 'custom_tool_call' ? { name } : { status: 'completed' }), ...fields }
}

/** True if the client receives encrypted reasoning and therefore sends it back in full. */
const includesReasoning = ({ include }: Body): boolean => asArray(include).includes('reasoning.encrypted_content')

/** True for reasoning without content, a mere id of stored reasoning: with `store: false` the upstream rejects it. */
const isReasoningReference = (item: Item): boolean =>
  readType(item) === 'reasoning' && textAt(item, 'encrypted_content') === '' && listAt(item, 'content').length === 0

/** Reads the input items. Plain text is one user message; with a stored `prompt` the input may be missing or empty. */
function readItems({ input, prompt }: Body): readonly Item[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  if (Array.isArray(input) && (input.length > 0 || isObject(prompt))) return input
  if ((input ?? undefined) === undefined && isObject(prompt)) return []
  throw new Refusal(
    400,
    'missing_input',
    'input is missing: it must be text, or a list with at least one item such as { "role": "user", "content": "Hello" }.',
    'input',
  )
}

/** Converts a function to its chat completions form, so that its tokens can be counted. */
function toChatTool(tool: unknown): unknown {
  if (!isObject(tool) || at(tool, 'type') !== 'function') return tool
  const { type, ...definition } = tool
  return { type, function: definition }
}

/** Formats an error event. The API reference has the fields at the top level, the service sends them below `error`; clients read either. */
function formatErrorEvent(error: Problem['error']): string {
  const { message, code, param } = error
  return `event: error\ndata: ${JSON.stringify({ type: 'error', code, message, param, sequence_number: 0, error })}\n\n`
}
