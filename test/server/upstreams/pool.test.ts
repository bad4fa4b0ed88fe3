import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { UpstreamRequest, UpstreamResponse } from '../../../src/server/upstreams/backend.ts'
import type { UpstreamOptions } from '../../../src/server/upstreams/upstream.ts'
import { closedPortUrl, replyWith, respondWithStatus, type Script, startUpstream } from '../../providers/upstream.ts'
import { createPool, createRequest, openaiUpstream, readBody } from './fixtures.ts'

/** Checks the fields of a response. */
const expectResponse = (response: UpstreamResponse, expected: Partial<UpstreamResponse>): void =>
  expect(response).toMatchObject(expected)

/** Sends one request through a pool with a single upstream that follows the script. */
async function sendOnce(script: Script) {
  await using upstream = await startUpstream(script)
  await using pool = createPool({ upstreams: [openaiUpstream(upstream.url)] })
  const response = await pool.ask(createRequest())
  return {
    status: response.status,
    retries: response.retries,
    delays: pool.delays,
    requests: upstream.requests.length,
    text: await readBody(response),
  }
}

describe('retries of a single upstream', () => {
  it('after 5xx responses doubles the delay with each attempt', async () => {
    const { text, ...rest } = await sendOnce([respondWithStatus(500), respondWithStatus(503), replyWith('There.')])
    expect(rest).toEqual({ status: 200, retries: 2, delays: [500, 1_000], requests: 3 })
    expect(text).toContain('There.')
  })

  it('after three failed attempts returns the last response', async () => {
    const { text, ...rest } = await sendOnce(respondWithStatus(503, {}, '{"error":{"message":"busy"}}'))
    expect({ ...rest, text }).toEqual({
      status: 503,
      retries: 2,
      delays: [500, 1_000],
      requests: 3,
      text: '{"error":{"message":"busy"}}',
    })
  })

  for (const [name, value, delay] of [
    ['retry-after', '7', 7_000],
    ['retry-after', '0', 0],
    ['retry-after', '1.5', 1_500],
    ['retry-after-ms', '250', 250],
    ['retry-after', 'Wed, 21 Oct 2015 07:28:00 GMT', 0],
    ['retry-after', 'soon', 500],
    ['retry-after', '-3', 500],
    ['retry-after-ms', 'NaN', 500],
  ] as const) {
    it(`uses the delay of ${name}: ${value}`, async () => {
      expect(await sendOnce([respondWithStatus(429, { [name]: value }), replyWith('There.')])).toMatchObject({
        status: 200,
        retries: 1,
        delays: [delay],
      })
    })
  }

  it('with a retry-after above the maximum delay returns the response without a retry', async () => {
    expect(await sendOnce([respondWithStatus(429, { 'retry-after': '21' }), replyWith('There.')])).toMatchObject({
      status: 429,
      retries: 0,
      delays: [],
      requests: 1,
    })
  })

  it('with a client error or x-should-retry: false does not retry', async () => {
    for (const status of [400, 401, 403, 404, 422])
      expect(await sendOnce([respondWithStatus(status), replyWith('There.')])).toMatchObject({ status, requests: 1 })
    expect(await sendOnce([respondWithStatus(429, { 'x-should-retry': 'false' }), replyWith('There.')])).toMatchObject({
      status: 429,
      requests: 1,
    })
  })

  it('after a lost or refused connection retries', async () => {
    expect(await sendOnce([{ does: 'cut' }, replyWith('There.')])).toMatchObject({
      status: 200,
      retries: 1,
      delays: [500],
      requests: 2,
    })
    await using pool = createPool({ upstreams: [openaiUpstream(await closedPortUrl())] })
    await expect(pool.ask(createRequest())).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('(ECONNREFUSED)'),
    })
    expect(pool.delays).toEqual([500, 1_000])
  })

  it('reuses the connection of a complete error response and closes that of an endless one', async () => {
    const [bodies, ports, closed]: [string[], (number | undefined)[], Promise<unknown>[]] = [
      ['{"error":{}}', '{', 'fine'],
      [],
      [],
    ]
    const server = createServer((request, response) => {
      ports.push(request.socket.remotePort)
      const text = bodies.shift() ?? ''
      if (text !== '{') return void response.writeHead(text === 'fine' ? 200 : 503).end(text)
      closed.push(once(response, 'close'))
      response.writeHead(503).write(text)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    await using pool = createPool({
      upstreams: [openaiUpstream(base)],
      sleep: () => new Promise((resolve) => setImmediate(resolve)),
    })
    expect([await readBody(await pool.ask(createRequest())), pool.delays]).toEqual(['fine', [500, 1_000]])
    expect([ports[0] === ports[1], ports[1] === ports[2], (await Promise.all(closed)).length]).toEqual([true, false, 1])
    server.close()
  })

  it('after the first byte of a response does not retry', async () => {
    await using upstream = await startUpstream({ does: 'drop', pieces: ['Once'] })
    await using pool = createPool({ upstreams: [openaiUpstream(upstream.url)] })
    await expect(readBody(await pool.ask(createRequest()))).rejects.toMatchObject({ code: 'upstream' })
    expect([upstream.requests.length, pool.delays]).toEqual([1, []])
  })

  it('reports the state of the upstream after each request', async () => {
    await using upstream = await startUpstream([
      respondWithStatus(500),
      respondWithStatus(500),
      respondWithStatus(500),
      respondWithStatus(400),
      { does: 'cut' },
      { does: 'cut' },
      { does: 'cut' },
    ])
    await using pool = createPool({ upstreams: [openaiUpstream(upstream.url)] })
    const states = [pool.states()]
    for (let request = 0; request < 3; request++) {
      await pool.ask(createRequest()).catch(() => undefined)
      states.push(pool.states())
    }
    expect(states.map(([first]) => first?.state)).toEqual(['ok', 'failing', 'ok', 'down'])
  })
})

