import { MemoryError } from '../domain/error.ts'

export type ServerEvent = { readonly event: string; readonly data: string }

/** The most characters one line, or the data of one event, may have. */
const longest = 1_048_576

/**
 * Reads server-sent events as the HTML standard defines them; an event that was not finished by an empty line is not one.
 *
 * @example
 * for await (const { data } of events(response.body)) console.log(data)
 */
export async function* events(body: ReadableStream<Uint8Array>): AsyncIterable<ServerEvent> {
  let event = ''
  let data: string[] = []
  let size = 0
  for await (const line of lines(body)) {
    if (line === '') {
      if (data.length > 0) yield { event: event === '' ? 'message' : event, data: data.join('\n') }
      event = ''
      data = []
      size = 0
      continue
    }
    const { name, value } = fieldOf(line)
    if (name === 'event') event = value
    if (name !== 'data') continue
    size += value.length + 1
    if (size > longest) throw tooLong('an event')
    data.push(value)
  }
}

function fieldOf(line: string): { name: string; value: string } {
  const colon = line.indexOf(':')
  if (colon < 0) return { name: line, value: '' }
  const value = line.slice(colon + 1)
  return { name: line.slice(0, colon), value: value.startsWith(' ') ? value.slice(1) : value }
}

async function* lines(body: ReadableStream<Uint8Array>): AsyncIterable<string> {
  let rest = ''
  let endedInReturn = false
  for await (const piece of texts(body)) {
    // CR and LF of one line end may come in two pieces; the line is given out at once and the LF is not a second one.
    const text = endedInReturn && piece.startsWith('\n') ? piece.slice(1) : piece
    endedInReturn = piece.endsWith('\r')
    let start = 0
    for (const end of text.matchAll(/\r\n|\r|\n/g)) {
      yield bounded(rest + text.slice(start, end.index))
      rest = ''
      start = end.index + end[0].length
    }
    rest = bounded(rest + text.slice(start))
  }
}

/** The body as pieces of text, never empty ones; what the reader leaves unread is cancelled. */
async function* texts(body: ReadableStream<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      const text = decoder.decode(chunk.value, { stream: true })
      if (text !== '') yield text
    }
  } finally {
    // A body that has failed answers its cancellation with the same failure, which is already on its way.
    await reader.cancel().catch(() => undefined)
  }
}

function bounded(line: string): string {
  if (line.length > longest) throw tooLong('a line')
  return line
}

const tooLong = (what: string): MemoryError =>
  new MemoryError(
    'upstream',
    `The upstream sent ${what} of more than ${longest} characters, which is no reply of a model. Check that the address is that of a model server.`,
  )
