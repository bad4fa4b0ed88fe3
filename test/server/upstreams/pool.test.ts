import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { Answer, Call } from '../../../src/server/upstreams/backend.ts'
import { type PoolOptions, poolBackend } from '../../../src/server/upstreams/pool.ts'
import type { UpstreamOptions } from '../../../src/server/upstreams/upstream.ts'
import { closedPort, refuses, replies, type Script, startUpstream } from '../../providers/upstream.ts'
import { all } from '../start.ts'

type Given = {
  readonly upstreams: readonly UpstreamOptions[]
  readonly pause?: PoolOptions['pause']
  readonly patience?: Partial<PoolOptions['patience']>
}

/** A pool that notes how long it would have waited, and does not wait. */
function pool({ upstreams, patience, pause }: Given) {
  const waits: number[] = []
  const backend = poolBackend({
    upstreams,
    // Longer than any test may take: what waits for it fails.
    patience: { first: 600_000, idle: 600_000, total: 600_000, ...patience },
    persistence: { tries: 3, wait: 500, longest: 20_000 },
    pause: async (time, signal) => {
      waits.push(time)
      await pause?.(time, signal)
    },
    random: () => 1,
  })
  return {
    ask: backend.ask,
    models: backend.models,
    states: backend.states,
    waits,
    [Symbol.asyncDispose]: () => backend.close(),
  }
}

const openai = (base: string, more: Partial<UpstreamOptions> = {}): UpstreamOptions => ({
  name: 'first',
  base,
  protocol: 'openai',
  ...more,
})
const call = (more: Partial<Call> = {}): Call => ({
  ...{ dialect: 'chat', body: { model: 'm', messages: [] }, spent: 0, headers: {}, isGuarded: false },
  signal: new AbortController().signal,
  ...more,
})
const textOf = async ({ body }: Answer): Promise<string> => Buffer.concat(await all(body)).toString('utf8')

/** How a single model server that follows this script is asked, and what comes of it. */
async function asked(script: Script) {
  await using upstream = await startUpstream(script)
  await using backend = pool({ upstreams: [openai(upstream.url)] })
  const answer = await backend.ask(call())
  return {
    status: answer.status,
    retries: answer.retries,
    waits: backend.waits,
    requests: upstream.requests.length,
    text: await textOf(answer),
  }
}

describe('a model server that is busy or down', () => {
  it('is asked again, each time after twice as long', async () => {
    const { text, ...rest } = await asked([refuses(500), refuses(503), replies('There.')])
    expect(rest).toEqual({ status: 200, retries: 2, waits: [500, 1_000], requests: 3 })
    expect(text).toContain('There.')
  })

  it('has the last word after three times', async () => {
    const { text, ...rest } = await asked(refuses(503, {}, '{"error":{"message":"busy"}}'))
    expect({ ...rest, text }).toEqual({
      status: 503,
      retries: 2,
      waits: [500, 1_000],
      requests: 3,
      text: '{"error":{"message":"busy"}}',
    })
  })

  for (const [name, value, wait] of [
    ['retry-after', '7', 7_000],
    ['retry-after', '0', 0],
    ['retry-after', '1.5', 1_500],
    ['retry-after-ms', '250', 250],
    ['retry-after', 'Wed, 21 Oct 2015 07:28:00 GMT', 0],
    ['retry-after', 'soon', 500],
    ['retry-after', '-3', 500],
    ['retry-after-ms', 'NaN', 500],
  ] as const) {
    it(`is asked again when it says (${name}: ${value})`, async () => {
      expect(await asked([refuses(429, { [name]: value }), replies('There.')])).toMatchObject({
        status: 200,
        retries: 1,
        waits: [wait],
      })
    })
  }

  it('is not waited for longer than a client would wait', async () => {
    expect(await asked([refuses(429, { 'retry-after': '21' }), replies('There.')])).toMatchObject({
      status: 429,
      retries: 0,
      waits: [],
      requests: 1,
    })
  })

  it('is not asked again for what will not change', async () => {
    for (const status of [400, 401, 403, 404, 422])
      expect(await asked([refuses(status), replies('There.')])).toMatchObject({ status, requests: 1 })
    expect(await asked([refuses(429, { 'x-should-retry': 'false' }), replies('There.')])).toMatchObject({
      status: 429,
      requests: 1,
    })
  })

  it('is asked again when it cuts the connection or is not there', async () => {
    expect(await asked([{ does: 'cut' }, replies('There.')])).toMatchObject({
      status: 200,
      retries: 1,
      waits: [500],
      requests: 2,
    })
    await using backend = pool({ upstreams: [openai(await closedPort())] })
    await expect(backend.ask(call())).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('(ECONNREFUSED)'),
    })
    expect(backend.waits).toEqual([500, 1_000])
  })

  it('is asked again at once though its refusal never ends, and over the same connection if it has come whole', async () => {
    const [answers, ports, letGo]: [string[], (number | undefined)[], Promise<unknown>[]] = [
      ['{"error":{}}', '{', 'fine'],
      [],
      [],
    ]
    const server = createServer((request, response) => {
      ports.push(request.socket.remotePort)
      const text = answers.shift() ?? ''
      if (text !== '{') return void response.writeHead(text === 'fine' ? 200 : 503).end(text)
      letGo.push(once(response, 'close'))
      response.writeHead(503).write(text)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    await using backend = pool({
      upstreams: [openai(base)],
      pause: () => new Promise((resolve) => setImmediate(resolve)),
    })
    expect([await textOf(await backend.ask(call())), backend.waits]).toEqual(['fine', [500, 1_000]])
    expect([ports[0] === ports[1], ports[1] === ports[2], (await Promise.all(letGo)).length]).toEqual([true, false, 1])
    server.close()
  })

  it('is not asked again once it has begun to answer', async () => {
    await using upstream = await startUpstream({ does: 'drop', pieces: ['Once'] })
    await using backend = pool({ upstreams: [openai(upstream.url)] })
    await expect(textOf(await backend.ask(call()))).rejects.toMatchObject({ code: 'upstream' })
    expect([upstream.requests.length, backend.waits]).toEqual([1, []])
  })

  it('tells how it has done lately', async () => {
    await using upstream = await startUpstream([
      refuses(500),
      refuses(500),
      refuses(500),
      refuses(400),
      { does: 'cut' },
      { does: 'cut' },
      { does: 'cut' },
    ])
    await using backend = pool({ upstreams: [openai(upstream.url)] })
    const states = [backend.states()]
    for (let time = 0; time < 3; time++) {
      await backend.ask(call()).catch(() => undefined)
      states.push(backend.states())
    }
    expect(states.map(([one]) => one?.state)).toEqual(['ok', 'failing', 'ok', 'down'])
  })
})

