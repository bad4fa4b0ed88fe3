import { MemoryError } from '../domain/error.ts'
import { endedEarly, notAReply, reported } from './errors.ts'
import { parseJson } from './json.ts'
import { type ModelResponse, readText } from './request.ts'
import { readServerEvents } from './sse.ts'

/**
 * The content of one stream event. `complete`: the reply is whole, but more events may follow; `closed`: nothing more
 * can follow.
 */
export type ReplyDelta = { readonly text: string; readonly state: 'streaming' | 'complete' | 'closed' }

/** Parsers for the reply format of a provider; both throw when the provider withheld the reply. */
export type ReplyFormat = {
  /** Parses one event of a stream. */
  readonly parseEvent: (event: unknown, url: string) => ReplyDelta
  /** Parses a reply that was sent as one JSON document; returns undefined when it is none. */
  readonly parseReply: (json: unknown, url: string) => string | undefined
}

const doneEvent: ReplyDelta = { text: '', state: 'closed' }
const maxReplyBytes = 16_777_216

/** Streams the text of a reply. A server without streaming support may send it as one JSON document. */
export async function* streamReply(response: ModelResponse, format: ReplyFormat): AsyncIterable<string> {
  const contentType = response.contentType.toLowerCase()
  if (contentType.includes('html')) {
    await response.body.cancel()
    throw notAReply(response.url, 'a web page')
  }
  if (contentType.includes('json')) yield* readJsonReply(response, format)
  else yield* readEventStream(response, format)
}

async function* readJsonReply({ url, body }: ModelResponse, format: ReplyFormat): AsyncIterable<string> {
  const text = await readText(body, maxReplyBytes)
  if (text === undefined) throw notAReply(url, `more than ${maxReplyBytes} bytes`)
  const json = parseSuccess(url, text, 'something that is not JSON')
  const reply = format.parseReply(json, url)
  if (reply === undefined) throw notAReply(url, 'JSON of another kind')
  if (reply !== '') yield reply
}

async function* readEventStream({ url, body, drain }: ModelResponse, format: ReplyFormat): AsyncIterable<string> {
  let state: ReplyDelta['state'] = 'streaming'
  try {
    for await (const { data } of readServerEvents(body)) {
      const event = data.trim()
      if (event === '' || state === 'closed') continue
      const delta =
        event === '[DONE]' ? doneEvent : format.parseEvent(parseSuccess(url, event, 'an event that is not JSON'), url)
      if (delta.text !== '') yield delta.text
      if (delta.state !== 'streaming') state = delta.state
      if (state === 'closed') drain()
    }
  } catch (error) {
    // A connection error after a complete reply is ignored.
    if (state === 'streaming' || !(error instanceof MemoryError) || error.code === 'aborted') throw error
  }
  if (state === 'streaming') throw endedEarly(url)
}

/** Parses JSON and throws when it is invalid or reports an error. */
function parseSuccess(url: string, text: string, invalid: string): unknown {
  const json = parseJson(text)
  if (json === undefined) throw notAReply(url, invalid)
  const error = reported(url, json)
  if (error !== undefined) throw error
  return json
}
