import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { findRequestErrors } from './requestRules.ts'
import {
  type Call,
  chatFormat,
  messagesFormat,
  type ResponseFormat,
  responsesFormat,
  type ScriptedReply,
} from './responseFormats.ts'

/** Scripted behaviour for one request. */
export type ScriptedResponse =
  | { readonly kind: 'reply'; readonly reply: ScriptedReply }
  | { readonly kind: 'error'; readonly status: number; readonly headers: Readonly<Record<string, string>> }
  /** Sends half of a stream, then leaves it open or closes the connection. */
  | { readonly kind: 'stall' | 'disconnect'; readonly reply: ScriptedReply }
  | { readonly kind: 'silence' }

export type ReceivedRequest = {
  readonly path: string
  readonly query: string
  readonly headers: IncomingMessage['headers']
  // biome-ignore lint/suspicious/noExplicitAny: tests inspect arbitrary bodies
  readonly body: any
  /** Resolves when the response is complete or the client has closed the connection before that. */
  readonly outcome: Promise<'completed' | 'aborted'>
}

/** One response for all requests, a list whose last element repeats, or a function of the request. */
export type Script = ScriptedResponse | readonly ScriptedResponse[] | ((request: ReceivedRequest) => ScriptedResponse)

export type ModelServer = AsyncDisposable & {
  /** Base URL with `/v1`. */
  readonly url: string
  readonly requests: readonly ReceivedRequest[]
  /** Waits for the request with this index. */
  waitForRequest(index: number): Promise<ReceivedRequest>
  close(): Promise<void>
}

export const replyWith = (reply: string | ScriptedReply): ScriptedResponse => ({
  kind: 'reply',
  reply: typeof reply === 'string' ? { text: reply } : reply,
})
export const replyWithCalls = (...calls: readonly Call[]): ScriptedResponse => replyWith({ calls })
export const failWith = (status: number, headers: Readonly<Record<string, string>> = {}): ScriptedResponse => ({
  kind: 'error',
  status,
  headers,
})
export const stallDuring = (text: string): ScriptedResponse => ({ kind: 'stall', reply: { text } })
export const disconnectDuring = (text: string): ScriptedResponse => ({ kind: 'disconnect', reply: { text } })
export const neverRespond: ScriptedResponse = { kind: 'silence' }

/** Creates a script that numbers its replies. */
const createNumberedScript = (): Script => {
  let count = 0
  return () => replyWith(`Answer ${++count}.`)
}

/**
 * Starts a model server on a free port. It supports the OpenAI and Anthropic protocols, rejects the requests that the real
 * services reject, stores Responses unless a request says `store: false`, and splits its streams at unusual positions.
 *
 * @example
 * await using model = await startModelServer([failWith(500), replyWith('Hello.')])
 */
export async function startModelServer(script: Script = createNumberedScript()): Promise<ModelServer> {
  const requests: ReceivedRequest[] = []
  const stored = new Set<string>()
  const server = createServer((request, response) => {
    const handle = async (): Promise<void> => {
      const received = await receive(request, response)
      const number = requests.push(received)
      server.emit('received')
      await respond(received, { number, script, stored }, response)
    }
    // A client that disconnects while sending gets no response.
    void handle().catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async (): Promise<void> => {
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    waitForRequest: async (index) => {
      while (requests[index] === undefined) await once(server, 'received')
      return requests[index]
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function receive(request: IncomingMessage, response: ServerResponse): Promise<ReceivedRequest> {
  const outcome = once(response, 'close').then(() =>
    response.writableFinished ? ('completed' as const) : ('aborted' as const),
  )
  const body = request.method === 'GET' ? undefined : await json(request)
  const [path = '', query = ''] = (request.url ?? '').split('?')
  return { path, query, headers: request.headers, body, outcome }
}

const formats: Readonly<Record<string, ResponseFormat>> = {
  '/v1/chat/completions': chatFormat,
  '/v1/responses': responsesFormat,
  '/v1/messages': messagesFormat,
}

/** Fixed responses of the other endpoints. */
const fixedResponses: Readonly<Record<string, unknown>> = {
  '/v1/models': { object: 'list', data: [{ id: 'test-model', object: 'model', created: 1, owned_by: 'test' }] },
  '/v1/embeddings': {
    object: 'list',
    model: 'test-embedding',
    data: [{ object: 'embedding', index: 0, embedding: [0.25, -0.5, 1] }],
    usage: { prompt_tokens: 3, total_tokens: 3 },
  },
  '/v1/messages/count_tokens': { input_tokens: 2_095 },
}

type ModelState = {
  /** Number of the request. */
  readonly number: number
  readonly script: Script
  /** Ids of stored responses, of their items and calls. */
  readonly stored: Set<string>
}

async function respond(
  received: ReceivedRequest,
  { number, script, stored }: ModelState,
  response: ServerResponse,
): Promise<void> {
  const format = formats[received.path]
  const fixed = fixedResponses[received.path]
  if (format === undefined) return sendJson(response, fixed === undefined ? 404 : 200, fixed ?? {})
  const [error] = findRequestErrors(received, stored)
  if (error !== undefined) return sendJson(response, 400, format.formatError(400, error))
  const scripted = selectResponse(script, received, number)
  if (scripted.kind === 'silence') return
  if (scripted.kind === 'error') {
    const { status, headers } = scripted
    return sendJson(response, status, format.formatError(status, `Scripted ${status}.`), headers)
  }
  const settings = { store: received.body.store !== false }
  const body = format.formatBody(scripted.reply, number, settings)
  if (settings.store && scripted.kind === 'reply') for (const id of listIds(body)) stored.add(id)
  if (received.body.stream !== true) return sendJson(response, 200, body)
  await sendStream(response, format.formatEvents(scripted.reply, number, received.body, settings), scripted.kind)
}

/** Ids by which a later request can refer to a response and its parts. */
function listIds(body: unknown): readonly string[] {
  const { id, output = [] } = body as { readonly id: string; readonly output?: readonly OutputItem[] }
  return [id, ...output.flatMap((item) => [item.id, item.call_id ?? []].flat())]
}

type OutputItem = { readonly id: string; readonly call_id?: string }

function selectResponse(script: Script, received: ReceivedRequest, number: number): ScriptedResponse {
  if (typeof script === 'function') return script(received)
  const responses = 'kind' in script ? [script] : script
  return responses[number - 1] ?? responses.at(-1) ?? neverRespond
}

function sendJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
}

/** Chunk sizes in bytes that split lines, multi-byte characters and events. */
const chunkSizes = [1, 2, 3, 50, 5, 300, 7, 1_000]

async function sendStream(
  response: ServerResponse,
  events: readonly string[],
  kind: 'reply' | 'stall' | 'disconnect',
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  const half = Math.ceil(events.length / 2)
  const bytes = Buffer.from((kind === 'reply' ? events : events.slice(0, half)).join(''))
  for (let [from, chunk] = [0, 0]; from < bytes.length; chunk++) {
    const to = from + (chunkSizes[chunk % chunkSizes.length] as number)
    await new Promise((written) => response.write(bytes.subarray(from, to), written))
    // Without the pause the system would join the chunks again.
    await new Promise(setImmediate)
    from = to
  }
  if (kind === 'reply') response.end()
  if (kind === 'disconnect') response.socket?.end()
}
