import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Agent } from 'undici'
import { describe, expect, it } from 'vitest'
import { exchange } from '../../../src/server/upstreams/exchange.ts'
import { all } from '../start.ts'

const unwanted = new DOMException('Nobody wants it.', 'AbortError')
/** So much may lie here unread, with what one read of a socket brings on top. */
const mostHeld = 65_536 + 65_536

/** A server of one's own and a pool of connections to it. */
async function talkTo(listener: RequestListener) {
  const requests: ServerResponse[] = []
  const server = createServer((request, response) => {
    requests.push(response)
    listener(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const agent = new Agent()
  const ask = (signal: AbortSignal = new AbortController().signal) =>
    exchange(agent, { origin, path: '/', method: 'GET' }, signal)
  const close = async (): Promise<void> => {
    await agent.destroy()
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { origin, requests, server, ask, [Symbol.asyncDispose]: close }
}

/** Writes without end, as fast as the other side lets it. */
const endlessly: RequestListener = (_, response) => {
  const more = (): void => {
    while (!response.destroyed && response.write(Buffer.alloc(65_536, 'x'))) {
      // As long as there is room.
    }
  }
  response.on('drain', more)
  more()
}

async function turnsOfTheLoop(many: number): Promise<void> {
  for (let turn = 0; turn < many; turn++) await new Promise(setImmediate)
}

const textOf = async (body: AsyncIterable<Uint8Array>): Promise<string> =>
  Buffer.concat(await all(body)).toString('utf8')

describe('one request to a server', () => {
  it('is answered with status, headers and body', async () => {
    await using there = await talkTo(
      (_, response) => void response.writeHead(201, { 'X-Kind': 'a', 'set-cookie': ['b=1', 'c=2'] }).end('Grüße 🌍'),
    )
    const { status, headers, body } = await there.ask()
    expect([status, headers['x-kind'], headers['set-cookie']]).toEqual([201, 'a', 'b=1,c=2'])
    expect(await textOf(body)).toBe('Grüße 🌍')
  })

  it('does not take hints that come first for the answer', async () => {
    await using there = await talkTo((_, response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload' })
      response.writeHead(200).end('Hello')
    })
    const { status, body } = await there.ask()
    expect([status, await textOf(body)]).toEqual([200, 'Hello'])
  })

  it('leaves its connection to the next one when it is read to the end', async () => {
    const ports: (number | undefined)[] = []
    await using there = await talkTo((request, response) => {
      ports.push(request.socket.remotePort)
      response.end('Hello')
    })
    for (let time = 0; time < 3; time++) {
      await textOf((await there.ask()).body)
      await turnsOfTheLoop(1)
    }
    expect(ports).toEqual([ports[0], ports[0], ports[0]])
  })

  it('fails when the connection breaks before the answer, and in the middle of it', async () => {
    await using before = await talkTo((request) => void request.socket.destroy())
    await expect(before.ask()).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' })
    await using amid = await talkTo(
      (_, response) => void response.writeHead(200).write('Once', () => response.destroy()),
    )
    await expect(textOf((await amid.ask()).body)).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' })
  })
})

describe('what comes faster than it is taken', () => {
  it('is held back at its sender, and nothing of it is lost', async () => {
    const sent = Buffer.from(Array.from({ length: 4_194_304 }, (_, at) => at % 251))
    await using there = await talkTo((_, response) => void response.end(sent))
    const { body } = await there.ask()
    const [pieces, hash]: [number[], ReturnType<typeof createHash>] = [[], createHash('sha256')]
    for await (const piece of body) {
      pieces.push(piece.length)
      hash.update(piece)
      await turnsOfTheLoop(20)
    }
    expect(Math.max(...pieces)).toBeLessThanOrEqual(mostHeld)
    expect(hash.digest('hex')).toBe(createHash('sha256').update(sent).digest('hex'))
  })

  it('is given up even while it is held back', async () => {
    await using there = await talkTo(endlessly)
    const giveUp = new AbortController()
    const { body } = await there.ask(giveUp.signal)
    await turnsOfTheLoop(50)
    const closed = once(there.requests[0] as ServerResponse, 'close')
    giveUp.abort(unwanted)
    await closed
    await expect(textOf(body)).rejects.toBe(unwanted)
  })
})

describe('a request that nobody wants any more', () => {
  it('is never sent when it was given up before', async () => {
    await using there = await talkTo((_, response) => void response.end('Hello'))
    await expect(there.ask(AbortSignal.abort(unwanted))).rejects.toBe(unwanted)
    await textOf((await there.ask()).body)
    expect(there.requests).toHaveLength(1)
  })

  it('is given up at once while there is no connection yet', async () => {
    const agent = new Agent({ connect: () => undefined })
    const giveUp = new AbortController()
    const asked = exchange(agent, { origin: 'http://127.0.0.1:9', path: '/', method: 'GET' }, giveUp.signal)
    giveUp.abort(unwanted)
    const undecided = turnsOfTheLoop(200).then(() => 'still waiting')
    expect(await Promise.race([asked.catch((error: unknown) => error), undecided])).toBe(unwanted)
    void agent.destroy()
  })

  it('is closed at once while the server thinks', async () => {
    await using there = await talkTo(() => undefined)
    const giveUp = new AbortController()
    const asked = there.ask(giveUp.signal).catch((error: unknown) => error)
    await once(there.server, 'request')
    const closed = once(there.requests[0] as ServerResponse, 'close')
    giveUp.abort(unwanted)
    expect(await asked).toBe(unwanted)
    await closed
  })

  it('is closed at once in the middle of the answer', async () => {
    await using there = await talkTo((_, response) => void response.write('Once'))
    const giveUp = new AbortController()
    const { body } = await there.ask(giveUp.signal)
    const closed = once(there.requests[0] as ServerResponse, 'close')
    const pieces = body[Symbol.asyncIterator]()
    expect(Buffer.from((await pieces.next()).value).toString()).toBe('Once')
    const next = pieces.next()
    giveUp.abort(unwanted)
    await expect(next).rejects.toBe(unwanted)
    await closed
  })

  it('is closed when its taker stops', async () => {
    await using there = await talkTo(endlessly)
    for await (const _ of (await there.ask()).body) break
    const [response] = there.requests
    if (response?.closed === false) await once(response, 'close')
  })

  it('is closed when what is left of it is let go of, though it has no end', async () => {
    await using there = await talkTo(endlessly)
    const { body } = await there.ask()
    const [response] = there.requests
    body.dump()
    await Promise.race([once(response as ServerResponse, 'close'), turnsOfTheLoop(100)])
    expect(response?.closed).toBe(true)
  })
})
