// Model server of the soak: OpenAI's and Anthropic's protocols, buffered and streamed, with failures on request.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createSentences } from '../corpus.ts'

/** A message that contains one of these words and a number in `failing` gets the failure of that name. */
export const failures = ['refuse-400', 'fail-500', 'break-off', 'send-garbage', 'drip-slowly'] as const
export type Failure = (typeof failures)[number]

const replies = createSentences(5_000, 8)

export type SoakUpstream = {
  readonly url: string
  /** Words that fail at the moment, such as `fail-500-17`. */
  readonly failing: Set<string>
  close(): void
}

const failurePattern = new RegExp(`(${failures.join('|')})-\\d+`, 'g')

export async function startSoakUpstream(): Promise<SoakUpstream> {
  const failing = new Set<string>()
  let count = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (bytes: Buffer) => chunks.push(bytes))
    request.on('error', () => undefined)
    request.once('end', () => {
      const body = Buffer.concat(chunks)
      const content = replies[count++ % replies.length] as string
      // The newest message comes last in all protocols. Byte searches avoid parsing.
      const newest = body.subarray(Math.max(0, body.length - 2_000)).toString('latin1')
      const failure = [...newest.matchAll(failurePattern)].find(([word]) => failing.has(word))?.[1] as
        | Failure
        | undefined
      const isStreaming = body.includes('"stream":true')
      if (failure !== undefined) return fail(response, failure, content)
      answer(response, request.url ?? '', content, isStreaming)
    })
  })
  server.keepAliveTimeout = 600_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    failing,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => server.close().closeAllConnections(),
  }
}

function fail(response: ServerResponse, failure: Failure, content: string): void {
  if (failure === 'refuse-400' || failure === 'fail-500') {
    response.writeHead(Number(failure.slice(-3)), { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { message: 'The client asked for this failure.', type: 'server_error' } }))
  } else if (failure === 'send-garbage') response.writeHead(200, { 'content-type': 'application/json' }).end(content)
  else {
    const events = encodeChatEvents(content)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(events.slice(0, 3).join(''))
    if (failure === 'break-off') setTimeout(() => response.destroy(), 5)
    else setTimeout(() => response.end(events.slice(3).join('')), 500)
  }
}

function answer(response: ServerResponse, url: string, content: string, isStreaming: boolean): void {
  const protocol = url.includes('/messages') ? messages : url.includes('/responses') ? responses : chat
  if (!isStreaming)
    return void response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify(protocol.encode(content)))
  const events = protocol.encodeEvents(content)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const middle = Math.ceil(events.length / 2)
  response.write(events.slice(0, middle).join(''))
  setImmediate(() => response.end(events.slice(middle).join('')))
}

type Encoder = { encode(content: string): object; encodeEvents(content: string): string[] }

const splitWords = (content: string): string[] => content.split(/(?= )/)
const toEvent = (data: object): string => `data: ${JSON.stringify(data)}\n\n`
const toNamedEvent = (data: { readonly type: string }): string => `event: ${data.type}\n${toEvent(data)}`
const usage = { input_tokens: 10, output_tokens: 20 }

const chatHeader = { id: 'chatcmpl-soak', created: 1_700_000_000, model: 'soak' }
const encodeChatEvents = (content: string): string[] => {
  const encode = (delta: object, reason: string | null): string =>
    toEvent({
      ...chatHeader,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason: reason }],
    })
  return [
    encode({ role: 'assistant', content: '' }, null),
    ...splitWords(content).map((word) => encode({ content: word }, null)),
    encode({}, 'stop'),
    'data: [DONE]\n\n',
  ]
}

const chat: Encoder = {
  encode: (content) => ({
    ...chatHeader,
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 },
  }),
  encodeEvents: encodeChatEvents,
}

const message = { id: 'msg_soak', type: 'message', role: 'assistant', model: 'claude-soak', stop_sequence: null }

const messages: Encoder = {
  encode: (text) => ({ ...message, content: [{ type: 'text', text }], stop_reason: 'end_turn', usage }),
  encodeEvents: (text) => [
    toNamedEvent({ type: 'message_start', ...{ message: { ...message, content: [], stop_reason: null, usage } } }),
    toNamedEvent({ type: 'content_block_start', ...{ index: 0, content_block: { type: 'text', text: '' } } }),
    ...splitWords(text).map((word) =>
      toNamedEvent({ type: 'content_block_delta', ...{ index: 0, delta: { type: 'text_delta', text: word } } }),
    ),
    toNamedEvent({ type: 'content_block_stop', ...{ index: 0 } }),
    toNamedEvent({ type: 'message_delta', ...{ delta: { stop_reason: 'end_turn', stop_sequence: null }, usage } }),
    toNamedEvent({ type: 'message_stop' }),
  ],
}

let responseCount = 0

function createResponse(text: string): object {
  const id = responseCount++
  return {
    id: `resp_soak${id}`,
    object: 'response',
    created_at: 1_700_000_000,
    status: 'completed',
    model: 'soak',
    output: [
      {
        ...{ type: 'message', id: `msg_soak${id}`, role: 'assistant', status: 'completed' },
        content: [{ type: 'output_text', text, annotations: [] }],
      },
    ],
    usage: { ...usage, total_tokens: 30 },
  }
}

const responses: Encoder = {
  encode: createResponse,
  encodeEvents: (text) => [
    ...splitWords(text).map((word) =>
      toNamedEvent({
        type: 'response.output_text.delta',
        ...{ item_id: 'msg_soak', output_index: 0, content_index: 0, delta: word },
      }),
    ),
    toNamedEvent({ type: 'response.completed', ...{ response: createResponse(text) } }),
  ],
}
