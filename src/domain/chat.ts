import type { Millis, NewMessage, Role, ToolCall } from './entry.ts'
import { describeValue, isObject, MemoryError } from './error.ts'
import { describePayloadFault, type Payload } from './payload.ts'

export type { Payload } from './payload.ts'

/**
 * Part or block of a message, such as `{ type: 'text', text: 'Hello' }`. The second form admits parts with any other
 * fields as literals; the first one admits the interfaces of the SDKs, which have no index signature.
 */
export type ContentPart =
  | { readonly type: string; readonly text?: string | undefined }
  | { readonly type: string; readonly [field: string]: unknown }

/** Tool call in OpenAI's format: of a function, or of a custom tool with text as input. */
export type ToolCallInput =
  | {
      readonly id: string
      readonly type?: string | undefined
      readonly function: { readonly name: string; readonly arguments: string }
    }
  | { readonly id: string; readonly type: string; readonly custom: { readonly name: string; readonly input: string } }

/**
 * Message from a caller: in OpenAI's format, in Anthropic's, or in that of the AI SDK. The types of the packages
 * `openai`, `@anthropic-ai/sdk` and `ai` are assignable to it, those of requests and of responses.
 */
export type MessageInput = {
  readonly role: Role | 'developer' | 'function'
  readonly content?: string | null | readonly ContentPart[] | undefined
  readonly name?: string | undefined
  readonly tool_calls?: readonly ToolCallInput[] | undefined
  /** Id of the call that a message with the role `tool` answers. */
  readonly tool_call_id?: string | undefined
  /** Stored as the content if there is no other. */
  readonly refusal?: string | null | undefined
  /** Spoken reply; its transcript is stored. */
  readonly audio?: { readonly id: string; readonly transcript?: string } | null | undefined
  /** Deprecated form of `tool_calls`. */
  readonly function_call?: { readonly name: string; readonly arguments: string } | null | undefined
  /** Reasoning, which some servers want back with the message. */
  readonly reasoning_content?: string | null | undefined
  /** Options of the AI SDK for the provider. */
  readonly providerOptions?: object | undefined
  /**
   * Id of the caller, unique within the session, by which the message can be replaced: 1 to 256 characters. A second
   * message with it is refused. An empty one is ignored, and so is a number.
   */
  readonly id?: string | number | null | undefined
  /** Time of the message in milliseconds. Default: now. */
  readonly at?: Millis | undefined
  /** Original form, kept beside the message and returned unchanged to the protocol it came from. */
  readonly payload?: Payload | undefined
}

/** Validated message whose tokens are not counted yet. */
export type ParsedMessage = Omit<
  NewMessage,
  'tokens' | 'lineTokens' | 'tokenizer' | 'weight' | 'packedPayload' | 'branch'
> & {
  readonly payload?: Payload
  /** Ends of the parts of the content except the last one; a line break follows each. Absent for a single text. */
  readonly partEnds?: readonly number[]
}

/** Characters of a message: more than any model reads at once. Longer texts would keep other requests waiting. */
export const maxMessageCharacters = 8_000_000
/** Characters of a name or an id: some servers put the state of a model into the id of a call. */
const maxNameCharacters = 65_536

/** Largest distance of a date from 1970, by the ECMAScript specification. */
const maxTimeMs = 8.64e15

const roles: ReadonlyMap<unknown, Role> = new Map<unknown, Role>(
  Object.entries({ system: 'system', developer: 'system', user: 'user', assistant: 'assistant', tool: 'tool' }),
)

/**
 * Validates a message from a caller; `index` names it in errors. Every message of a history passes through here, so
 * error paths are built only when a check fails.
 *
 * @throws MemoryError `bad-message`.
 */
export function parseMessage(value: unknown, index: number, now: Millis): ParsedMessage {
  if (!isObject(value)) throw messageError(index, '', 'must be an object such as { role: "user", content: "Hello" }')
  const role = roles.get(value.role)
  if (role === undefined) {
    const expected = `it must be one of ${[...roles.keys()].join(', ')}`
    throw messageError(index, '.role', `is ${describeValue(value.role, 40)}; ${expected}`)
  }
  const calls = role === 'assistant' ? parseToolCalls(value.tool_calls, index) : undefined
  const name = value.name === undefined || value.name === null ? '' : parseName(value.name, index, '.name')
  const answers =
    role === 'tool'
      ? parseName(value.tool_call_id, index, '.tool_call_id', 'names the call a tool message answers')
      : undefined
  const parsed: { -readonly [field in keyof ParsedMessage]: ParsedMessage[field] } = {
    at: parseTime(value.at, now, index),
    role,
    content: limitLength(parseContent(value.content, index), index, '.content'),
  }
  if (Array.isArray(value.content) && value.content.length > 1) parsed.partEnds = findPartEnds(value.content, index)
  if (name !== '') parsed.name = name
  if (calls !== undefined) parsed.toolCalls = calls
  if (answers !== undefined) parsed.toolCallId = answers
  if (value.payload !== undefined) parsed.payload = parsePayload(value.payload, index)
  return parsed
}