describe('several model servers', () => {
  it('stand in for each other at once, and the answer tells who was passed over', async () => {
    for (const script of [
      refuses(429, { 'retry-after': '9' }),
      refuses(500),
      { does: 'cut' },
      { does: 'hang' },
    ] as const) {
      await using one = await startUpstream(script)
      await using other = await startUpstream(replies('There.'))
      await using backend = pool({
        upstreams: [openai(one.url), openai(other.url, { name: 'second' })],
        patience: { first: 50 },
      })
      const answer = await backend.ask(call())
      expect(answer).toMatchObject({ status: 200, from: 'second', retries: 1, passedOver: ['first'] })
      expect([await textOf(answer), one.requests.length, other.requests.length, backend.waits]).toEqual([
        expect.stringContaining('There.'),
        1,
        1,
        [],
      ])
    }
  })

  it('are not asked in vain for what is the client’s own mistake', async () => {
    await using one = await startUpstream(refuses(400))
    await using other = await startUpstream(replies('There.'))
    await using backend = pool({ upstreams: [openai(one.url), openai(other.url, { name: 'second' })] })
    expect(await backend.ask(call())).toMatchObject({ status: 400, from: 'first', passedOver: [] })
    expect(other.requests).toEqual([])
  })

  it('do not wait for the end of an error that is longer than any error is', async () => {
    await using one = await startUpstream(refuses(503, {}, 'x'.repeat(50_000_000)))
    await using other = await startUpstream(replies('There.'))
    await using backend = pool({ upstreams: [openai(one.url), openai(other.url, { name: 'second' })] })
    expect(await backend.ask(call())).toMatchObject({ status: 200, from: 'second' })
    expect(await one.requests[0]?.over).toBe('hung up')
  })

  it('are chosen by the model, each under the name it knows', async () => {
    await using one = await startUpstream()
    await using other = await startUpstream()
    await using backend = pool({
      upstreams: [
        openai(one.url, { models: ['gpt-*', 'o3'], rename: { 'gpt-5': 'gpt-5-2026' } }),
        openai(other.url, { name: 'second', models: ['llama', 'gpt-oss'] }),
      ],
    })
    const from: string[] = []
    for (const model of ['gpt-5', 'o3', 'llama', 'gpt-oss'])
      from.push((await backend.ask(call({ body: { model } }))).from)
    expect(from).toEqual(['first', 'first', 'second', 'first'])
    expect([one, other].map(({ requests }) => requests.map(({ body }) => body.model))).toEqual([
      ['gpt-5-2026', 'o3', 'gpt-oss'],
      ['llama'],
    ])
    for (const model of ['o3-mini', 'claude', '']) {
      expect(() => backend.ask(call({ body: { model } }))).toThrow(
        expect.objectContaining({ status: 404, code: 'model_not_found', param: 'model' }),
      )
    }
  })

  it('know a model by another name only if it was given one, whatever objects have by themselves', async () => {
    await using upstream = await startUpstream()
    await using backend = pool({ upstreams: [openai(upstream.url, { rename: { a: 'b' } })] })
    for (const model of ['a', 'constructor', '__proto__']) await textOf(await backend.ask(call({ body: { model } })))
    expect(upstream.requests.map(({ body }) => body.model)).toEqual(['b', 'constructor', '__proto__'])
  })

  it('are chosen by the protocol, and asked at its address', async () => {
    await using upstream = await startUpstream()
    const anthropic: UpstreamOptions = { name: 'claude', base: upstream.origin, protocol: 'anthropic', key: 'sk-ant' }
    await using backend = pool({ upstreams: [anthropic, openai(upstream.url, { key: 'sk-open' })] })
    for (const dialect of ['chat', 'responses', 'messages', 'count_tokens', 'embeddings'] as const)
      await textOf(await backend.ask(call({ dialect })))
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

  it('are asked for messages only where nobody is there for them, or the model is theirs by name', async () => {
    await using one = await startUpstream()
    await using other = await startUpstream()
    const claude = (models?: string[]): UpstreamOptions => ({
      name: 'claude',
      base: other.origin,
      protocol: 'anthropic',
      models,
    })
    const from = async (upstreams: readonly UpstreamOptions[], model: string): Promise<string> => {
      await using backend = pool({ upstreams })
      const answer = await backend.ask(
        call({ dialect: 'messages', body: { model }, headers: { 'x-api-key': 'sk-ant' } }),
      )
      await textOf(answer)
      return answer.from
    }
    expect(await from([openai(one.url), claude()], 'claude-x')).toBe('claude')
    expect(await from([openai(one.url, { models: ['claude-*'] }), claude()], 'claude-x')).toBe('claude')
    expect(one.requests).toEqual([])
    expect(await from([openai(one.url, { models: ['gpt-*'] }), claude(['claude-*'])], 'gpt-5')).toBe('first')
    expect(await from([openai(one.url)], 'claude-x')).toBe('first')
    await expect(from([openai(one.url), claude(['claude-*'])], 'gpt-5')).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
    })
  })

  it('list their models to clients of their own protocol, and get no key that was meant for another', async () => {
    await using one = await startUpstream()
    await using other = await startUpstream()
    const claude: UpstreamOptions = { name: 'claude', base: other.origin, protocol: 'anthropic' }
    await using backend = pool({ upstreams: [openai(one.url), claude] })
    const signal = new AbortController().signal
    const list = async (headers: Call['headers']): Promise<string> =>
      textOf(await backend.models({ headers, isGuarded: false, signal }))
    await list({ authorization: 'Bearer sk-client' })
    await list({ 'x-api-key': 'sk-ant' })
    await list({ authorization: 'Bearer oauth', 'anthropic-version': '2023-06-01' })
    expect(one.requests.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      ['/v1/models', 'Bearer sk-client'],
    ])
    expect(other.requests.map(({ path, headers }) => [path, headers['x-api-key'] ?? headers.authorization])).toEqual([
      ['/v1/models', 'sk-ant'],
      ['/v1/models', 'Bearer oauth'],
    ])
    await using sole = pool({ upstreams: [openai(one.url)] })
    await textOf(await sole.models({ headers: { 'x-api-key': 'sk-ant' }, isGuarded: false, signal }))
    expect(JSON.stringify(one.requests)).not.toContain('sk-ant')
  })

  it('get their own keys: a client’s goes to the first of them and to nobody else', async () => {
    await using one = await startUpstream(refuses(500))
    await using other = await startUpstream()
    await using backend = pool({
      upstreams: [openai(one.url, { key: 'sk-one' }), openai(other.url, { name: 'second', key: 'sk-other' })],
    })
    await backend.ask(call({ headers: { authorization: 'Bearer sk-client' } }))
    await backend.ask(call({ headers: { authorization: 'Bearer sk-client' }, isGuarded: true }))
    expect(one.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer sk-client', 'Bearer sk-one'])
    expect(other.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer sk-other', 'Bearer sk-other'])
  })
})

describe('a key that is refused', () => {
  const body = '{"error":{"message":"Incorrect API key provided: sk-ho***se. Organization org-HOUSE"}}'
  const told = {
    status: 502,
    type: 'upstream_error',
    message: 'The upstream refused the key it was given.',
    headers: { 'x-should-retry': 'false' },
  }

  for (const status of [401, 403]) {
    it(`is told about in the server's own words (${status}) only if it is the client's own`, async () => {
      await using upstream = await startUpstream(refuses(status, {}, body))
      await using backend = pool({ upstreams: [openai(upstream.url, { key: 'sk-house' })] })
      await expect(backend.ask(call())).rejects.toMatchObject(told)
      expect(backend.states()).toEqual([{ name: 'first', state: 'failing' }])
      const client = { authorization: 'Bearer sk-client' }
      await expect(backend.ask(call({ headers: client, isGuarded: true }))).rejects.toMatchObject(told)
      expect(await textOf(await backend.ask(call({ headers: client })))).toBe(body)
      expect([upstream.requests.length, backend.waits, backend.states()]).toEqual([
        3,
        [],
        [{ name: 'first', state: 'ok' }],
      ])
      await using keyless = pool({ upstreams: [openai(upstream.url)] })
      expect(await textOf(await keyless.ask(call()))).toBe(body)
      await expect(keyless.ask(call({ isGuarded: true }))).rejects.toMatchObject(told)
    })
  }

  it('by a server that stands in for another is not told about either', async () => {
    await using one = await startUpstream(refuses(503))
    await using other = await startUpstream(refuses(401, {}, body))
    await using backend = pool({ upstreams: [openai(one.url), openai(other.url, { name: 'second', key: 'sk-house' })] })
    await expect(backend.ask(call({ headers: { authorization: 'Bearer sk-client' } }))).rejects.toMatchObject(told)
  })
})

describe('time', () => {
  it('is not given twice to the only one who can answer', async () => {
    await using upstream = await startUpstream({ does: 'hang' })
    await using backend = pool({ upstreams: [openai(upstream.url)], patience: { first: 50 } })
    await expect(backend.ask(call())).rejects.toMatchObject({ code: 'timeout' })
    expect([await upstream.requests[0]?.over, upstream.requests.length, backend.states()]).toEqual([
      'hung up',
      1,
      [{ name: 'first', state: 'failing' }],
    ])
  })

  it('runs out between two pieces of an answer', async () => {
    await using upstream = await startUpstream({ does: 'stall', pieces: ['Once'] })
    await using backend = pool({ upstreams: [openai(upstream.url)], patience: { idle: 50 } })
    await expect(textOf(await backend.ask(call()))).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('did not answer in time'),
    })
    expect(await upstream.requests[0]?.over).toBe('hung up')
  })

  it('runs out for an answer that goes on and on', async () => {
    await using upstream = await startUpstream({ does: 'babble', pieces: ['Once'] })
    await using backend = pool({ upstreams: [openai(upstream.url)], patience: { total: 50 } })
    await expect(textOf(await backend.ask(call()))).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('in 50 ms'),
    })
    expect(await upstream.requests[0]?.over).toBe('hung up')
  })
})

