import { createHash } from 'node:crypto'
import { type ContentPart, maxMessageCharacters, parseMessage, replaceLoneSurrogates } from '../../domain/chat.ts'
import { isObject, MemoryError } from '../../domain/error.ts'
import { findJsonFault, type JsonLimits, maxFieldNames } from '../../providers/jsonStructure.ts'
import { HttpError } from '../http/httpError.ts'
import type { ClientMessage, FilePart, ParsedRequest, RequestBody } from './protocol.ts'

/** Fields of a request that describe its conversation. */
export type ParsedConversation = Pick<
  ParsedRequest,
  'messages' | 'turnStart' | 'promptOverheadTokens' | 'instructions' | 'hasTools' | 'files' | 'references'
>
type Envelope = Omit<ParsedRequest, keyof ParsedConversation>

/**
 * Creates a request whose conversation is parsed and validated on first access. Requests that bypass memory are
 * therefore validated by the model server alone.
 */
export const createLazyRequest = (envelope: Envelope, parse: () => ParsedConversation): ParsedRequest =>
  new LazyRequest(envelope, parse)

/** Copies a request with other messages or another prompt overhead. */
export const overrideConversation = (
  request: ParsedRequest,
  {
    messages = request.messages,
    promptOverheadTokens: overhead = request.promptOverheadTokens,
  }: Partial<Pick<ParsedConversation, 'messages' | 'promptOverheadTokens'>>,
): ParsedRequest => {
  const { turnStart, instructions, hasTools, files, references } = request
  return new LazyRequest(request, () => ({
    messages,
    turnStart,
    promptOverheadTokens: overhead,
    instructions,
    hasTools,
    files,
    references,
  }))
}

class LazyRequest implements ParsedRequest {
  readonly body: ParsedRequest['body']
  readonly model: string
  readonly isStreaming: boolean
  readonly maxTokens: number | undefined
  readonly sessionHint: string | undefined
  readonly previousResponseId: string | undefined
  readonly conversationId: string | undefined
  private readonly parse: () => ParsedConversation
  private parsed: ParsedConversation | undefined

  constructor(envelope: Envelope, parse: () => ParsedConversation) {
    this.body = envelope.body
    this.model = envelope.model
    this.isStreaming = envelope.isStreaming
    this.maxTokens = envelope.maxTokens
    this.sessionHint = envelope.sessionHint
    this.previousResponseId = envelope.previousResponseId
    this.conversationId = envelope.conversationId
    this.parse = parse
  }

  get messages(): ParsedRequest['messages'] {
    return this.getConversation().messages
  }

  get turnStart(): ParsedRequest['turnStart'] {
    return this.getConversation().turnStart
  }

  get promptOverheadTokens(): ParsedRequest['promptOverheadTokens'] {
    return this.getConversation().promptOverheadTokens
  }

  get instructions(): ParsedRequest['instructions'] {
    return this.getConversation().instructions
  }

  get hasTools(): ParsedRequest['hasTools'] {
    return this.getConversation().hasTools
  }

  get files(): ParsedRequest['files'] {
    return this.getConversation().files
  }

  get references(): ParsedRequest['references'] {
    return this.getConversation().references
  }

  private getConversation(): ParsedConversation {
    this.parsed ??= this.parse()
    return this.parsed
  }
}

/** Parses one message. Its time is 0: memory assigns the time when it stores the message. */
export function parseClientMessage(message: unknown, index: number): ClientMessage {
  const parsed = parseMessage(message, index, 0)
  const { at, role, content, name, toolCalls, toolCallId, partEnds } = parsed
  if (name === undefined && toolCalls === undefined && toolCallId === undefined && partEnds === undefined)
    return { at, role, content, index }
  for (const call of toolCalls ?? []) limitArguments(call.arguments)
  return { ...parsed, index }
}

/** Limits of JSON inside the arguments of a tool call: masking and comparing parse them. */
const argumentLimits: JsonLimits = { depth: Number.POSITIVE_INFINITY, values: 500_000, fields: 100_000 }

function limitArguments(text: string): void {
  const fault = findJsonFault(text, argumentLimits)
  if (fault !== 'values' && fault !== 'fields' && fault !== 'names') return
  throw new HttpError(
    413,
    'too_many_values',
    `The arguments of a tool call contain more than ${argumentLimits.values} values, ${argumentLimits.fields} fields or ${maxFieldNames} different field names. Send large data in the result of a tool.`,
  )
}

/** Unvalidated fields of a chat message. */
type RawMessage = Readonly<Record<'role' | 'content' | 'name' | 'at' | 'tool_calls' | 'function_call', unknown>>

/**
 * Fast path of `parseClientMessage` for a user or assistant message that has only text, as most of a history does.
 * Returns undefined for any other message.
 */
