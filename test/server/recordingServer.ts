import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { buffer, text } from 'node:stream/consumers'

export type RecordedRequest = {
  readonly method: string
  /** Request target, as it was sent. */
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

type Respond = (request: RecordedRequest, response: ServerResponse) => void

export type RecordingServer = AsyncDisposable & {
  readonly url: string
  readonly requests: readonly RecordedRequest[]
  /** Takes the next request instead of recording it. */
  intercept(): Promise<readonly [request: IncomingMessage, response: ServerResponse]>
}

const respondWithEmptyObject: Respond = (_, response) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"x"}')

/** Starts an HTTP server that records all requests. Its base URL has a path of its own in front of `/v1`. */
export async function startRecordingServer(respond: Respond = respondWithEmptyObject): Promise<RecordingServer> {
  const requests: RecordedRequest[] = []
  const interceptors: ((exchange: readonly [IncomingMessage, ServerResponse]) => void)[] = []
  const server = createServer((request, response) => {
    const intercept = interceptors.shift()
    if (intercept !== undefined) return intercept([request, response])
    const { method = '', url = '', headers } = request
    buffer(request).then(
      (body) => {
        const recorded = { method, url, headers, body }
        requests.push(recorded)
        respond(recorded, response)
      },
      () => response.destroy(),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/gateway/v1`,
    requests,
    intercept: () => new Promise((resolve) => interceptors.push(resolve)),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Sends bytes to a server as they are and returns its whole response. Clients normalise paths before they send them. */
export async function sendRaw(
  url: string,
  request: string,
): Promise<{ readonly status: number; readonly text: string }> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(Buffer.from(request, 'latin1'))
  const response = await text(socket)
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(response)?.[1] ?? 0), text: response }
}