describe('a client that hangs up', () => {
  it('is not asked for while its model server thinks', async () => {
    await using upstream = await startUpstream({ does: 'hang' })
    await using other = await startUpstream()
    await using backend = pool({ upstreams: [openai(upstream.url), openai(other.url, { name: 'second' })] })
    const hangUp = new AbortController()
    const answer = backend.ask(call({ signal: hangUp.signal })).catch((error: unknown) => error)
    while (upstream.requests.length === 0) await new Promise(setImmediate)
    hangUp.abort()
    expect(await answer).toMatchObject({ name: 'AbortError' })
    expect([await upstream.requests[0]?.over, other.requests, backend.states()[0]?.state]).toEqual([
      'hung up',
      [],
      'ok',
    ])
  })

  it('is not asked for while it would be waited to ask again', async () => {
    await using upstream = await startUpstream(refuses(500))
    const hangUp = new AbortController()
    const pause = async (_: number, signal: AbortSignal): Promise<void> => {
      hangUp.abort()
      signal.throwIfAborted()
    }
    await using backend = pool({ upstreams: [openai(upstream.url)], pause })
    await expect(backend.ask(call({ signal: hangUp.signal }))).rejects.toMatchObject({ name: 'AbortError' })
    expect(upstream.requests).toHaveLength(1)
  })
})
