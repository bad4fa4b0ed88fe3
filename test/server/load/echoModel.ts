import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { encodeEventStream, encodeJsonReply } from '../../providers/protocols.ts'

/** Tags in a text: each session has its own, and all its messages contain it. */
const tagsIn = (text: string): readonly string[] => text.match(/\btag\d+\b/g) ?? []

/** The model's reply to a text. */
export const replyTo = (text: string): string => `Heard: ${text}`

export type EchoModel = AsyncDisposable & {
  readonly url: string
  /** Number of requests, and the tags of those that mixed sessions. */
  readonly requests: number
  readonly mixedTags: readonly string[]
  /** Open connections. */
  connections(): Promise<number>
}

type ChatRequest = {
  readonly stream?: boolean
  readonly messages: readonly { readonly role: string; readonly content: string }[]
}

/** Starts a model server that repeats the last message and detects messages of other sessions. */
export async function startEchoModel(): Promise<EchoModel> {
  const stats = { requests: 0, mixed: [] as string[] }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let text = ''
    for await (const piece of request.setEncoding('utf8')) text += piece
    const { stream, messages } = JSON.parse(text) as ChatRequest
    stats.requests++
    const tags = new Set(tagsIn(text))
    if (tags.size !== 1) stats.mixed.push([...tags].join(' '))
    const words = replyTo(messages.at(-1)?.content ?? '').split(/(?= )/)
    if (stream === true)
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(encodeEventStream('openai', words, true))
    else response.writeHead(200, { 'content-type': 'application/json' }).end(encodeJsonReply('openai', words))
  }
  const server = createServer(
    { keepAliveTimeout: 60_000 },
    (request, response) => void answer(request, response),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    get requests() {
      return stats.requests
    },
    mixedTags: stats.mixed,
    connections: () => new Promise((resolve) => server.getConnections((_, count) => resolve(count))),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
