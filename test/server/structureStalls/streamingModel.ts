import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import { createResponse, detectProtocol, encodeJsonReply } from '../../providers/protocols.ts'
import { replyToUpkeep } from '../stalls/upkeepReply.ts'

/**
 * A model server. The model `stream-N` replies with N events. All others reply to requests of upkeep from what these
 * contain, and to other requests with the text that was set.
 */
export async function startStreamingModel(): Promise<AsyncDisposable & { url: string; setReply(text: string): void }> {
  let reply = 'Fine.'
  const server = createServer(async (request, response) => {
    const body = await readText(request)
    const events = /"model":"stream-(\d+)"/.exec(body.slice(0, 200) + body.slice(-200))?.[1]
    if (events !== undefined) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const event = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: 'a ' } }] })}\n\n`
      response.end(`${event.repeat(Number(events))}data: [DONE]\n\n`)
      return
    }
    const { messages = [] } = JSON.parse(body) as { readonly messages?: Parameters<typeof replyToUpkeep>[0] }
    const text = replyToUpkeep(messages) ?? reply
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(
      request.url?.endsWith('/responses')
        ? JSON.stringify(createResponse(text))
        : encodeJsonReply(detectProtocol(request.url ?? ''), [text]),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    setReply: (text) => {
      reply = text
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
