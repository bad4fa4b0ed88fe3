import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { startServer, user } from './start.ts'

/** Starts a server that answers every request with these bytes, and ends the connection unless it is to stay open. */
async function startRawUpstream(send: (socket: Socket) => void) {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => send(socket))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async [Symbol.asyncDispose]() {
      server.close()
    },
  }
}

const respond =
  (type: string, body: string | Buffer, headers: readonly string[] = []) =>
  (socket: Socket): void => {
    const length = `content-length: ${Buffer.byteLength(body)}`
    socket.write(['HTTP/1.1 200 OK', `content-type: ${type}`, length, ...headers, '', ''].join('\r\n'))
    socket.end(body)
  }

/** Writes a chunk again and again until the other side closes the connection. */
const pour =
  (head: string, chunk: string) =>
  (socket: Socket): void => {
    socket.write(head)
    const write = (): void => {
      while (socket.writable && socket.write(chunk));
      if (socket.writable) socket.once('drain', write)
    }
    write()
  }

const [json, events] = ['application/json', 'text/event-stream']
const stream = `HTTP/1.1 200 OK\r\ncontent-type: ${events}\r\n\r\n`
const message = '"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"'
const reply = (extra: string): string => `{"choices":[{"index":0,${message}}],"extra":${extra}}`
const event = (extra: string): string =>
  `data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":null}],"extra":${extra}}\n\n`
const deep = '['.repeat(200_000) + ']'.repeat(200_000)
const calls = `{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},`.repeat(60_000)

const hostile: readonly (readonly [name: string, send: (socket: Socket) => void, isStreaming?: boolean])[] = [
  ['JSON nested deeply', respond(json, reply(deep))],
  ['an event nested deeply', respond(events, event(deep)), true],
  ['a million values', respond(json, reply(`[${'1,'.repeat(1_000_000)}1]`))],
  [
    '60,000 tool calls',
    respond(json, `{"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[${calls}{}]}}]}`),
  ],
  ['a number of a million digits', respond(json, reply('1'.repeat(1_000_000)))],
  [
    'a compressed reply that was not requested',
    respond(json, gzipSync(Buffer.alloc(20_000_000)), ['content-encoding: gzip']),
  ],
  ['headers without end', pour('HTTP/1.1 200 OK\r\n', `x-a: ${'a'.repeat(1_000)}\r\n`)],
  ['one event without end', pour(stream, 'data: '.padEnd(65_536, 'a')), true],
  ['lines of one event without end', pour(stream, `data: ${'a'.repeat(65_536)}\n`), true],
  ['a JSON reply without end', pour(`HTTP/1.1 200 OK\r\ncontent-type: ${json}\r\n\r\n`, '"'.padEnd(65_536, 'a'))],
  [
    'less than its content-length',
    (socket) => socket.end(`HTTP/1.1 200 OK\r\ncontent-type: ${json}\r\ncontent-length: 500\r\n\r\n{}`),
  ],
  [
    'a redirect to itself',
    (socket) =>
      socket.end('HTTP/1.1 307 Temporary Redirect\r\nlocation: /v1/chat/completions\r\ncontent-length: 0\r\n\r\n'),
  ],
  ['invalid UTF-8', respond(json, Buffer.from([0x7b, 0xff, 0xfe, 0x7d]))],
]

describe('an upstream', () => {
  verifies('R-03', 'that sends more than a model would › ends in an error of bounded size and work', async () => {
    for (const [name, send, isStreaming = false] of hostile) {
      await using upstream = await startRawUpstream(send)
      await using server = await startServer({
        upstream: upstream.url,
        retries: { tries: 1 },
        memory: { upkeep: false },
      })
      const response = await server.postChat('acme:ann', { stream: isStreaming, messages: [user('Hello')] })
      const text = await response.text()
      expect([name, response.status, server.faults]).toEqual([name, 502, []])
      expect(JSON.parse(text)).toMatchObject({ error: { code: 'upstream' } })
      expect(await server.transcriptLines('acme:ann')).toEqual(['user: Hello'])
    }
  })

  it('that sends endless events without text › is relayed without being kept', async () => {
    await using upstream = await startRawUpstream(pour(stream, `: ${'a'.repeat(1_000)}\n\n`))
    await using server = await startServer({ upstream: upstream.url, retries: { tries: 1 }, memory: { upkeep: false } })
    const response = await server.postChat('acme:ann', { stream: true, messages: [user('Hello')] })
    const before = process.memoryUsage().arrayBuffers
    let size = 0
    for await (const bytes of response.body as AsyncIterable<Uint8Array>) {
      size += bytes.length
      if (size > 100_000_000) break
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50_000_000)
  })
})