describe('several upstreams', () => {
  it('when the first fails use the next one at once and report the failed one', async () => {
    for (const script of [
      respondWithStatus(429, { 'retry-after': '9' }),
      respondWithStatus(500),
      { does: 'cut' },
    ] as const) {
      await using one = await startUpstream(script)
      await using other = await startUpstream(replyWith('There.'))
      await using pool = createPool({
        upstreams: [openaiUpstream(one.url), openaiUpstream(other.url, { name: 'second' })],
      })
      const response = await pool.ask(createRequest())
      expectResponse(response, { status: 200, upstream: 'second', retries: 1, failedUpstreams: ['first'] })
      expect([await readBody(response), one.requests.length, other.requests.length, pool.delays]).toEqual([
        expect.stringContaining('There.'),
        1,
        1,
        [],
      ])
    }
  })

  it('with a client error do not fail over', async () => {
    await using one = await startUpstream(respondWithStatus(400))
    await using other = await startUpstream(replyWith('There.'))
    await using pool = createPool({
      upstreams: [openaiUpstream(one.url), openaiUpstream(other.url, { name: 'second' })],
    })
    expectResponse(await pool.ask(createRequest()), { status: 400, upstream: 'first', failedUpstreams: [] })
    expect(other.requests).toEqual([])
  })

  it('with an oversized error response fail over without reading it to the end', async () => {
    await using one = await startUpstream(respondWithStatus(503, {}, 'x'.repeat(50_000_000)))
    await using other = await startUpstream(replyWith('There.'))
    await using pool = createPool({
      upstreams: [openaiUpstream(one.url), openaiUpstream(other.url, { name: 'second' })],
    })
    expectResponse(await pool.ask(createRequest()), { status: 200, upstream: 'second' })
    expect(await one.requests[0]?.outcome).toBe('hung up')
  })

  it('are selected by model and called with their own model name', async () => {
    await using one = await startUpstream()
    await using other = await startUpstream()
    await using pool = createPool({
      upstreams: [
        openaiUpstream(one.url, { models: ['gpt-*', 'o3'], rename: { 'gpt-5': 'gpt-5-2026' } }),
        openaiUpstream(other.url, { name: 'second', models: ['llama', 'gpt-oss'] }),
      ],
    })
    const used: string[] = []
    for (const model of ['gpt-5', 'o3', 'llama', 'gpt-oss'])
      used.push((await pool.ask(createRequest({ body: { model } }))).upstream)
    expect(used).toEqual(['first', 'first', 'second', 'first'])
    expect([one, other].map(({ requests }) => requests.map(({ body }) => body.model))).toEqual([
      ['gpt-5-2026', 'o3', 'gpt-oss'],
      ['llama'],
    ])
    for (const model of ['o3-mini', 'claude', '']) {
      expect(() => pool.ask(createRequest({ body: { model } }))).toThrow(
        expect.objectContaining({ status: 404, code: 'model_not_found', param: 'model' }),
      )
    }
  })

  it('with model names that are properties of Object.prototype do not rename them', async () => {
    await using upstream = await startUpstream()
    await using pool = createPool({ upstreams: [openaiUpstream(upstream.url, { rename: { a: 'b' } })] })
    for (const model of ['a', 'constructor', '__proto__'])
      await readBody(await pool.ask(createRequest({ body: { model } })))
    expect(upstream.requests.map(({ body }) => body.model)).toEqual(['b', 'constructor', '__proto__'])
  })

  it('are selected by protocol and called at its path', async () => {
    await using upstream = await startUpstream()
    const anthropic: UpstreamOptions = { name: 'claude', base: upstream.origin, protocol: 'anthropic', key: 'sk-ant' }
    await using pool = createPool({ upstreams: [anthropic, openaiUpstream(upstream.url, { key: 'sk-open' })] })
    for (const endpoint of ['chat', 'responses', 'messages', 'count_tokens', 'embeddings'] as const)
      await readBody(await pool.ask(createRequest({ endpoint })))
    expect(upstream.requests.map(({ path, headers }) => [path, headers['x-api-key'] ?? headers.authorization])).toEqual(
      [
        ['/v1/chat/completions', 'Bearer sk-open'],
        ['/v1/responses', 'Bearer sk-open'],
        ['/v1/messages', 'sk-ant'],
        ['/v1/messages/count_tokens', 'sk-ant'],
        ['/v1/embeddings', 'Bearer sk-open'],
      ],
    )
  })

  it('of the OpenAI protocol serve messages only without an Anthropic upstream or with an explicit model list', async () => {
    await using one = await startUpstream()
    await using other = await startUpstream()
    const claude = (models?: string[]): UpstreamOptions => ({
      name: 'claude',
      base: other.origin,
      protocol: 'anthropic',
      models,
    })
    const sendVia = async (upstreams: readonly UpstreamOptions[], model: string): Promise<string> => {
      await using pool = createPool({ upstreams })
      const response = await pool.ask(
        createRequest({ endpoint: 'messages', body: { model }, headers: { 'x-api-key': 'sk-ant' } }),
      )
      await readBody(response)
      return response.upstream
    }
    expect(await sendVia([openaiUpstream(one.url), claude()], 'claude-x')).toBe('claude')
    expect(await sendVia([openaiUpstream(one.url, { models: ['claude-*'] }), claude()], 'claude-x')).toBe('claude')
    expect(one.requests).toEqual([])
    expect(await sendVia([openaiUpstream(one.url, { models: ['gpt-*'] }), claude(['claude-*'])], 'gpt-5')).toBe('first')
    expect(await sendVia([openaiUpstream(one.url)], 'claude-x')).toBe('first')
    await expect(sendVia([openaiUpstream(one.url), claude(['claude-*'])], 'gpt-5')).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
    })
  })

  it('list models for clients of their own protocol and never receive a key meant for another', async () => {
    await using one = await startUpstream()
    await using other = await startUpstream()
    const claude: UpstreamOptions = { name: 'claude', base: other.origin, protocol: 'anthropic' }
    await using pool = createPool({ upstreams: [openaiUpstream(one.url), claude] })
    const signal = new AbortController().signal
    const listModels = async (headers: UpstreamRequest['headers']): Promise<string> =>
      readBody(await pool.models({ headers, withholdClientKey: false, signal }))
    await listModels({ authorization: 'Bearer sk-client' })
    await listModels({ 'x-api-key': 'sk-ant' })
    await listModels({ authorization: 'Bearer oauth', 'anthropic-version': '2023-06-01' })
    expect(one.requests.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      ['/v1/models', 'Bearer sk-client'],
    ])
    expect(other.requests.map(({ path, headers }) => [path, headers['x-api-key'] ?? headers.authorization])).toEqual([
      ['/v1/models', 'sk-ant'],
      ['/v1/models', 'Bearer oauth'],
    ])
    await using single = createPool({ upstreams: [openaiUpstream(one.url)] })
    await readBody(await single.models({ headers: { 'x-api-key': 'sk-ant' }, withholdClientKey: false, signal }))
    expect(JSON.stringify(one.requests)).not.toContain('sk-ant')
  })

  it('receive their own keys: the client key goes to the first one only', async () => {
    await using one = await startUpstream(respondWithStatus(500))
    await using other = await startUpstream()
    await using pool = createPool({
      upstreams: [
        openaiUpstream(one.url, { key: 'sk-one' }),
        openaiUpstream(other.url, { name: 'second', key: 'sk-other' }),
      ],
    })
    await pool.ask(createRequest({ headers: { authorization: 'Bearer sk-client' } }))
    await pool.ask(createRequest({ headers: { authorization: 'Bearer sk-client' }, withholdClientKey: true }))
    expect(one.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer sk-client', 'Bearer sk-one'])
    expect(other.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer sk-other', 'Bearer sk-other'])
  })
})

