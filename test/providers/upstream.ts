import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { detectProtocol, encodeEventStream, encodeJsonReply, type Protocol } from './protocols.ts'

/** Response of the upstream to one request. */
export type Behaviour =
  /** Replies normally: as a stream if requested, otherwise as JSON; `split` writes every byte separately. */
  | { readonly does: 'reply'; readonly pieces: readonly string[]; readonly split?: boolean }
  /** Replies with JSON although a stream was requested. */
  | { readonly does: 'whole'; readonly pieces: readonly string[] }
  /** Responds with an error status. */
  | {
      readonly does: 'status'
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      readonly body?: string
    }
  /** Sends this body with status 200. */
  | { readonly does: 'send'; readonly type: string; readonly body: string | Uint8Array }
  /** Streams the pieces and closes the stream without the final events of the protocol. */
  | { readonly does: 'stop'; readonly pieces: readonly string[] }
  /** Streams the pieces and drops the connection. */
  | { readonly does: 'drop'; readonly pieces: readonly string[] }
  /** Streams the pieces, with the final events if `complete`, and leaves the stream open. */
  | { readonly does: 'stall'; readonly pieces: readonly string[]; readonly complete?: boolean }
  /** Streams the whole reply and then comments until the client disconnects. */
  | { readonly does: 'babble'; readonly pieces: readonly string[] }
  /** Drops the connection before any response. */
  | { readonly does: 'cut' }
  /** Never responds. */
  | { readonly does: 'hang' }

/** A request that the upstream received. */
export type RecordedRequest = {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  /** The client's port, which identifies the connection. */
  readonly port: number
  /** Parsed JSON, or undefined. */
  // biome-ignore lint/suspicious/noExplicitAny: tests inspect arbitrary request bodies
  readonly body: any
  readonly text: string
  /** Resolves to `answered` after the whole response, `hung up` when the client left early, `cut` when the upstream dropped it. */
  readonly outcome: Promise<'answered' | 'hung up' | 'cut'>
}

/** One behaviour for all requests, a list of which the last one repeats, or a function of the request. */
export type Script = Behaviour | readonly Behaviour[] | ((request: RecordedRequest) => Behaviour)

export type Upstream = AsyncDisposable & {
  /** The address without a path. */
  readonly origin: string
  /** The value for OPENAI_BASE_URL: the origin with `/v1`. */
  readonly url: string
  readonly requests: readonly RecordedRequest[]
  close(): Promise<void>
}

export const replyWith = (...pieces: string[]): Behaviour => ({ does: 'reply', pieces })
export const respondWithStatus = (
  status: number,
  headers: Readonly<Record<string, string>> = {},
  body = '{"error":{"message":"no"}}',
): Behaviour => ({
  does: 'status',
  status,
  headers,
  body,
})
export const sendRaw = (type: string, body: string | Uint8Array): Behaviour => ({ does: 'send', type, body })

/**
 * Starts a scripted model server on a free port; the path selects OpenAI's, Anthropic's or Gemini's protocol.
 *
 * @example
 * await using upstream = await startUpstream([refuses(500), replies('Hello', ' world')])
 * const model = openaiModel({ baseUrl: upstream.url, model: 'test' })
 */
export async function startUpstream(script: Script = replyWith('Hello', ' from upstream.')): Promise<Upstream> {
  const requests: RecordedRequest[] = []
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const received = await readRequest(request, response)
    requests.push(received)
    await respond(selectBehaviour(script, received, requests.length - 1), received, response)
  }
  // A client that disconnects while it is sending gets no response.
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = async (): Promise<void> => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  return { origin, url: `${origin}/v1`, requests, close, [Symbol.asyncDispose]: close }
}

/** Returns the URL of a port on which no server listens. */
export async function closedPortUrl(): Promise<string> {
  const upstream = await startUpstream()
  await upstream.close()
  return upstream.url
}

function selectBehaviour(script: Script, request: RecordedRequest, index: number): Behaviour {
  if (typeof script === 'function') return script(request)
  const behaviours = 'length' in script ? script : [script]
  return behaviours[index] ?? behaviours.at(-1) ?? replyWith()
}

async function readRequest(request: IncomingMessage, response: ServerResponse): Promise<RecordedRequest> {
  const outcome = new Promise<'answered' | 'hung up' | 'cut'>((resolve) => {
    response.once('close', () =>
      resolve(response.writableFinished ? 'answered' : droppedResponses.has(response) ? 'cut' : 'hung up'),
    )
  })
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString('utf8')
  return {
    method: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    port: request.socket.remotePort ?? 0,
    body: tryParseJson(text),
    text,
    outcome,
  }
}

function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const droppedResponses = new WeakSet<ServerResponse>()

async function respond(behaviour: Behaviour, received: RecordedRequest, response: ServerResponse): Promise<void> {
  const protocol = detectProtocol(received.path)
  switch (behaviour.does) {
    case 'hang':
      return
    case 'cut':
      droppedResponses.add(response)
      response.destroy()
      return
    case 'status':
      response
        .writeHead(behaviour.status, { 'content-type': 'application/json', ...behaviour.headers })
        .end(behaviour.body ?? '')
      return
    case 'send':
      response.writeHead(200, { 'content-type': behaviour.type }).end(behaviour.body)
      return
    case 'whole':
      response.writeHead(200, { 'content-type': 'application/json' }).end(encodeJsonReply(protocol, behaviour.pieces))
      return
    case 'reply':
      if (!wantsStream(protocol, received))
        return respond({ does: 'whole', pieces: behaviour.pieces }, received, response)
      return streamReply(response, encodeEventStream(protocol, behaviour.pieces, true), behaviour.split === true)
    case 'babble':
      return streamEndlessly(response, encodeEventStream(protocol, behaviour.pieces, true))
    default:
      return streamPartially(
        behaviour.does,
        response,
        encodeEventStream(protocol, behaviour.pieces, behaviour.does === 'stall' && behaviour.complete === true),
      )
  }
}

const wantsStream = (protocol: Protocol, received: RecordedRequest): boolean =>
  protocol === 'gemini' || received.body?.stream === true

async function streamReply(response: ServerResponse, body: string, split: boolean): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (split)
    for (const byte of Buffer.from(body)) await new Promise((written) => response.write(Buffer.of(byte), written))
  response.end(split ? '' : body)
}

async function streamEndlessly(response: ServerResponse, body: string): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (let text = body; !response.destroyed; text = ': still here\n\n') {
    await new Promise((written) => response.write(text, written))
    await new Promise((next) => setImmediate(next))
  }
}

async function streamPartially(
  ending: 'stop' | 'drop' | 'stall',
  response: ServerResponse,
  body: string,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
  if (body !== '') await new Promise((written) => response.write(body, written))
  if (ending === 'stop') response.end()
  if (ending !== 'drop') return
  droppedResponses.add(response)
  // Ends the socket without the last chunk: a reset could arrive before the data written so far.
  response.socket?.end()
}