export function parsePlainMessage(message: unknown, index: number): ClientMessage | undefined {
  if (typeof message !== 'object' || message === null) return undefined
  const { role, content, name, at, tool_calls: calls, function_call: call } = message as RawMessage
  if ((role !== 'user' && role !== 'assistant') || typeof content !== 'string') return undefined
  if (name !== undefined || at !== undefined || calls !== undefined || call !== undefined) return undefined
  if (content.length > maxMessageCharacters) return undefined
  return { at: 0, role, content: replaceLoneSurrogates(content), index }
}

/**
 * Finds the client's index at which the newest turn starts: the first of the user messages in a row that end with the
 * last user message. A list that begins with several user messages is not such a row, because the client may leave the
 * replies between them to memory. Without any user message (tool results only) the turn starts with the first message.
 */
export function findTurnStart(messages: readonly ClientMessage[]): number | undefined {
  let last = messages.length - 1
  while (last >= 0 && messages[last]?.role !== 'user') last--
  let previous = last - 1
  while (previous >= 0 && messages[previous]?.role === 'user') previous--
  return messages[previous < 0 ? Math.max(0, last) : previous + 1]?.index
}

/** Schemas and predictions of the output as messages that count as they do: models read them as text. */
export const describeOutput = (...parts: readonly unknown[]): ReturnType<typeof toSystemMessage>[] =>
  parts.flatMap((part) =>
    isObject(part) && Object.keys(part).length > 1 ? [toSystemMessage(JSON.stringify(part))] : [],
  )

/** Wraps an instruction in a system message, so that its tokens can be counted. */
export const toSystemMessage = (content: string): { readonly role: string; readonly content: string } => ({
  role: 'system',
  content,
})

/** Returns instructions unchanged, or throws if they are longer together than a message may be. */
export function limitInstructions(texts: readonly string[], param: string): readonly string[] {
  const characters = texts.reduce((sum, { length }) => sum + length, 0)
  if (characters <= maxMessageCharacters) return texts
  throw invalidField(param, `has ${characters} characters; it may have ${maxMessageCharacters}. Shorten it`)
}

/** Creates the error for a request field that memory cannot read. */
export const invalidField = (param: string, problem: string): MemoryError =>
  new MemoryError('bad-message', `${param} ${problem}.`, { param })

/** Read `type` of a part, block or item and `role` of a message; the empty string when the field is not text. */
export const readType = (value: unknown): string =>
  isObject(value) && typeof value.type === 'string' ? value.type : ''
export const readRole = (value: unknown): string =>
  isObject(value) && typeof value.role === 'string' ? value.role : ''

export const asArray = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
export const asNumber = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

/** Requires an object. */
export function requireObject(value: unknown, param: string, example: string): Readonly<Record<string, unknown>> {
  if (isObject(value)) return value
  throw invalidField(param, `must be an object such as ${example}`)
}

/** Requires text. With a `purpose`, which completes "it …" in the error, the text must not be empty. */
export function requireText(value: unknown, param: string, purpose?: string): void {
  if (typeof value !== 'string' || (value === '' && purpose !== undefined))
    throw invalidField(param, purpose === undefined ? 'must be text' : `must be text that is not empty; it ${purpose}`)
}

/** Requires text or a list of parts. Each part needs a type, and text if `isText` says its type is a text type. */
export function requireParts(content: unknown, param: string, isText: (type: string) => boolean): void {
  if (typeof content === 'string') return
  if (!Array.isArray(content)) throw invalidField(param, 'must be text or a list')
  for (const [index, part] of limitCount(content as unknown[], 'parts', param).entries()) {
    // Fast path: valid parts need no parameter names for errors.
    if (
      isObject(part) &&
      typeof part.type === 'string' &&
      part.type !== '' &&
      (typeof part.text === 'string' || !isText(part.type))
    )
      continue
    const { type, text } = requireObject(part, `${param}[${index}]`, '{ "type": "text", "text": "Hello" }')
    requireText(type, `${param}[${index}].type`, 'says what the part is')
    if (isText(type as string)) requireText(text, `${param}[${index}].text`)
  }
}

/** Limits per request, far above real use: parsing a longer list would block other requests. */
const maxCount = { messages: 10_000, tools: 2_000, parts: 4_000, tool_calls: 4_000 }

const remedies: Readonly<Record<keyof typeof maxCount, string>> = {
  messages: 'Leave the older ones to memory.',
  tools: 'Send those that are needed now.',
  parts: 'Join the texts of adjacent parts.',
  tool_calls: 'Divide them among several messages.',
}

/** Returns the list unchanged, or throws a 400 error if it holds too many elements. */
export function limitCount<T>(list: readonly T[], kind: keyof typeof maxCount, param: string = kind): readonly T[] {
  if (list.length <= maxCount[kind]) return list
  throw new HttpError(
    400,
    `too_many_${kind}`,
    `${param} holds ${list.length} ${kind.replace('_', ' ')}; one ${kind === 'parts' || kind === 'tool_calls' ? 'message' : 'request'} may hold ${maxCount[kind]}. ${remedies[kind]}`,
    param,
  )
}

