import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { openMemory } from '../../../src/index.ts'
import type { OnSessionEnd } from '../../../src/lifecycle/endEvent.ts'
import { keyOf, signature, webhook } from '../../../src/server/webhooks/webhook.ts'
import { verifies } from '../../requirements/verifies.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const end: Parameters<OnSessionEnd> = [
  'acme:ann',
  { messages: [], summaries: [], createdAt: 1, lastAccessed: 2, messageCount: 0 },
  { id: 'end:acme:ann:0:1', reason: 'ended' },
]

type Received = { readonly path: string | undefined; readonly headers: IncomingHttpHeaders; readonly body: string }

/** Somebody who wants to hear of ends, and what came. */
async function receiver(answer: RequestListener = (_, response) => void response.writeHead(204).end()) {
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

describe('a webhook', () => {
  it('is signed as the Standard Webhooks libraries expect it', () => {
    // The example of the specification's own test suites.
    expect(signature(keyOf(secret), 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330, '{"test": 2432232314}')).toBe(
      'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    )
    expect(keyOf('any other text')).toEqual(Buffer.from('any other text'))
  })

  verifies('T-07', 'tells of the end of a session, signed, with what was said', async () => {
    await using there = await receiver()
    const clock = { now: 1_800_000_000_000 }
    const onSessionEnd = webhook({ url: there.url, secret, clock: () => clock.now })
    await using memory = await openMemory({ profile: 'support', clock: () => clock.now, onSessionEnd })
    await memory.append('acme:ann', [{ role: 'user', content: 'Where is my parcel?' }])
    await memory.end('acme:ann')
    await memory.lifecycle.settled()
    const [{ path, headers, body } = expect.fail('nothing came')] = there.received
    expect([path, there.received.length, headers['content-type']]).toEqual(['/ended', 1, 'application/json'])
    const id = 'end:acme:ann:0:1800000000000'
    expect([headers['webhook-id'], headers['webhook-timestamp']]).toEqual([id, '1800000000'])
    expect(headers['webhook-signature']).toBe(signature(keyOf(secret), id, 1_800_000_000, body))
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

  it('is not heard where the answer is no 2xx, and is sent nowhere else', async () => {
    await using elsewhere = await receiver()
    for (const status of [301, 307, 400, 500]) {
      await using there = await receiver(
        (_, response) => void response.writeHead(status, { location: elsewhere.url }).end('what was said'),
      )
      const error = await Promise.resolve(webhook({ url: `${there.url}?token=abc`, secret })(...end)).catch(
        (reason: unknown) => reason,
      )
      expect(error).toMatchObject({
        code: 'upstream',
        status,
        message: `${there.url} answered ${status} instead of 2xx.`,
      })
    }
    expect(elsewhere.received).toEqual([])
  })

  it('is given up where nobody answers in time', async () => {
    await using there = await receiver(() => undefined)
    await expect(webhook({ url: there.url, secret, timeout: 1 })(...end)).rejects.toMatchObject({ code: 'upstream' })
  })

  it('goes to https addresses, and to this machine', () => {
    for (const url of ['https://example.com/ended', 'http://localhost:8080', 'http://127.0.0.1/x', 'http://[::1]:1/x'])
      expect(typeof webhook({ url, secret })).toBe('function')
    for (const url of [
      'http://example.com/ended',
      'ftp://localhost/',
      'nonsense',
      'https://me:pass@example.com/',
      'http://127.0.0.1.example.com/',
    ]) {
      expect(() => webhook({ url, secret })).toThrow(expect.objectContaining({ code: 'bad-option', param: 'url' }))
    }
    for (const wrong of ['', 'whsec_', 'whsec_not base64!']) {
      expect(() => webhook({ url: 'https://example.com', secret: wrong })).toThrow(
        expect.objectContaining({ code: 'bad-option', param: 'secret' }),
      )
    }
  })
})
