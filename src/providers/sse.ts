import { createParser } from 'eventsource-parser'
import { MemoryError } from '../domain/error.ts'

export type ServerEvent = { readonly event: string; readonly data: string }

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
