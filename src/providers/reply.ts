import { createParser } from 'eventsource-parser'
import { MemoryError } from '../domain/error.ts'
import type { ModelRequest, ModelUsage } from '../domain/ports.ts'
import { getPath, parseJson } from '../text/json.ts'
import { findReportedError, incompleteReplyError, invalidReplyError } from './errors.ts'
import { findJsonFault, replyLimits } from './jsonStructure.ts'
import { type ModelResponse, readText } from './request.ts'

/**
 * The content of one stream event. `complete`: the reply is whole, but more events may follow; `closed`: nothing more
 * can follow.
 */
export type ReplyDelta = { readonly text: string; readonly state: 'streaming' | 'complete' | 'closed' }

/** Token counts in an event or a reply; a stream may report them in several events. */
export type ReportedUsage = Partial<ModelUsage>

/** Parsers for the reply format of a provider; both throw when the provider withheld the reply. */
export type ReplyFormat = {
  /** Parses one event of a stream. */
  readonly parseEvent: (event: unknown, url: string) => ReplyDelta
  /** Parses a reply that was sent as one JSON document; returns undefined when it is none. */
  readonly parseReply: (json: unknown, url: string) => string | undefined
  /** Parses the token counts of an event or a reply; undefined when it has none. */
  readonly parseUsage: (json: unknown) => ReportedUsage | undefined
}

type UsageListener = ModelRequest['onUsage']

const doneEvent: ReplyDelta = { text: '', state: 'closed' }
const maxReplyBytes = 16_777_216

/** Streams the text of a reply. A server without streaming support may send it as one JSON document. */
export async function* streamReply(
  response: ModelResponse,
  format: ReplyFormat,
  onUsage?: UsageListener,
): AsyncIterable<string> {
  const contentType = response.contentType.toLowerCase()
  if (contentType.includes('html')) {
    await response.body.cancel()
    throw invalidReplyError(response.url, 'a web page')
  }
  if (contentType.includes('json')) yield* readJsonReply(response, format, onUsage)
  else yield* readEventStream(response, format, onUsage)
}

async function* readJsonReply(
  { url, body }: ModelResponse,
  format: ReplyFormat,
  onUsage: UsageListener,
): AsyncIterable<string> {
  const text = await readText(body, maxReplyBytes)
  if (text === undefined) throw invalidReplyError(url, `more than ${maxReplyBytes} bytes`)
  const json = parseSuccess(url, text, 'something that is not JSON')
  const reply = format.parseReply(json, url)
  if (reply === undefined) throw invalidReplyError(url, 'JSON of another kind')
  reportUsage(format.parseUsage(json), onUsage)
  if (reply !== '') yield reply
}

async function* readEventStream(
  { url, body, drain }: ModelResponse,
  format: ReplyFormat,
  onUsage: UsageListener,
): AsyncIterable<string> {
  let usage: ReportedUsage | undefined
  let state: ReplyDelta['state'] = 'streaming'
  let characters = 0
  try {
    for await (const { data } of readServerEvents(body)) {
      const event = data.trim()
      if (event === '' || state === 'closed') continue
      const json = event === '[DONE]' ? undefined : parseSuccess(url, event, 'an event that is not JSON')
      const delta = json === undefined ? doneEvent : format.parseEvent(json, url)
      const reported = json === undefined ? undefined : format.parseUsage(json)
      if (reported !== undefined) usage = { ...usage, ...reported }
      characters += delta.text.length
      if (characters > maxReplyBytes) throw invalidReplyError(url, `more than ${maxReplyBytes} characters`)
      if (delta.text !== '') yield delta.text
      if (delta.state !== 'streaming') state = delta.state
      if (state === 'closed') drain()
    }
  } catch (error) {
    // A connection error after a complete reply is ignored.
    if (state === 'streaming' || !(error instanceof MemoryError) || error.code === 'aborted') throw error
  } finally {
    reportUsage(usage, onUsage)
  }
  if (state === 'streaming') throw incompleteReplyError(url)
}

function reportUsage(usage: ReportedUsage | undefined, onUsage: UsageListener): void {
  if (usage?.prompt === undefined || usage.completion === undefined) return
  onUsage?.({ prompt: usage.prompt, completion: usage.completion, cached: usage.cached ?? 0 })
}

/** Reads a token count; undefined when there is none. */
export function readTokens(json: unknown, ...path: readonly string[]): number | undefined {
  const value = getPath(json, ...path)
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

/** Parses JSON and throws when it is invalid or reports an error. */
function parseSuccess(url: string, text: string, invalid: string): unknown {
  if (findJsonFault(text, replyLimits) !== undefined)
    throw invalidReplyError(url, 'JSON that is nested too deeply or has too many values')
  const json = parseJson(text)
  if (json === undefined) throw invalidReplyError(url, invalid)
  const error = findReportedError(url, json)
  if (error !== undefined) throw error
  return json
}

type ServerEvent = { readonly event: string; readonly data: string }

/** Limit of one line, and of the data of one event, in characters. */
const maxEventChars = 1_048_576

/**
 * Reads server-sent events from a response body. An event that is not terminated by an empty line is dropped.
 * Cancels the body when the consumer stops early.
 *
 * @throws MemoryError `upstream` when a line or an event exceeds 1,048,576 characters.
 *
 * @example
 * for await (const { data } of readServerEvents(response.body)) console.log(data)
 */
export async function* readServerEvents(body: ReadableStream<Uint8Array>): AsyncIterable<ServerEvent> {
  let events: ServerEvent[] = []
  let isTooLong = false
  const parser = createParser({
    maxBufferSize: maxEventChars,
    onEvent({ event = 'message', data }) {
      // The parser's own limit covers only data that is buffered between two chunks.
      if (data.length > maxEventChars) isTooLong = true
      else events.push({ event, data })
    },
    onError(error) {
      if (error.type === 'max-buffer-size-exceeded') isTooLong = true
    },
  })
  for await (const chunk of decodeChunks(body)) {
    parser.feed(chunk)
    yield* events
    events = []
    if (isTooLong) throw tooLongError()
  }
}

/** Decodes a body into non-empty chunks of text; cancels the body when the consumer stops early. */
async function* decodeChunks(body: ReadableStream<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let endedWithCr = false
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      const decoded = decoder.decode(chunk.value, { stream: true })
      if (decoded === '') continue
      // The parser holds back a CR at the end of a chunk, because an LF could follow. Completing the line end here
      // delivers the event at once; the LF of a divided CRLF is then dropped from the next chunk.
      const text = endedWithCr && decoded.startsWith('\n') ? decoded.slice(1) : decoded
      endedWithCr = decoded.endsWith('\r')
      if (text !== '') yield endedWithCr ? `${text}\n` : text
    }
  } finally {
    // Cancelling a failed body rejects with the failure that is already being thrown.
    await reader.cancel().catch(() => undefined)
  }
}

const tooLongError = (): MemoryError =>
  new MemoryError(
    'upstream',
    `The upstream sent an event or a line of more than ${maxEventChars} characters, which is not a model reply. Check that the address is that of a model server.`,
  )