/** Returns the message unchanged, or throws a 400 error if it holds too many parts or tool calls. */
export function limitMessage<T extends Readonly<Record<string, unknown>>>(message: T): T {
  limitCount(asArray(message.content), 'parts', 'content')
  limitCount(asArray(message.tool_calls), 'tool_calls')
  return message
}

/** Requires a non-empty `messages` list. */
export function requireMessages({ messages }: RequestBody): readonly unknown[] {
  if (Array.isArray(messages) && messages.length > 0) return limitCount(messages, 'messages')
  throw new HttpError(
    400,
    'missing_messages',
    'messages is missing: it must be a list with at least one message such as { "role": "user", "content": "Hello" }.',
    'messages',
  )
}

/** Bytes embedded in a request as a `data:` URL or plain base64. */
type InlineData = { readonly type: string; readonly bytes: Buffer }

/** Parses a `data:` URL; undefined for any other text. */
function parseDataUrl(url: string): InlineData | undefined {
  if (!/^data:/i.test(url)) return undefined
  const comma = url.indexOf(',')
  if (comma < 0) return undefined
  const [type = '', ...options] = url.slice(5, comma).split(';')
  const bytes = options.some((option) => option.trim().toLowerCase() === 'base64')
    ? Buffer.from(url.slice(comma + 1), 'base64')
    : Buffer.from(decodePercent(url.slice(comma + 1)), 'utf8')
  return { type: type.trim().toLowerCase() || 'text/plain', bytes }
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Formats the transcript text for media: its kind, size and a hash that identifies it when it is sent again. */
export function formatPlaceholder(kind: string, bytes: Uint8Array | undefined, address = ''): string {
  if (bytes === undefined) return `[${kind}${address === '' ? '' : ` ${replaceLoneSurrogates(address).slice(0, 200)}`}]`
  return `[${kind}, ${bytes.length} bytes, sha256 ${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}]`
}

/** File in a request: `data` is a `data:` URL or plain base64, or empty when only an `address` was sent. */
type FileSource = { readonly name: string; readonly data: string; readonly address: string }

/** Appends a file to `files` and returns the placeholder part for the transcript. */
export function addFilePart({ name, data, address }: FileSource, files: FilePart[]): ContentPart {
  const file = createFile(
    name,
    data === '' ? undefined : (parseDataUrl(data) ?? { type: '', bytes: Buffer.from(data, 'base64') }),
  )
  files.push(file)
  const type = file.mediaType === '' ? '' : `, ${file.mediaType}`
  return toTextPart(formatPlaceholder(`file ${file.name}${type}`, file.bytes, address))
}

/**
 * Converts a media URL to a placeholder part. A `data:` URL that is not image, audio or video is appended to `files`.
 */
export function addMediaUrl(kind: string, url: string, files: FilePart[]): ContentPart {
  const data = parseDataUrl(url)
  if (data === undefined || conversationalType.test(data.type))
    return toTextPart(formatPlaceholder(kind, data?.bytes, url))
  files.push(createFile('', data))
  return toTextPart(formatPlaceholder(`file, ${data.type}`, data.bytes))
}

/**
 * Finds user messages with media that the client sent again before index `from`, keyed by the text memory stores for
 * them. The original message replaces that text wherever memory shows it unshortened, so that the model sees the media.
 *
 * @example
 * findResentMedia(request.messages, list, request.turnStart).get('[image, 20 bytes, sha256 fe1a4ab1fb634703]')
 * // { role: 'user', content: [{ type: 'image_url', … }] }
 */
export function findResentMedia<T>(
  messages: readonly ClientMessage[],
  list: readonly T[],
  from: number,
): ReadonlyMap<string, T> {
  let found: Map<string, T> | undefined
  for (let position = 0; position < messages.length; position++) {
    const { role, content, index } = messages[position] as ClientMessage
    if (index >= from) break
    const original = list[index]
    if (role !== 'user' || original === undefined || !hasMedia(original)) continue
    // A message that also carries tool results is skipped: memory may show one without the other.
    const isAlone = messages[position - 1]?.index !== index && messages[position + 1]?.index !== index
    if (isAlone) found = (found ?? new Map()).set(content, original)
  }
  return found ?? noMedia
}

const noMedia: ReadonlyMap<string, never> = new Map<string, never>()
const textTypes = ['text', 'input_text', 'output_text']

function hasMedia(message: unknown): boolean {
  const content = isObject(message) ? message.content : undefined
  return Array.isArray(content) && content.some((part) => !textTypes.includes(readType(part)))
}

export const toTextPart = (text: string): ContentPart => ({ type: 'text', text })

/** Media types that belong to the conversation itself and are not stored as files. */
const conversationalType = /^(?:image|audio|video)\//

const createFile = (name: string, data: InlineData | undefined): FilePart => ({
  name: name === '' ? 'file' : replaceLoneSurrogates(name).slice(0, 255),
  mediaType: data?.type ?? '',
  bytes: data?.bytes,
})