function parseContent(content: unknown, index: number): string {
  if (typeof content === 'string') return replaceLoneSurrogates(content)
  if (content === null || content === undefined) return ''
  if (!Array.isArray(content))
    throw messageError(
      index,
      '.content',
      'must be text, null or a list of parts such as { type: "text", text: "Hello" }',
    )
  return content.map((part, partIndex) => parsePart(part, index, `.content[${partIndex}]`)).join('\n')
}

/** Returns where the parts of a content end in its text. */
function findPartEnds(content: readonly unknown[], index: number): readonly number[] {
  let end = -1
  return content.slice(0, -1).map((part, partIndex) => {
    end += parsePart(part, index, `.content[${partIndex}]`).length + 1
    return end
  })
}

/** Returns the text of a part; other media become a placeholder such as `[image]`. */
function parsePart(part: unknown, index: number, path: string): string {
  if (!isObject(part) || typeof part.type !== 'string')
    throw messageError(index, path, 'must be a part such as { type: "text", text: "Hello" }')
  if (part.type === 'text' || part.type === 'input_text' || part.type === 'output_text')
    return parseText(part.text, index, `${path}.text`, 'holds the text of the part', true)
  if (part.type === 'refusal')
    return parseText(part.refusal, index, `${path}.refusal`, 'holds the text of the part', true)
  return `[${part.type.replace(/^input_|_url$/g, '')}]`
}

function parseToolCalls(value: unknown, index: number): readonly ToolCall[] | undefined {
  if (value === undefined || value === null) return undefined
  if (!Array.isArray(value)) throw messageError(index, '.tool_calls', 'must be a list')
  if (value.length === 0) return undefined
  return value.map((call, callIndex) => {
    const path = `.tool_calls[${callIndex}]`
    if (!isObject(call) || !isObject(call.function))
      throw messageError(index, path, 'must be { id, type: "function", function: { name, arguments } }')
    const { name, arguments: json } = call.function
    return {
      id: parseName(call.id, index, `${path}.id`, 'names the call'),
      name: parseName(name, index, `${path}.function.name`, 'names the tool'),
      arguments: limitLength(
        parseText(json ?? '', index, `${path}.function.arguments`, 'holds JSON text', true),
        index,
        `${path}.function.arguments`,
      ),
    }
  })
}

function parsePayload(value: unknown, index: number): Payload {
  const fault = describePayloadFault(value)
  if (fault !== undefined) throw messageError(index, `.payload${fault.field}`, fault.problem)
  const { protocol, items, count } = value as Payload
  return count === undefined ? { protocol, items } : { protocol, items, count }
}

function parseTime(value: unknown, now: Millis, index: number): Millis {
  const time = value ?? now
  if (typeof time === 'number' && Math.abs(time) <= maxTimeMs) return time
  throw messageError(index, '.at', `is ${describeValue(value, 40)}; it must be a time in milliseconds`)
}

/** Reads a text field. A field with a `purpose` must not be empty unless `mayBeEmpty`. */
function parseText(
  value: unknown,
  index: number,
  path: string,
  purpose?: string,
  mayBeEmpty = purpose === undefined,
): string {
  if (typeof value === 'string' && (mayBeEmpty || value !== '')) return replaceLoneSurrogates(value)
  const suffix = purpose === undefined ? '' : `; it ${purpose}`
  throw messageError(index, path, `must be text${mayBeEmpty ? '' : ' that is not empty'}${suffix}`)
}

/** Reads a name or an id. */
const parseName = (value: unknown, index: number, path: string, purpose?: string): string =>
  limitLength(parseText(value, index, path, purpose), index, path, maxNameCharacters)

function limitLength(text: string, index: number, path: string, max = maxMessageCharacters): string {
  if (text.length <= max) return text
  const problem = `has ${text.length} characters; it may have ${max}`
  throw messageError(index, path, `${problem}. Shorten it, or send it in several messages`)
}

/** Replaces lone surrogates by U+FFFD: they cannot be encoded as UTF-8. */
export const replaceLoneSurrogates = (text: string): string => text.toWellFormed()

export function messageError(index: number, field: string, problem: string): MemoryError {
  const param = `messages[${index}]${field}`
  return new MemoryError('bad-message', `${param} ${problem}.`, { param })
}
