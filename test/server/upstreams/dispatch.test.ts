import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Agent } from 'undici'
import { describe, expect, it } from 'vitest'
import { dispatchRequest } from '../../../src/server/upstreams/dispatch.ts'
import { collectAll } from '../start.ts'

const abortReason = new DOMException('Aborted by the test.', 'AbortError')
/** High-water mark plus the bytes of one socket read. */
const maxBufferedBytes = 65_536 + 65_536

/** Starts a server and creates a connection pool for it. */
async function startFixture(listener: RequestListener) {
  const responses: ServerResponse[] = []
  const server = createServer((request, response) => {
    responses.push(response)
    listener(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const agent = new Agent()
  const send = (signal: AbortSignal = new AbortController().signal) =>
    dispatchRequest(agent, { origin, path: '/', method: 'GET' }, signal)
  const close = async (): Promise<void> => {
    await agent.destroy()
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { responses, server, send, [Symbol.asyncDispose]: close }
}

/** Writes forever, as fast as the client reads. */
const writeForever: RequestListener = (_, response) => {
  const fill = (): void => {
    while (!response.destroyed && response.write(Buffer.alloc(65_536, 'x'))) {
      // Writes until the buffer is full.
    }
  }
  response.on('drain', fill)
  fill()
}

async function waitTicks(count: number): Promise<void> {
  for (let tick = 0; tick < count; tick++) await new Promise(setImmediate)
}

const readText = async (body: AsyncIterable<Uint8Array>): Promise<string> =>
  Buffer.concat(await collectAll(body)).toString('utf8')

describe('dispatchRequest', () => {
  it('returns status, headers and body', async () => {
    await using fixture = await startFixture(
      (_, response) => void response.writeHead(201, { 'X-Kind': 'a', 'set-cookie': ['b=1', 'c=2'] }).end('Grüße 🌍'),
    )
    const { status, headers, body } = await fixture.send()
    expect([status, headers['x-kind'], headers['set-cookie']]).toEqual([201, 'a', 'b=1,c=2'])
    expect(await readText(body)).toBe('Grüße 🌍')
  })

  it('ignores informational responses', async () => {
    await using fixture = await startFixture((_, response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload' })
      response.writeHead(200).end('Hello')
    })
    const { status, body } = await fixture.send()
    expect([status, await readText(body)]).toEqual([200, 'Hello'])
  })

  it('reuses the connection after the body has been read', async () => {
    const ports: (number | undefined)[] = []
    await using fixture = await startFixture((request, response) => {
      ports.push(request.socket.remotePort)
      response.end('Hello')
    })
    for (let request = 0; request < 3; request++) {
      await readText((await fixture.send()).body)
      await waitTicks(1)
    }
    expect(ports).toEqual([ports[0], ports[0], ports[0]])
  })

  it('fails when the connection breaks before and during the response', async () => {
    await using before = await startFixture((request) => void request.socket.destroy())
    await expect(before.send()).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' })
    await using midway = await startFixture(
      (_, response) => void response.writeHead(200).write('Once', () => response.destroy()),
    )
    await expect(readText((await midway.send()).body)).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' })
  })
})

describe('backpressure', () => {
  it('pauses the sender and loses no data', async () => {
    const sent = Buffer.from(Array.from({ length: 4_194_304 }, (_, index) => index % 251))
    await using fixture = await startFixture((_, response) => void response.end(sent))
    const { body } = await fixture.send()
    const [sizes, hash]: [number[], ReturnType<typeof createHash>] = [[], createHash('sha256')]
    for await (const chunk of body) {
      sizes.push(chunk.length)
      hash.update(chunk)
      await waitTicks(20)
    }
    expect(Math.max(...sizes)).toBeLessThanOrEqual(maxBufferedBytes)
    expect(hash.digest('hex')).toBe(createHash('sha256').update(sent).digest('hex'))
  })

  it('does not delay an abort', async () => {
    await using fixture = await startFixture(writeForever)
    const controller = new AbortController()
    const { body } = await fixture.send(controller.signal)
    await waitTicks(50)
    const closed = once(fixture.responses[0] as ServerResponse, 'close')
    controller.abort(abortReason)
    await closed
    await expect(readText(body)).rejects.toBe(abortReason)
  })
})

describe('an aborted request', () => {
  it('is not sent if the signal was aborted before', async () => {
    await using fixture = await startFixture((_, response) => void response.end('Hello'))
    await expect(fixture.send(AbortSignal.abort(abortReason))).rejects.toBe(abortReason)
    await readText((await fixture.send()).body)
    expect(fixture.responses).toHaveLength(1)
  })

  it('without a connection rejects at once', async () => {
    const agent = new Agent({ connect: () => undefined })
    const controller = new AbortController()
    const pending = dispatchRequest(
      agent,
      { origin: 'http://127.0.0.1:9', path: '/', method: 'GET' },
      controller.signal,
    )
    controller.abort(abortReason)
    const timeout = waitTicks(200).then(() => 'still waiting')
    expect(await Promise.race([pending.catch((error: unknown) => error), timeout])).toBe(abortReason)
    void agent.destroy()
  })

  it('before the response headers closes the connection', async () => {
    await using fixture = await startFixture(() => undefined)
    const controller = new AbortController()
    const outcome = fixture.send(controller.signal).catch((error: unknown) => error)
    await once(fixture.server, 'request')
    const closed = once(fixture.responses[0] as ServerResponse, 'close')
    controller.abort(abortReason)
    expect(await outcome).toBe(abortReason)
    await closed
  })

  it('during the response closes the connection', async () => {
    await using fixture = await startFixture((_, response) => void response.write('Once'))
    const controller = new AbortController()
    const { body } = await fixture.send(controller.signal)
    const closed = once(fixture.responses[0] as ServerResponse, 'close')
    const iterator = body[Symbol.asyncIterator]()
    expect(Buffer.from((await iterator.next()).value).toString()).toBe('Once')
    const next = iterator.next()
    controller.abort(abortReason)
    await expect(next).rejects.toBe(abortReason)
    await closed
  })

  it('is closed when the consumer stops iterating', async () => {
    await using fixture = await startFixture(writeForever)
    for await (const _ of (await fixture.send()).body) break
    const [response] = fixture.responses
    if (response?.closed === false) await once(response, 'close')
  })

  it('is closed when an endless body is discarded', async () => {
    await using fixture = await startFixture(writeForever)
    const { body } = await fixture.send()
    const [response] = fixture.responses
    body.discard()
    if (response?.closed === false) await once(response, 'close')
    expect(response?.closed).toBe(true)
  })
})
