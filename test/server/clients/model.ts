import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { faultsIn } from './rules.ts'
import { type Call, chatWording, messagesWording, responsesWording, type Said, type Wording } from './wording.ts'

/** What the model server does with one request. */
export type Act =
  | { readonly does: 'say'; readonly said: Said }
  | { readonly does: 'refuse'; readonly status: number; readonly headers: Readonly<Record<string, string>> }
  /** Begins a stream, and then leaves it open or cuts it. */
  | { readonly does: 'stall' | 'cut'; readonly said: Said }
  /** Never answers at all. */
  | { readonly does: 'hang' }

/** A request as it came in. */
export type Received = {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was sent
  readonly body: any
  /** How it ended: answered to the end, or not wanted any more before that. */
  readonly over: Promise<'answered' | 'hung up'>
}

/** One act after the other (the last one stays), or one decided by the request. */
export type Script = Act | readonly Act[] | ((request: Received) => Act)

export type ModelServer = AsyncDisposable & {
  /** As `--upstream` takes it, with `/v1` at its end. */
  readonly url: string
  readonly requests: readonly Received[]
  /** The request at this place, once it has come. */
  arrived(place: number): Promise<Received>
  close(): Promise<void>
}

export const says = (text: string): Act => ({ does: 'say', said: { text } })
export const thinks = (thinking: string, text: string): Act => ({ does: 'say', said: { thinking, text } })
export const calls = (...made: readonly Call[]): Act => ({ does: 'say', said: { calls: made } })
export const refuses = (status: number, headers: Readonly<Record<string, string>> = {}): Act => ({
  does: 'refuse',
  status,
  headers,
})
export const stalls = (text: string): Act => ({ does: 'stall', said: { text } })
export const cuts = (text: string): Act => ({ does: 'cut', said: { text } })
export const hangs: Act = { does: 'hang' }

/** Says how often it was asked, and so something else each time. */
const counts = (): Script => {
  let asked = 0
  return () => says(`Answer ${++asked}.`)
}

/**
 * Starts a model server on a free port that speaks OpenAI's and Anthropic's protocols as the services themselves do: it refuses
 * what they refuse, and its streams come in odd pieces.
 *
 * @example
 * await using model = await startModel([refuses(500), says('Hello.')])
 */
export async function startModel(script: Script = counts()): Promise<ModelServer> {
  const requests: Received[] = []
  const server = createServer((request, response) => {
    const serving = async (): Promise<void> => {
      const received = await receive(request, response)
      const place = requests.push(received)
      server.emit('arrived')
      await answer(received, place, script, response)
    }
    // Whoever hangs up while still sending has no answer coming.
    void serving().catch(() => response.destroy())
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
    arrived: async (place) => {
      while (requests[place] === undefined) await once(server, 'arrived')
      return requests[place]
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function receive(request: IncomingMessage, response: ServerResponse): Promise<Received> {
  const over = once(response, 'close').then(() =>
    response.writableFinished ? ('answered' as const) : ('hung up' as const),
  )
  const body = request.method === 'GET' ? undefined : await json(request)
  return { path: request.url ?? '', headers: request.headers, body, over }
}

const wordings: Readonly<Record<string, Wording>> = {
  '/v1/chat/completions': chatWording,
  '/v1/responses': responsesWording,
  '/v1/messages': messagesWording,
}

/** What it answers besides. */
const others: Readonly<Record<string, unknown>> = {
  '/v1/models': { object: 'list', data: [{ id: 'test-model', object: 'model', created: 1, owned_by: 'test' }] },
  '/v1/embeddings': {
    object: 'list',
    model: 'test-embedding',
    data: [{ object: 'embedding', index: 0, embedding: [0.25, -0.5, 1] }],
    usage: { prompt_tokens: 3, total_tokens: 3 },
  },
  '/v1/messages/count_tokens': { input_tokens: 2_095 },
}

async function answer(received: Received, place: number, script: Script, response: ServerResponse): Promise<void> {
  const wording = wordings[received.path]
  if (wording === undefined)
    return send(response, others[received.path] === undefined ? 404 : 200, others[received.path] ?? {})
  const [fault] = faultsIn(received)
  if (fault !== undefined) return send(response, 400, wording.refusal(400, fault))
  const act = actFor(script, received, place)
  if (act.does === 'hang') return
  if (act.does === 'refuse')
    return send(response, act.status, wording.refusal(act.status, `Scripted ${act.status}.`), act.headers)
  if (received.body.stream !== true) return send(response, 200, wording.whole(act.said, place))
  await stream(response, wording.events(act.said, place, received.body), act.does)
}

function actFor(script: Script, received: Received, place: number): Act {
  if (typeof script === 'function') return script(received)
  const acts = 'does' in script ? [script] : script
  return acts[place - 1] ?? acts.at(-1) ?? hangs
}

function send(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
}

/** Sizes that fall inside lines, inside characters of several bytes and on the boundaries of events. */
const sizes = [1, 2, 3, 50, 5, 300, 7, 1_000]

async function stream(
  response: ServerResponse,
  events: readonly string[],
  does: 'say' | 'stall' | 'cut',
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  const half = Math.ceil(events.length / 2)
  const bytes = Buffer.from((does === 'say' ? events : events.slice(0, half)).join(''))
  for (let [from, turn] = [0, 0]; from < bytes.length; turn++) {
    const to = from + (sizes[turn % sizes.length] as number)
    await new Promise((written) => response.write(bytes.subarray(from, to), written))
    // Otherwise the system puts the pieces together again.
    await new Promise(setImmediate)
    from = to
  }
  if (does === 'say') response.end()
  if (does === 'cut') response.socket?.end()
}
