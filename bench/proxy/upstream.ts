// Model server that responds immediately with about 200 characters of varying text, buffered or streamed.
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createSentences } from '../corpus.ts'

const replies = createSentences(20_000, 8)
const header = { id: 'chatcmpl-bench', created: 1_700_000_000, model: 'bench' }
/** Writes per stream, each in its own event-loop turn, so that a proxy can relay in between. */
const writesPerStream = 4
const wordsPerEvent = 2

const createCompletion = (content: string): string =>
  JSON.stringify({
    ...header,
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  })

const createEvent = (delta: object, reason: string | null): string =>
  `data: ${JSON.stringify({ ...header, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`

function createEvents(content: string): string[] {
  const words = content.split(/(?= )/)
  const chunks = Array.from({ length: Math.ceil(words.length / wordsPerEvent) }, (_, index) =>
    words.slice(index * wordsPerEvent, (index + 1) * wordsPerEvent).join(''),
  )
  return [
    createEvent({ role: 'assistant', content: '' }, null),
    ...chunks.map((chunk) => createEvent({ content: chunk }, null)),
    createEvent({}, 'stop'),
    'data: [DONE]\n\n',
  ]
}

function sendStream(response: ServerResponse, events: readonly string[]): void {
  const eventsPerWrite = Math.ceil(events.length / writesPerStream)
  const send = (from: number): void => {
    response.write(events.slice(from, from + eventsPerWrite).join(''))
    if (from + eventsPerWrite < events.length) setImmediate(send, from + eventsPerWrite)
    else response.end()
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  send(0)
}

let requestCount = 0
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (bytes: Buffer) => chunks.push(bytes))
  request.once('end', () => {
    const content = replies[requestCount++ % replies.length] as string
    // A byte search avoids parsing; no query contains the flag.
    if (Buffer.concat(chunks).includes('"stream":true')) return sendStream(response, createEvents(content))
    const body = Buffer.from(createCompletion(content))
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
  })
})
server.keepAliveTimeout = 600_000
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