describe('a rejected API key', () => {
  const body = '{"error":{"message":"Incorrect API key provided: sk-ho***se. Organization org-HOUSE"}}'
  const keyError = {
    status: 502,
    type: 'upstream_error',
    message: 'The upstream rejected the API key of this server. Ask the operator to check it.',
    headers: { 'x-should-retry': 'false' },
  }

  for (const status of [401, 403]) {
    it(`(${status}) passes the upstream message on only if the key is the client's own`, async () => {
      await using upstream = await startUpstream(respondWithStatus(status, {}, body))
      await using pool = createPool({ upstreams: [openaiUpstream(upstream.url, { key: 'sk-server' })] })
      await expect(pool.ask(createRequest())).rejects.toMatchObject(keyError)
      expect(pool.states()).toEqual([{ name: 'first', state: 'failing' }])
      const client = { authorization: 'Bearer sk-client' }
      await expect(pool.ask(createRequest({ headers: client, withholdClientKey: true }))).rejects.toMatchObject(
        keyError,
      )
      expect(await readBody(await pool.ask(createRequest({ headers: client })))).toBe(body)
      expect([upstream.requests.length, pool.delays, pool.states()]).toEqual([3, [], [{ name: 'first', state: 'ok' }]])
      await using keyless = createPool({ upstreams: [openaiUpstream(upstream.url)] })
      expect(await readBody(await keyless.ask(createRequest()))).toBe(body)
      await expect(keyless.ask(createRequest({ withholdClientKey: true }))).rejects.toMatchObject(keyError)
    })
  }

  it('of a fallback upstream hides the upstream message', async () => {
    await using one = await startUpstream(respondWithStatus(503))
    await using other = await startUpstream(respondWithStatus(401, {}, body))
    await using pool = createPool({
      upstreams: [openaiUpstream(one.url), openaiUpstream(other.url, { name: 'second', key: 'sk-server' })],
    })
    await expect(pool.ask(createRequest({ headers: { authorization: 'Bearer sk-client' } }))).rejects.toMatchObject(
      keyError,
    )
  })
})

