import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { openMemory } from '../../../src/index.ts'
import type { OnSessionEnd } from '../../../src/lifecycle/endEvent.ts'
import { createWebhook, parseSecret, signPayload } from '../../../src/server/webhooks/webhook.ts'
import { verifies } from '../../requirements/verifies.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const end: Parameters<OnSessionEnd> = [
  'acme:ann',
  { messages: [], summaries: [], createdAt: 1, lastAccessed: 2, messageCount: 0 },
  { id: 'end:acme:ann:0:1', reason: 'ended' },
]

type Received = { readonly path: string | undefined; readonly headers: IncomingHttpHeaders; readonly body: string }

/** Starts an HTTP server that records webhook requests. */
async function startReceiver(answer: RequestListener = (_, response) => void response.writeHead(204).end()) {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const piece of request) body += piece
    received.push({ path: request.url, headers: request.headers, body })
    answer(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/ended`,
    received,
    [Symbol.asyncDispose]: close,
  }
}

describe('createWebhook', () => {
  it('signs like the Standard Webhooks libraries', () => {
    // Example of the specification's test suites.
    expect(
      signPayload(parseSecret(secret), 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330, '{"test": 2432232314}'),
    ).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
    expect(parseSecret('any other text')).toEqual(Buffer.from('any other text'))
  })

  verifies('T-07', 'sends the end of a session with its messages, signed', async () => {
    await using receiver = await startReceiver()
    const clock = { now: 1_800_000_000_000 }
    const onSessionEnd = createWebhook({ url: receiver.url, secret, clock: () => clock.now })
    await using memory = await openMemory({ profile: 'support', clock: () => clock.now, onSessionEnd })
    await memory.append('acme:ann', [{ role: 'user', content: 'Where is my parcel?' }])
    await memory.end('acme:ann')
    await memory.lifecycle.whenIdle()
    const [{ path, headers, body } = expect.fail('no request received')] = receiver.received
    expect([path, receiver.received.length, headers['content-type']]).toEqual(['/ended', 1, 'application/json'])
    const id = 'end:acme:ann:0:1800000000000'
    expect([headers['webhook-id'], headers['webhook-timestamp']]).toEqual([id, '1800000000'])
    expect(headers['webhook-signature']).toBe(signPayload(parseSecret(secret), id, 1_800_000_000, body))
    expect(JSON.parse(body)).toMatchObject({
      type: 'session.ended',
      ...{ id, key: 'acme:ann', reason: 'ended' },
      data: {
        messageCount: 1,
        createdAt: 1_800_000_000_000,
        messages: [{ role: 'user', content: 'Where is my parcel?' }],
      },
    })
  })

  it('rejects a response other than 2xx, and follows no redirect', async () => {
    await using elsewhere = await startReceiver()
    for (const status of [301, 307, 400, 500]) {
      await using receiver = await startReceiver(
        (_, response) => void response.writeHead(status, { location: elsewhere.url }).end('body'),
      )
      const error = await Promise.resolve(createWebhook({ url: `${receiver.url}?token=abc`, secret })(...end)).catch(
        (reason: unknown) => reason,
      )
      expect(error).toMatchObject({
        code: 'upstream',
        status,
        message: `${receiver.url} answered ${status} instead of 2xx.`,
      })
    }
    expect(elsewhere.received).toEqual([])
  })

  it('rejects after the timeout', async () => {
    await using receiver = await startReceiver(() => undefined)
    await expect(createWebhook({ url: receiver.url, secret, timeout: 1 })(...end)).rejects.toMatchObject({
      code: 'upstream',
    })
  })

  it('accepts https: and loopback URLs only, and valid secrets only', () => {
    for (const url of ['https://example.com/ended', 'http://localhost:8080', 'http://127.0.0.1/x', 'http://[::1]:1/x'])
      expect(typeof createWebhook({ url, secret })).toBe('function')
    for (const url of [
      'http://example.com/ended',
      'ftp://localhost/',
      'nonsense',
      'https://me:pass@example.com/',
      'http://127.0.0.1.example.com/',
    ]) {
      expect(() => createWebhook({ url, secret })).toThrow(
        expect.objectContaining({ code: 'bad-option', param: 'url' }),
      )
    }
    for (const invalid of ['', 'whsec_', 'whsec_not base64!']) {
      expect(() => createWebhook({ url: 'https://example.com', secret: invalid })).toThrow(
        expect.objectContaining({ code: 'bad-option', param: 'secret' }),
      )
    }
  })
})
