import { createServer } from 'node:http'
import { createClient } from '@redis/client'
import { onEnd } from './redisServer.ts'

/** An HTTP server that speaks the REST protocol of Upstash for a redis-server. */
export type UpstashServer = { readonly url: string; readonly token: string; readonly requests: string[] }

const token = 'AX-test-token_0123456789'
/** Commands that Upstash does not have. */
const unsupported = ['CONFIG', 'SUBSCRIBE']

/**
 * Starts a server in the documented format: a list of commands is posted to `/pipeline`, and the response is a list of
 * `{ result }` or `{ error }`. It ends with the tests of the file.
 */
export async function startUpstash(redisUrl: string): Promise<UpstashServer> {
  const client = createClient({ url: redisUrl, RESP: 2 })
  await client.connect()
  const requests: string[] = []
  const run = async (command: readonly string[]) => {
    const name = command[0]?.toUpperCase() ?? ''
    if (unsupported.includes(name)) return { error: `ERR Command is not available: '${name}'` }
    try {
      return { result: await client.sendCommand([...command]) }
    } catch (error) {
      return { error: (error as Error).message }
    }
  }
  const server = createServer(async (request, response) => {
    const reply = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    }
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    requests.push(`${request.method} ${request.url}`)
    if (request.headers.authorization !== `Bearer ${token}`) return reply(401, { error: 'Unauthorized' })
    if (request.method !== 'POST' || request.url !== '/pipeline') return reply(404, { error: 'Not found' })
    const commands = JSON.parse(Buffer.concat(chunks).toString('utf8')) as string[][]
    const results: unknown[] = []
    for (const command of commands) results.push(await run(command))
    reply(200, results)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  onEnd(async () => {
    server.close()
    server.closeAllConnections()
    await client.close().catch(() => undefined)
  })
  return { url: `http://127.0.0.1:${port}`, token, requests }
}
