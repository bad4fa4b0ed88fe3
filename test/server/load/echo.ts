import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { wholeReply, wordedReply } from '../../providers/protocols.ts'

/** Each session has a tag of its own, and everything said in it bears the tag. */
const tagsIn = (text: string): readonly string[] => text.match(/\btag\d+\b/g) ?? []

/** What a model that hears this replies with. */
export const replyTo = (said: string): string => `Heard: ${said}`

export type Echo = AsyncDisposable & {
  readonly url: string
  /** How many requests came, and those in which something of another session stood. */
  readonly requests: number
  readonly mixed: readonly string[]
  /** Connections that are open now. */
  connections(): Promise<number>
}

type Asked = {
  readonly stream?: boolean
  readonly messages: readonly { readonly role: string; readonly content: string }[]
}

/** A model server that repeats what it was told last, and looks out for what belongs to other sessions. */
export async function startEcho(): Promise<Echo> {
  const seen = { requests: 0, mixed: [] as string[] }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let text = ''
    for await (const piece of request.setEncoding('utf8')) text += piece
    const { stream, messages } = JSON.parse(text) as Asked
    seen.requests++
    const tags = new Set(tagsIn(text))
    if (tags.size !== 1) seen.mixed.push([...tags].join(' '))
    const words = replyTo(messages.at(-1)?.content ?? '').split(/(?= )/)
    if (stream === true)
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(wordedReply('openai', words, true))
    else response.writeHead(200, { 'content-type': 'application/json' }).end(wholeReply('openai', words))
  }
  const server = createServer(
    { keepAliveTimeout: 60_000 },
    (request, response) => void answer(request, response),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    get requests() {
      return seen.requests
    },
    mixed: seen.mixed,
    connections: () => new Promise((resolve) => server.getConnections((_, count) => resolve(count))),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