describe('an aborted request', () => {
  it('while the upstream is silent closes the connection and does not fail over', async () => {
    await using upstream = await startUpstream({ does: 'hang' })
    await using other = await startUpstream()
    await using pool = createPool({
      upstreams: [openaiUpstream(upstream.url), openaiUpstream(other.url, { name: 'second' })],
    })
    const controller = new AbortController()
    const outcome = pool.ask(createRequest({ signal: controller.signal })).catch((error: unknown) => error)
    while (upstream.requests.length === 0) await new Promise(setImmediate)
    controller.abort()
    expect(await outcome).toMatchObject({ name: 'AbortError' })
    expect([await upstream.requests[0]?.outcome, other.requests, pool.states()[0]?.state]).toEqual([
      'hung up',
      [],
      'ok',
    ])
  })

  it('during a retry delay is not sent again', async () => {
    await using upstream = await startUpstream(respondWithStatus(500))
    const controller = new AbortController()
    const sleep = async (_: number, signal: AbortSignal): Promise<void> => {
      controller.abort()
      signal.throwIfAborted()
    }
    await using pool = createPool({ upstreams: [openaiUpstream(upstream.url)], sleep })
    await expect(pool.ask(createRequest({ signal: controller.signal }))).rejects.toMatchObject({ name: 'AbortError' })
    expect(upstream.requests).toHaveLength(1)
  })
})
