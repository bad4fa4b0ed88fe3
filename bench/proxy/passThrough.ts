// Minimal proxy that rewrites messages: parses JSON, copies its messages, sends JSON and streams the response through.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Agent, type Dispatcher } from 'undici'

const [origin = ''] = process.argv.slice(2)
const agent = new Agent()

type Body = { readonly messages: readonly { readonly role: string; readonly content: string }[] }

function rewriteBody(text: string): string {
  const body = JSON.parse(text) as Body
  return JSON.stringify({ ...body, messages: body.messages.map(({ role, content }) => ({ role, content })) })
}

const createRelay = (response: ServerResponse): Dispatcher.DispatchHandler => ({
  onRequestStart: () => undefined,
  onResponseStart(_, status, { 'content-type': type, 'content-length': length }) {
    response.writeHead(status, {
      'content-type': `${type}`,
      ...(length === undefined ? {} : { 'content-length': `${length}` }),
    })
  },
  onResponseData(_, bytes) {
    response.write(bytes)
  },
  onResponseEnd() {
    response.end()
  },
  onResponseError(_, error) {
    response.destroy(error)
  },
})

async function handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  const body = rewriteBody(Buffer.concat(chunks).toString())
  agent.dispatch(
    { origin, path: '/v1/chat/completions', method: 'POST', headers: { 'content-type': 'application/json' }, body },
    createRelay(response),
  )
}

const server = createServer((request, response) => void handleRequest(request, response))
server.keepAliveTimeout = 600_000
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
