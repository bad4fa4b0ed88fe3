import { type MessageInput, messageError, type ParsedMessage, parseMessage } from '../domain/chat.ts'
import type { Millis } from '../domain/entry.ts'
import { isObject, MemoryError } from '../domain/error.ts'
import { getArray, getString } from '../text/json.ts'
import { aiSdkProtocol, fromAiSdk, isAiSdkPart, isExpressed as isExpressedPart, toStoredPart } from './aiSdk.ts'
import {
  convertBlock,
  isAnthropicBlock,
  isExpressed as isExpressedBlock,
  isRejected,
  isToolResult,
  isToolUse,
  toAssistantMessage,
  toChatMessages,
} from './anthropic.ts'
import { isCustom, normalizeToolCalls } from './openai.ts'
import { hasInlineMedia } from './originals.ts'

type Fields = Readonly<Record<string, unknown>>

/** Messages in OpenAI's format, and the original if they do not say everything. */
type Converted = {
  readonly messages: readonly (MessageInput | Fields)[]
  readonly protocol: string
  readonly original?: Fields | undefined
}

/**
 * Validates a message in the format of OpenAI, Anthropic or the AI SDK; `index` names it in errors. One message for
 * each tool result in it, else one. Reasoning, images by URL and whatever else text and tool calls do not express stay
 * in the payload. Bytes of media become a placeholder.
 *
 * @throws MemoryError `bad-message`.
 */
export function parseInput(value: unknown, index: number, now: Millis): readonly ParsedMessage[] {
  // Fast path: most messages are a role and a text.
  if (!isObject(value) || value.payload !== undefined || isPlain(value)) return [parseMessage(value, index, now)]
  const { messages, protocol, original } = convertSafely(value, index)
  return messages.map((message, position) => {
    const items = position === 0 ? [original] : []
    const payload = original && { protocol, items, ...(items.length > 0 && { count: messages.length }) }
    return parseMessage({ ...message, at: value.at, payload }, index, now)
  })
}

const isPlain = ({ role, content, providerOptions }: Fields): boolean =>
  typeof content === 'string' && (role === 'user' || role === 'system') && providerOptions === undefined

/** Tool inputs and options are values of the caller: they may be circular, too deep or unknown to JSON. */
function convertSafely(value: Fields, index: number): Converted {
  try {
    const converted = convert(value, index)
    const { original } = converted
    return original === undefined ? converted : { ...converted, original: JSON.parse(JSON.stringify(original)) }
  } catch (error) {
    if (error instanceof MemoryError) throw error
    throw messageError(index, '', 'must be a value that JSON can express')
  }
}

function convert(value: Fields, index: number): Converted {
  const parts = getArray(value, 'content')
  // Parts that are no objects are errors in any format.
  if (!parts.every(isObject)) return { messages: [value], protocol: 'chat' }
  if (value.providerOptions !== undefined || parts.some(isAiSdkPart)) return convertAiSdk(value, parts)
  if (value.type === 'message' || parts.some(isAnthropicBlock)) return convertAnthropic(value, parts, index)
  return convertOpenAI(value, parts)
}

/** Fields of an assistant message that servers want back and that text and tool calls do not express. */
const reasoningFields = ['reasoning', 'reasoning_content', 'reasoning_details', 'extra_content']
const mediaTypes = ['image_url', 'input_audio', 'file']

function convertOpenAI(value: Fields, parts: readonly Fields[]): Converted {
  const { role, content, refusal, audio } = value
  const normalized = normalizeToolCalls(value)
  const spoken = isObject(audio) ? audio : undefined
  const hasContent = typeof content === 'string' ? content !== '' : parts.length > 0
  const text = hasContent ? normalized.content : getString(spoken, 'transcript') || refusal || normalized.content
  const messages = [{ ...normalized, content: text }]
  const reasoning = reasoningFields.filter((name) => !isEmpty(value[name]))
  const calls = getArray(value, 'tool_calls')
  const isExpressed =
    normalized === value &&
    spoken === undefined &&
    reasoning.length === 0 &&
    !parts.some(({ type }) => mediaTypes.includes(String(type))) &&
    !calls.some(hasOtherFields)
  if (isExpressed) return { messages, protocol: 'chat' }
  const original = {
    role,
    content: parts.length > 0 ? parts.map(withoutMedia) : (spoken === undefined && text) || null,
    ...copyFields(value, ['name', 'tool_calls', 'function_call', ...reasoning]),
    ...(spoken !== undefined && { audio: { id: spoken.id } }),
  }
  return { messages, protocol: 'chat', original }
}

/** True for a call of a custom tool, and one with fields of the server, such as a signature of its reasoning. */
const hasOtherFields = (call: unknown): boolean => isCustom(call) || (isObject(call) && !isEmpty(call.extra_content))

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)

const copyFields = (value: Fields, names: readonly string[]): Fields =>
  Object.fromEntries(names.filter((name) => !isEmpty(value[name])).map((name) => [name, value[name]]))

function convertAnthropic({ role, content }: Fields, blocks: readonly Fields[], index: number): Converted {
  for (const [position, block] of blocks.entries()) requireIds(block, index, `.content[${position}]`)
  const messages =
    role === 'assistant'
      ? [toAssistantMessage(blocks)]
      : role === 'user'
        ? toChatMessages(role, blocks, convertBlock)
        : [{ role, content }]
  const stored = blocks.map(withoutMedia).filter((block) => !isRejected(block))
  const original = stored.every(isExpressedBlock) ? undefined : { role, content: stored }
  return { messages, protocol: 'messages', original }
}

function requireIds(block: Fields, index: number, path: string): void {
  const fields = isToolUse(block) ? ['id', 'name'] : isToolResult(block) ? ['tool_use_id'] : []
  for (const field of fields)
    if (getString(block, field) === '') throw messageError(index, `${path}.${field}`, 'must be text that is not empty')
}

/**
 * Replaces media with a placeholder, also in tool results, and drops cache markers: they belong to one request, and
 * those of many turns would exceed the number that the API accepts.
 */
function withoutMedia({ cache_control: _marker, ...part }: Fields): Fields {
  if (Array.isArray(part.content) && isToolResult(part))
    return { ...part, content: part.content.map((one) => (isObject(one) ? withoutMedia(one) : one)) }
  return hasInlineMedia(part) ? { type: 'text', text: `[${String(part.type).replace(/^input_|_url$/g, '')}]` } : part
}

function convertAiSdk(value: Fields, parts: readonly Fields[]): Converted {
  const { role, content, providerOptions } = value
  const stored = parts.map(toStoredPart)
  const original = {
    role,
    content: typeof content === 'string' ? content : stored,
    ...copyFields(value, ['providerOptions']),
  }
  const isExpressed = providerOptions === undefined && stored.every(isExpressedPart)
  return {
    messages: typeof content === 'string' ? [{ role, content }] : fromAiSdk(role as MessageInput['role'], parts),
    protocol: aiSdkProtocol,
    original: isExpressed ? undefined : original,
  }
}
