// A model server that answers at once: some two hundred characters, each time others, in one or as a stream.
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sentences } from '../corpus.ts'

const replies = sentences(20_000, 8)
const header = { id: 'chatcmpl-bench', created: 1_700_000_000, model: 'bench' }
/** A stream comes in so many parts, with time between them for whoever passes it on. */
const parts = 4
const wordsPerEvent = 2

const completion = (content: string): string =>
  JSON.stringify({
    ...header,
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  })

const event = (delta: object, reason: string | null): string =>
  `data: ${JSON.stringify({ ...header, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`

function eventsOf(content: string): string[] {
  const words = content.split(/(?= )/)
  const pieces = Array.from({ length: Math.ceil(words.length / wordsPerEvent) }, (_, at) =>
    words.slice(at * wordsPerEvent, (at + 1) * wordsPerEvent).join(''),
  )
  return [
    event({ role: 'assistant', content: '' }, null),
    ...pieces.map((piece) => event({ content: piece }, null)),
    event({}, 'stop'),
    'data: [DONE]\n\n',
  ]
}

function stream(response: ServerResponse, events: readonly string[]): void {
  const each = Math.ceil(events.length / parts)
  const send = (from: number): void => {
    response.write(events.slice(from, from + each).join(''))
    if (from + each < events.length) setImmediate(send, from + each)
    else response.end()
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  send(0)
}

let asked = 0
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (bytes: Buffer) => chunks.push(bytes))
  request.once('end', () => {
    const content = replies[asked++ % replies.length] as string
    // Where the flag stands is up to whoever wrote the body; no question holds it.
    if (Buffer.concat(chunks).includes('"stream":true')) return stream(response, eventsOf(content))
    const body = Buffer.from(completion(content))
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
  })
})
server.keepAliveTimeout = 600_000
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
