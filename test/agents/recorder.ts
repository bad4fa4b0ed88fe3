import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, request as sendRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import {
  chatFormat,
  messagesFormat,
  type ResponseFormat,
  responsesFormat,
  type ScriptedReply,
} from '../server/clients/responseFormats.ts'

/** A request with a JSON body. `number` is the same at the client and at the model server. */
export type RecordedRequest = {
  readonly number: number
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Fields
}
export type Fields = Readonly<Record<string, unknown>>

export type Recorder = AsyncDisposable & {
  readonly url: string
  readonly requests: readonly RecordedRequest[]
}

const formats: Readonly<Record<string, ResponseFormat>> = {
  'chat/completions': chatFormat,
  responses: responsesFormat,
  messages: messagesFormat,
}

const endpointPattern = /\/(chat\/completions|responses|messages|messages\/count_tokens)(?:\?|$)/

/** The endpoint that a path ends with, such as `chat/completions`; undefined for others. */
const readEndpoint = (path: string): string | undefined => endpointPattern.exec(path)?.[1]

/** Starts a model server that records what it receives and replies as `script` says. */
export function startModel(script: (request: RecordedRequest) => ScriptedReply): Promise<Recorder> {
  const requests: RecordedRequest[] = []
  return listen(requests, (request, response) => {
    void receiveJson(request).then((body) => {
      const path = request.url ?? ''
      const format = formats[readEndpoint(path) ?? '']
      const json = { 'content-type': 'application/json' }
      if (readEndpoint(path) === 'messages/count_tokens')
        return response.writeHead(200, json).end(JSON.stringify({ input_tokens: 2_000 }))
      if (format === undefined || body === undefined) return response.writeHead(404, json).end('{}')
      const recorded = { number: readNumber(request), path, headers: request.headers, body }
      const position = requests.push(recorded)
      const reply = script(recorded)
      if (body.stream !== true)
        return response.writeHead(200, json).end(JSON.stringify(format.formatBody(reply, position)))
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      return response.end(format.formatEvents(reply, position, body).join(''))
    })
  })
}

/**
 * Starts a relay in front of `target` that records what a client sends. It replaces the client's API key by one with the
 * number of the request: the key reaches the model server, which can then name the request it answers.
 */
export function startTap(target: string): Promise<Recorder> {
  const requests: RecordedRequest[] = []
  let count = 0
  return listen(requests, (request, response) => {
    void buffer(request).then((bytes) => {
      const path = request.url ?? ''
      const number = ++count
      const body = parseJson(bytes)
      if (body !== undefined && formats[readEndpoint(path) ?? ''] !== undefined)
        requests.push({ number, path, headers: request.headers, body })
      const { origin, host } = new URL(target)
      const headers = { ...request.headers, ...numberedKey(request.headers, number), host }
      const outgoing = sendRequest(`${origin}${path}`, { method: request.method, headers }, (incoming) => {
        response.writeHead(incoming.statusCode ?? 502, incoming.headers)
        incoming.pipe(response)
      })
      outgoing.on('error', () => response.destroy())
      response.on('close', () => outgoing.destroy())
      outgoing.end(bytes)
    })
  })
}

const keyPrefix = 'sk-agents-'
const numberedKey = (headers: IncomingMessage['headers'], number: number): Readonly<Record<string, string>> =>
  headers['x-api-key'] === undefined
    ? { authorization: `Bearer ${keyPrefix}${number}` }
    : { 'x-api-key': `${keyPrefix}${number}` }

const readNumber = ({ headers }: IncomingMessage): number =>
  Number(String(headers['x-api-key'] ?? headers.authorization).split(keyPrefix)[1] ?? 0)

const receiveJson = async (request: IncomingMessage): Promise<Fields | undefined> => parseJson(await buffer(request))

function parseJson(bytes: Buffer): Fields | undefined {
  try {
    return JSON.parse(bytes.toString()) as Fields
  } catch {
    return undefined
  }
}

async function listen(requests: readonly RecordedRequest[], handler: RequestListener): Promise<Recorder> {
  const server = createServer(handler)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
