import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { startUpstream } from '../../providers/upstream.ts'
import { startServer, user } from '../start.ts'

/** Headers that select the target in proxies and gateways. */
const headers = [
  ...[
    'forwarded',
    'x-forwarded-host',
    'x-forwarded-server',
    'x-original-host',
    'x-host',
    'x-original-url',
    'x-rewrite-url',
    'origin-host',
    'via',
  ],
  ...[
    'x-upstream',
    'x-base-url',
    'x-target-url',
    'x-proxy-to',
    'x-portkey-custom-host',
    'helicone-target-url',
    'openai-base-url',
  ],
]
/** Body fields that name an address in clients and gateways. */
const fields = [
  'base_url',
  'baseURL',
  'api_base',
  'apiBase',
  'endpoint',
  'url',
  'host',
  'upstream',
  'proxy',
  'webhook',
  'callback_url',
  'target',
]

describe('upstream selection', () => {
  it('ignores addresses in headers and bodies', async () => {
    await using upstream = await startUpstream()
    await using elsewhere = await startUpstream()
    await using server = await startServer({ upstream: upstream.url, apiKey: 'sk-configured' })
    const messages = [user('Hello')]
    for (const name of headers) await server.postChat('demo:me', { messages }, { [name]: elsewhere.url })
    for (const name of fields)
      await server.postChat('demo:me', { messages, [name]: elsewhere.url, metadata: { [name]: elsewhere.url } })
    await server.postChat('demo:me', { messages, model: elsewhere.url })
    expect([elsewhere.requests.length, upstream.requests.length]).toEqual([0, headers.length + fields.length + 1])
    expect(new Set(upstream.requests.map(({ path }) => path))).toEqual(new Set(['/v1/chat/completions']))
    const sent = upstream.requests.slice(0, headers.length).map((request) => JSON.stringify(request.headers))
    expect(sent.filter((text) => text.includes(elsewhere.origin))).toEqual([])
  })

  it('ignores addresses in the request target', async () => {
    await using elsewhere = await startUpstream()
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url })
    const port = Number(new URL(server.url).port)
    const body = JSON.stringify({ messages: [user('Hello')] })
    const targets = [
      `${elsewhere.origin}/v1/demo:me/chat/completions`,
      `//${new URL(elsewhere.origin).host}/v1/chat/completions`,
      '/v1/http:%2F%2Fevil.example/chat/completions',
    ]
    for (const target of targets) {
      const socket = connect(port, '127.0.0.1')
      socket.write(
        `POST ${target} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      )
      const [answer] = (await once(socket, 'data')) as [Buffer]
      expect([target, answer.toString().slice(0, 12)]).toEqual([target, expect.stringMatching(/^HTTP\/1\.1 40[04]$/)])
      socket.destroy()
    }
    expect([elsewhere.requests.length, upstream.requests.length]).toEqual([0, 0])
  })
})
