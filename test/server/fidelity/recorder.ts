import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, request as openRequest, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { ScriptedResponse } from '../clients/modelServer.ts'
import { chatFormat, messagesFormat, type ResponseFormat, responsesFormat } from '../clients/responseFormats.ts'
import { openConfiguredServer } from '../config/harness.ts'

export type Protocol = 'openai' | 'anthropic'

/** A request at one of the two recording points. */
export type RecordedRequest = { readonly path: string; readonly text: string }

/** One request of a client and the requests that reached the upstream for it. */
export type Exchange = {
  /** Name of the step that was running. */
  readonly step: string
  readonly sent: RecordedRequest
  /** More than one when the server retried. */
  readonly forwarded: readonly RecordedRequest[]
  /** Scripted behaviour of the upstream for this request and its retries. */
  readonly response: ScriptedResponse
}

export type Recorder = AsyncDisposable & {
  /** URL of the session for a client; requests to it are recorded and relayed to the server. */
  readonly url: string
  readonly exchanges: readonly Exchange[]
  /** Names the next requests and scripts their responses, one per request of the client. */
  begin(step: string, ...responses: readonly ScriptedResponse[]): void
  /** Stores `knownFact` as knowledge of the tenant. */
  rememberFact(): Promise<void>
}

const key = 'demo:ann'
/** Knowledge that belongs to every question about the weather. */
export const knownFact = 'Ann wants the weather of a warmer city in degrees Celsius.'

/**
 * Starts client relay → server → model server with the default configuration, built-in upkeep and a SQLite store. Both ends record the
 * requests. Clients must send one request at a time: a request at the model server belongs to the newest exchange. With
 * `model server` as destination the relay leaves the server out, which checks the recorder and the clients themselves.
 *
 * @example
 * await using recorder = await startRecorder('openai')
 * recorder.begin('greeting', replyWith('Hello.'))
 * const client = new OpenAI({ baseURL: recorder.url, apiKey: 'sk-client' })
 */
export async function startRecorder(
  protocol: Protocol,
  destination: 'server' | 'model server' = 'server',
): Promise<Recorder> {
  const exchanges: (Exchange & { readonly forwarded: RecordedRequest[] })[] = []
  const state = { step: '', responses: [] as ScriptedResponse[] }
  const model = await listen(async (request, response) => {
    const received = await record(request)
    const exchange = exchanges.at(-1)
    exchange?.forwarded.push(received)
    if (exchange === undefined) response.writeHead(404).end()
    else respond(received, exchange.response, exchanges.length, response)
  })
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-fidelity-'))
  const opened = await openConfiguredServer(join(folder, 'threadkeep.config.json'), {
    store: `sqlite:${join(folder, 'threadkeep.db')}`,
    upstreams: [{ base: `${model.url}/v1`, protocol }],
    retries: { baseDelay: 1 },
    // Upkeep by a model would send requests of its own.
    upkeep: 'builtin',
  })
  const relay = await listen(async (request, response) => {
    const sent = await record(request)
    const scripted = state.responses.shift() ?? { kind: 'error', status: 418, headers: {} }
    exchanges.push({ step: state.step, sent, forwarded: [], response: scripted })
    if (destination === 'server') await relayTo(opened.server.url, request, sent, response)
    else await relayTo(model.url, request, { ...sent, path: sent.path.replace(/^.*:ann(\/v1)?/, '/v1') }, response)
  })
  return {
    url: `${relay.url}/v1/${key}`,
    exchanges,
    begin: (step, ...responses) => Object.assign(state, { step, responses: [...responses] }),
    rememberFact: async () => {
      const response = await fetch(`${opened.server.url}/api/scopes/demo/knowledge`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ category: 'user_preference', key: 'weather', value: knownFact, confidence: 0.9 }),
      })
      if (!response.ok) throw new Error(await response.text())
    },
    [Symbol.asyncDispose]: async () => {
      await relay.close()
      await opened.server.close(0)
      await model.close()
      rmSync(folder, { recursive: true })
    },
  }
}

type Listener = { readonly url: string; close(): Promise<void> }

async function listen(
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Promise<Listener> {
  const server: Server = createServer(
    (request, response) => void handle(request, response).catch(() => response.destroy()),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

const record = async (request: IncomingMessage): Promise<RecordedRequest> => ({
  path: request.url ?? '',
  text: await text(request),
})

/** Sends the recorded bytes with the client's own headers and copies the response. */
async function relayTo(
  origin: string,
  { method, headers: { host: _host, 'transfer-encoding': _encoding, ...headers } }: IncomingMessage,
  sent: RecordedRequest,
  response: ServerResponse,
): Promise<void> {
  const bytes = Buffer.from(sent.text)
  const relayed = openRequest(`${origin}${sent.path}`, {
    method: method ?? 'POST',
    headers: { ...headers, 'content-length': bytes.length },
    agent: false,
  }).end(bytes)
  const [answer] = (await once(relayed, 'response')) as [IncomingMessage]
  response.writeHead(answer.statusCode ?? 500, answer.headers)
  answer.pipe(response)
}

const formats: Readonly<Record<string, ResponseFormat>> = {
  '/v1/chat/completions': chatFormat,
  '/v1/responses': responsesFormat,
  '/v1/messages': messagesFormat,
}

function respond(received: RecordedRequest, scripted: ScriptedResponse, number: number, response: ServerResponse) {
  const format = formats[received.path.split('?')[0] as string]
  if (format === undefined) return response.writeHead(404).end('{}')
  if (scripted.kind === 'silence') return
  const isError = scripted.kind === 'error'
  const status = isError ? scripted.status : 200
  const body = JSON.parse(received.text)
  if (isError || body.stream !== true) {
    const value = isError
      ? format.formatError(status, `Scripted ${status}.`)
      : format.formatBody(scripted.reply, number)
    return response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(addProviderFields(JSON.stringify(value)))
  }
  const events = format.formatEvents(scripted.reply, number, body).join('')
  return response.writeHead(200, { 'content-type': 'text/event-stream' }).end(addProviderFields(events))
}

/** Long, random-looking text, as providers use for signatures and encrypted reasoning. */
export const opaqueText = (seed: string): string =>
  Buffer.from(Array.from({ length: 240 }, (_, index) => (index * 151 + seed.length * 31 + index ** 2) % 256)).toString(
    'base64',
  )
export const signature = opaqueText('signature')
export const encryptedReasoning = opaqueText('encrypted reasoning')

/** Adds the fields of real services that the formats lack: long signatures, encrypted reasoning, `reasoning_content`. */
const addProviderFields = (text: string): string =>
  text
    .replaceAll('"c2lnbmVk"', JSON.stringify(signature))
    .replaceAll('"summary":[{', `"encrypted_content":${JSON.stringify(encryptedReasoning)},"summary":[{`)
    .replaceAll('"refusal":null', '"refusal":null,"reasoning_content":"I compare both cities."')
