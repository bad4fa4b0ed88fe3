import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Protocol, protocolOf, wholeReply, wordedReply } from './protocols.ts'

/** What the upstream does with one request. */
export type Behaviour =
  /** Answers properly: as a stream if it was asked for one, else in one; `split` writes every byte by itself. */
  | { readonly does: 'reply'; readonly pieces: readonly string[]; readonly split?: boolean }
  /** Answers in one although it was asked for a stream. */
  | { readonly does: 'whole'; readonly pieces: readonly string[] }
  /** Refuses. */
  | {
      readonly does: 'status'
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      readonly body?: string
    }
  /** Sends these bytes as a success. */
  | { readonly does: 'send'; readonly type: string; readonly body: string | Uint8Array }
  /** Begins a stream with these pieces and closes it without the end the protocol asks for. */
  | { readonly does: 'stop'; readonly pieces: readonly string[] }
  /** Begins a stream and cuts the connection. */
  | { readonly does: 'drop'; readonly pieces: readonly string[] }
  /** Begins a stream, or writes all of it, and then says nothing more and leaves it open. */
  | { readonly does: 'stall'; readonly pieces: readonly string[]; readonly complete?: boolean }
  /** Writes all of a stream and then goes on with comments until the client has enough. */
  | { readonly does: 'babble'; readonly pieces: readonly string[] }
  /** Cuts the connection before any answer. */
  | { readonly does: 'cut' }
  /** Never answers at all. */
  | { readonly does: 'hang' }

/** A request as it came in. */
export type Received = {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  /** The client's port: requests over one connection have the same. */
  readonly port: number
  /** Parsed, if it is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was sent
  readonly body: any
  readonly text: string
  /** How it ended: answered to the end, or given up by the client before that (a connection the upstream cut counts as cut). */
  readonly over: Promise<'answered' | 'hung up' | 'cut'>
}

/** One behaviour for all requests, one after the other (the last one stays), or one decided by the request. */
export type Script = Behaviour | readonly Behaviour[] | ((request: Received) => Behaviour)

export type Upstream = AsyncDisposable & {
  /** Without a path. */
  readonly origin: string
  /** As OPENAI_BASE_URL takes it, with `/v1` at its end. */
  readonly url: string
  readonly requests: readonly Received[]
  close(): Promise<void>
}

export const replies = (...pieces: string[]): Behaviour => ({ does: 'reply', pieces })
export const refuses = (
  status: number,
  headers: Readonly<Record<string, string>> = {},
  body = '{"error":{"message":"no"}}',
): Behaviour => ({
  does: 'status',
  status,
  headers,
  body,
})
export const sends = (type: string, body: string | Uint8Array): Behaviour => ({ does: 'send', type, body })

/**
 * Starts a model server on a free port that speaks OpenAI's, Anthropic's and Gemini's protocols, told by the path, and misbehaves as scripted.
 *
 * @example
 * await using upstream = await startUpstream([refuses(500), replies('Hello', ' world')])
 * const model = openaiModel({ baseUrl: upstream.url, model: 'test' })
 */
export async function startUpstream(script: Script = replies('Hello', ' from upstream.')): Promise<Upstream> {
  const requests: Received[] = []
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const received = await receive(request, response)
    requests.push(received)
    await perform(behaviourFor(script, received, requests.length - 1), received, response)
  }
  // A client that hangs up while it still sends has no answer coming.
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

/** The address of a server that is not there. */
export async function closedPort(): Promise<string> {
  const upstream = await startUpstream()
  await upstream.close()
  return upstream.url
}

function behaviourFor(script: Script, received: Received, at: number): Behaviour {
  if (typeof script === 'function') return script(received)
  const behaviours = 'does' in script ? [script] : script
  return behaviours[at] ?? behaviours.at(-1) ?? replies()
}

async function receive(request: IncomingMessage, response: ServerResponse): Promise<Received> {
  const over = new Promise<'answered' | 'hung up' | 'cut'>((resolve) => {
    response.once('close', () =>
      resolve(response.writableFinished ? 'answered' : cut.has(response) ? 'cut' : 'hung up'),
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
    body: parsed(text),
    text,
    over,
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const cut = new WeakSet<ServerResponse>()

async function perform(behaviour: Behaviour, received: Received, response: ServerResponse): Promise<void> {
  const protocol = protocolOf(received.path)
  switch (behaviour.does) {
    case 'hang':
      return
    case 'cut':
      cut.add(response)
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
      response.writeHead(200, { 'content-type': 'application/json' }).end(wholeReply(protocol, behaviour.pieces))
      return
    case 'reply':
      if (!wantsStream(protocol, received))
        return perform({ does: 'whole', pieces: behaviour.pieces }, received, response)
      return stream(response, wordedReply(protocol, behaviour.pieces, true), behaviour.split === true)
    case 'babble':
      return babble(response, wordedReply(protocol, behaviour.pieces, true))
    default:
      return breakOff(
        behaviour.does,
        response,
        wordedReply(protocol, behaviour.pieces, behaviour.does === 'stall' && behaviour.complete === true),
      )
  }
}

const wantsStream = (protocol: Protocol, received: Received): boolean =>
  protocol === 'gemini' || received.body?.stream === true

async function stream(response: ServerResponse, body: string, split: boolean): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (split)
    for (const byte of Buffer.from(body)) await new Promise((written) => response.write(Buffer.of(byte), written))
  response.end(split ? '' : body)
}

async function babble(response: ServerResponse, body: string): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (let text = body; !response.destroyed; text = ': still here\n\n') {
    await new Promise((written) => response.write(text, written))
    await new Promise((next) => setImmediate(next))
  }
}

async function breakOff(how: 'stop' | 'drop' | 'stall', response: ServerResponse, body: string): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
  if (body !== '') await new Promise((written) => response.write(body, written))
  if (how === 'stop') response.end()
  if (how !== 'drop') return
  cut.add(response)
  // A reset could overtake what was written; an end without the last chunk cannot.
  response.socket?.end()
}
