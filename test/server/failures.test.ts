import { connect } from 'node:net'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { thread } from '../../src/profiles/thread.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { wordedReply } from '../providers/protocols.ts'
import { type Behaviour, closedPort, refuses, replies, sends, startUpstream } from '../providers/upstream.ts'
import { all, startServer, user } from './start.ts'

type Wrong = {
  readonly status: number
  readonly error: {
    readonly message: string
    readonly type: string
    readonly param: string | null
    readonly code: string
  }
}

/** A model server is asked a single time: how it is asked again is told in upstreams/. */
const once = { tries: 1 }

/** What a client is told when the upstream behaves like this, and what is stored then. */
async function told(behaviour: Behaviour | string, stream: boolean): Promise<Wrong & { said: string[] }> {
  await using upstream = await startUpstream(typeof behaviour === 'string' ? undefined : behaviour)
  const address = typeof behaviour === 'string' ? behaviour : upstream.url
  await using server = await startServer({ upstream: address, patience: { first: 150, idle: 150 }, persistence: once })
  const response = await server.post('demo:me', { messages: [user('Hello')], stream })
  const { error } = (await response.json()) as Wrong
  const where = address.replace('/v1', '')
  return {
    status: response.status,
    error: { ...error, message: error.message.replace(where, 'UPSTREAM') },
    said: await server.said('demo:me'),
  }
}

const badGateway = (message: string) => ({
  status: 502,
  error: { message, type: 'upstream_error', param: null, code: 'upstream' },
  said: ['user: Hello'],
})
const check = 'Check that the address is that of a model server.'

describe('a model server that fails', () => {
  for (const stream of [false, true]) {
    const how = stream ? ', asked for a stream' : ''

    it(`is down${how}`, async () => {
      const message =
        'No answer from UPSTREAM/v1/chat/completions (ECONNREFUSED). Is the server running? Check --upstream or OPENAI_BASE_URL.'
      expect(await told(await closedPort(), stream)).toEqual(badGateway(message))
    })

    it(`sends garbage${how}`, async () => {
      const at = 'UPSTREAM/v1/chat/completions sent'
      expect(await told(sends('text/html; charset=utf-8', '<html>Welcome</html>'), stream)).toEqual(
        badGateway(`${at} a web page instead of a reply. ${check}`),
      )
      expect(await told(sends('application/json', '{"choices": ['), stream)).toEqual(
        badGateway(`${at} something that is not JSON instead of a reply. ${check}`),
      )
      expect(await told(sends('application/json', ''), stream)).toEqual(
        badGateway(`${at} something that is not JSON instead of a reply. ${check}`),
      )
      expect(await told(sends('application/json', '{"status":"ok"}'), stream)).toEqual(
        badGateway(`${at} JSON of another kind instead of a reply. ${check}`),
      )
      expect(await told(sends('application/json', '{"choices":[{"message":null}]}'), stream)).toEqual(
        badGateway(`${at} JSON of another kind instead of a reply. ${check}`),
      )
      expect(await told(sends('text/event-stream', 'data: rubbish\n\n'), stream)).toEqual(
        badGateway(`${at} an event that is not JSON instead of a reply. ${check}`),
      )
    })

    it(`says that all is well and reports an error${how}`, async () => {
      const message =
        'UPSTREAM/v1/chat/completions reported an error (overloaded_error) instead of going on. Try again later.'
      expect(
        await told(sends('application/json', '{"error":{"type":"overloaded_error","message":"secret"}}'), stream),
      ).toEqual(badGateway(message))
    })

    it(`sends elsewhere${how}`, async () => {
      const message =
        'UPSTREAM/v1/chat/completions sends elsewhere (HTTP 302). Give the final address: check --upstream or OPENAI_BASE_URL.'
      expect(await told(refuses(302, { location: 'http://example.com/' }), stream)).toEqual(badGateway(message))
    })

    it(`ends a stream before it has begun${how}`, async () => {
      const message =
        'The reply of UPSTREAM/v1/chat/completions ended early: the stream closed before it was complete. Try again.'
      expect(await told(sends('text/event-stream', ''), stream)).toEqual(badGateway(message))
    })

    it(`never answers${how}`, async () => {
      const error = {
        message: 'UPSTREAM/v1/chat/completions did not answer in time. Try again, or ask for less.',
        type: 'timeout_error',
        param: null,
        code: 'timeout',
      }
      expect(await told({ does: 'hang' }, stream)).toEqual({ status: 504, error, said: ['user: Hello'] })
    })

    it(`refuses in its own words, which the client gets unchanged${how}`, async () => {
      const body =
        '{"error": {"message":"No.","type":"invalid_request_error","param":"model","code":"model_not_found"},  "extra": 1}'
      for (const status of [400, 401, 404, 429, 500, 503]) {
        await using upstream = await startUpstream(
          refuses(status, { 'retry-after': '7', 'x-ratelimit-remaining-requests': '0', 'set-cookie': 'a=1' }, body),
        )
        await using server = await startServer({ upstream: upstream.url, persistence: once })
        const response = await server.post('demo:me', { messages: [user('Hello')], stream })
        expect([response.status, await response.text()]).toEqual([status, body])
        expect(response.headers.get('retry-after')).toBe('7')
        expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('0')
        expect(response.headers.get('set-cookie')).toBeNull()
        expect(response.headers.get('x-request-id')).toMatch(/^req_/)
        expect(await server.said('demo:me')).toEqual(['user: Hello'])
      }
    })
  }

  it("is seen by an OpenAI client as OpenAI's own errors are", async () => {
    await using server = await startServer({ upstream: await closedPort(), persistence: once })
    const failed = await server
      .client('demo:me')
      .chat.completions.create({ model: 'm', messages: [user('Hello')] })
      .catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(OpenAI.InternalServerError)
    expect(failed).toMatchObject({
      status: 502,
      code: 'upstream',
      type: 'upstream_error',
      requestID: expect.stringMatching(/^req_/),
    })
  })

  it('gives no receipt for an answer that there is not', async () => {
    for (const behaviour of [
      refuses(429),
      refuses(500),
      { does: 'cut' },
      sends('application/json', '{}'),
      replies('Hello'),
    ] as const) {
      await using upstream = await startUpstream(behaviour)
      await using server = await startServer({ upstream: upstream.url, persistence: once })
      const response = await server.post('demo:me', { messages: [user('Hello')] })
      expect([response.status, response.headers.has('x-threadkeep-receipt')]).toEqual([
        response.status,
        response.status === 200,
      ])
    }
  })

  it('is told with the id of its request, though that be the name of a header', async () => {
    await using upstream = await startUpstream([refuses(400), replies('Hello')])
    await using server = await startServer({ upstream: upstream.url, persistence: once })
    const headers = { 'x-request-id': 'x-threadkeep-receipt', 'content-type': 'application/json' }
    const lost = await fetch(`${server.url}/nowhere`, { headers })
    expect([lost.status, lost.headers.get('x-request-id')]).toEqual([404, 'x-threadkeep-receipt'])
    const body = JSON.stringify({ model: 'm', messages: [user('Hello')] })
    const refused = await fetch(`${server.url}/v1/demo:me/chat/completions`, { method: 'POST', headers, body })
    const told = ['x-request-id', 'x-threadkeep-memory', 'x-threadkeep-receipt'].map((name) =>
      refused.headers.get(name),
    )
    expect([refused.status, told]).toEqual([400, ['x-threadkeep-receipt', 'on', null]])
    expect((await server.post('demo:me', { messages: [user('Hello')] })).status).toBe(200)
    expect(server.faults).toEqual([])
  })

  it('refuses the key of the house in words that name it: the client gets others', async () => {
    await using upstream = await startUpstream(
      refuses(401, {}, '{"error":{"message":"Incorrect API key provided: sk-ho***se. Organization org-HOUSE"}}'),
    )
    await using server = await startServer({ upstream: upstream.url, apiKey: 'sk-house', persistence: once })
    const response = await server.post('demo:me', { messages: [user('Hello')] })
    const error = {
      message: 'The upstream refused the key it was given.',
      type: 'upstream_error',
      param: null,
      code: 'upstream',
    }
    expect([response.status, response.headers.get('x-should-retry'), await response.json()]).toEqual([
      502,
      'false',
      { error },
    ])
    expect(server.faults).toEqual([])
  })

  it('is asked again with the same request, which is stored once', async () => {
    await using upstream = await startUpstream([refuses(500), replies('There.')])
    await using server = await startServer({ upstream: upstream.url, persistence: once })
    await server.post('demo:me', { messages: [user('Hello')] })
    await server.post('demo:me', { messages: [user('Hello')] })
    expect(await server.said('demo:me')).toEqual(['user: Hello', 'assistant: There.'])
  })

  for (const [does, message] of [
    [
      'drop',
      'The connection to UPSTREAM broke off in the middle of the reply. Try again; if it is your own server, look at its log.',
    ],
    ['stop', 'The reply of UPSTREAM ended early: the stream closed before it was complete. Try again.'],
    ['stall', 'UPSTREAM did not answer in time. Try again, or ask for less.'],
  ] as const) {
    it(`in the middle of a stream (${does}) is reported inside the stream, and the half of the reply is not kept`, async () => {
      await using upstream = await startUpstream({ does, pieces: ['Once', ' upon'] })
      await using server = await startServer({ upstream: upstream.url, patience: { idle: 150 } })
      const response = await server.post('demo:me', { messages: [user('Hello')], stream: true })
      const text = (await response.text()).replaceAll(`${upstream.url}/chat/completions`, 'UPSTREAM')
      const [type, code] = does === 'stall' ? ['timeout_error', 'timeout'] : ['upstream_error', 'upstream']
      const event = `data: ${JSON.stringify({ error: { message, type, param: null, code } })}\n\n`
      expect([response.status, text]).toEqual([200, wordedReply('openai', ['Once', ' upon'], false) + event])
      expect(await server.said('demo:me')).toEqual(['user: Hello'])
      const stream = await server
        .client('demo:me')
        .chat.completions.create({ model: 'm', messages: [user('Hello')], stream: true })
      await expect(all(stream)).rejects.toMatchObject({ code, error: { type } })
    })
  }

  it('in the middle of a line leaves no half line before the report', async () => {
    const whole = wordedReply('openai', ['Once'], false)
    await using upstream = await startUpstream(sends('text/event-stream', `${whole}data: {"choices":[{"delta":{"conte`))
    await using server = await startServer({ upstream: upstream.url })
    const text = await (await server.post('demo:me', { messages: [user('Hello')], stream: true })).text()
    expect(text.startsWith(`${whole}data: {"error":{`)).toBe(true)
    const stream = await server
      .client('demo:me')
      .chat.completions.create({ model: 'm', messages: [user('Hello')], stream: true })
    await expect(all(stream)).rejects.toMatchObject({ code: 'upstream' })
  })

  it('with an error of its own inside a stream is passed on as it is', async () => {
    const body = `${wordedReply('openai', ['Once'], false)}data: {"error":{"message":"Overloaded","code":"busy"}}\n\n`
    await using upstream = await startUpstream(sends('text/event-stream', body))
    await using server = await startServer({ upstream: upstream.url })
    const response = await server.post('demo:me', { messages: [user('Hello')], stream: true })
    expect(await response.text()).toBe(body)
    expect(await server.said('demo:me')).toEqual(['user: Hello'])
  })

  it('after the last word has done its work', async () => {
    for (const end of ['', 'data: [DONE]', 'data: [DONE]\n', ': bye\n\n']) {
      await using upstream = await startUpstream(
        sends('text/event-stream', wordedReply('openai', ['Done.'], true).replace('data: [DONE]\n\n', end)),
      )
      await using server = await startServer({ upstream: upstream.url })
      const response = await server.post('demo:me', { messages: [user('Hello')], stream: true })
      expect(await response.text()).not.toContain('"error"')
      expect(await server.said('demo:me')).toEqual(['user: Hello', 'assistant: Done.'])
    }
  })
})

describe('a client', () => {
  for (const does of ['stall', 'hang'] as const) {
    it(`that hangs up ends the request to the model server at once (${does}), and the half of the reply is not kept`, async () => {
      await using upstream = await startUpstream({ does, pieces: ['Once', ' upon'] })
      await using server = await startServer({ upstream: upstream.url })
      const hangUp = new AbortController()
      const create = server
        .client('demo:me')
        .chat.completions.create({ model: 'm', messages: [user('Hello')], stream: true }, { signal: hangUp.signal })
      if (does === 'stall') await (await create)[Symbol.asyncIterator]().next()
      else while (upstream.requests.length === 0) await new Promise(setImmediate)
      hangUp.abort()
      await create.catch(() => undefined)
      expect(await upstream.requests[0]?.over).toBe('hung up')
      expect(await server.said('demo:me')).toEqual(['user: Hello'])
      expect(server.faults).toEqual([])
    })
  }

  it('that sends what cannot be understood is told what is wrong', async () => {
    await using server = await startServer({ largestBody: 10_000 })
    const wrong = async (body: unknown, headers = {}) => {
      const response = await server.post('demo:me', body, headers)
      const { error } = (await response.json()) as Wrong
      expect(error.type).toBe('invalid_request_error')
      return [response.status, error.code, error.param, error.message]
    }
    const needed =
      'messages is missing: it must be a list with at least one message such as { "role": "user", "content": "Hello" }.'
    expect(await wrong('{"messages": [')).toEqual([400, 'invalid_json', null, 'The body is not valid JSON in UTF-8.'])
    expect(await wrong('')).toEqual([400, 'invalid_json', null, 'The body is not valid JSON in UTF-8.'])
    expect(await wrong('[1]')).toEqual([
      400,
      'invalid_body',
      null,
      'The body must be a JSON object such as { "model": "…", "messages": [ … ] }.',
    ])
    for (const body of [{}, { messages: [] }, { messages: 'Hello' }, { messages: null }])
      expect(await wrong(body)).toEqual([400, 'missing_messages', 'messages', needed])
    expect(await wrong({ messages: [user('Hi'), { role: 'wizard', content: 'Hello' }] })).toEqual([
      400,
      'bad-message',
      'messages[1].role',
      'messages[1].role is "wizard"; it must be one of system, developer, user, assistant, tool.',
    ])
    expect(await wrong({ messages: [{ role: 'user', content: 5 }] })).toEqual([
      400,
      'bad-message',
      'messages[0].content',
      'messages[0].content must be text, null or a list of parts such as { type: "text", text: "Hello" }.',
    ])
    expect(await wrong({ messages: [user('x'.repeat(20_000))] })).toEqual([
      413,
      'body_too_large',
      null,
      'The body is larger than 10000 bytes.',
    ])
    expect(await wrong({ messages: [user('x'.repeat(2_000_000))] })).toEqual([
      413,
      'body_too_large',
      null,
      'The body is larger than 10000 bytes.',
    ])
    expect(await wrong({ messages: [user('Hi')] }, { 'content-type': 'text/plain' })).toEqual([
      415,
      'unsupported_media_type',
      null,
      'The body must be JSON, sent with the header content-type: application/json.',
    ])
    expect(await wrong('{}', { 'content-encoding': 'gzip' })).toEqual([
      415,
      'unsupported_media_type',
      null,
      'The body has content-encoding: gzip. Send it uncompressed.',
    ])
    expect(await server.said('demo:me')).toEqual([])
  })

  it('that nests its request deeper than anybody does is told so', async () => {
    await using server = await startServer()
    const nested = `{"messages":[{"role":"user","content":"Hi"}],"tools":${'['.repeat(50_000)}${']'.repeat(50_000)}}`
    const response = await server.post('demo:me', nested)
    const message = 'The body is nested deeper than 64 levels. Send deep data as text.'
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: { message, type: 'invalid_request_error', param: null, code: 'too_deep' } },
    ])
    expect(server.faults).toEqual([])
  })

  it('that sends bytes which are no text is told so', async () => {
    await using server = await startServer()
    const body = Buffer.concat([
      Buffer.from('{"messages":[{"role":"user","content":"'),
      Buffer.of(0xff, 0xfe),
      Buffer.from('"}]}'),
    ])
    const response = await fetch(`${server.url}/v1/demo:me/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect(response.status).toBe(400)
  })

  it('that breaks off in the middle of its request leaves nothing behind', async () => {
    await using server = await startServer()
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.write(
      'POST /v1/demo:me/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"messages": [',
    )
    await new Promise<void>((ended) => socket.end(ended))
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
    expect(await server.said('demo:me')).toEqual([])
    expect(server.faults).toEqual([])
  })

  it('whose session is full is told so, once', async () => {
    await using server = await startServer({
      memory: { profile: { ...thread, lifetime: { messages: 2, whenFull: 'refuse' } } },
    })
    await server.post('demo:me', { messages: [user('one')] })
    const response = await server.post('demo:me', { messages: [user('two')] })
    expect([response.status, response.headers.get('x-should-retry'), await response.json()]).toEqual([
      429,
      'false',
      {
        error: {
          message:
            'Session demo:me holds 2 messages and its profile allows 2. Start a new session, or raise lifetime.messages.',
          type: 'rate_limit_error',
          param: 'lifetime.messages',
          code: 'full',
        },
      },
    ])
  })

  it('gets its reply even if there is no room left to keep it', async () => {
    await using server = await startServer({
      memory: { profile: { ...thread, lifetime: { messages: 3, whenFull: 'refuse' } } },
    })
    await server.post('demo:me', { messages: [user('one')] })
    expect((await server.post('demo:me', { messages: [user('two')] })).status).toBe(200)
    expect(server.faults).toEqual([
      'full: Session demo:me holds 3 messages and its profile allows 3. Start a new session, or raise lifetime.messages.',
    ])
  })

  it('that deserves an explanation nobody foresaw gets none of the insides', async () => {
    await using server = await startServer()
    await server.memory.close()
    const closed = await server.post('demo:me', { messages: [user('Hello')] })
    expect([closed.status, ((await closed.json()) as Wrong).error.code]).toEqual([503, 'closed'])
    const store = ramStore()
    const broken = { ...store, commit: () => Promise.reject(new RangeError('There is no place for "my secret".')) }
    await using fresh = await startServer({ memory: { store: broken } })
    const response = await fresh.post('demo:me', { messages: [user('my secret')] })
    expect([response.status, await response.json()]).toEqual([
      500,
      {
        error: {
          message: 'Internal error. The server log has details under this x-request-id.',
          type: 'server_error',
          param: null,
          code: 'internal',
        },
      },
    ])
    expect(fresh.faults).toHaveLength(1)
    expect(fresh.faults[0]).toMatch(/^RangeError at /)
    expect(fresh.faults[0]).not.toContain('secret')
  })
})

describe('closing', () => {
  it('lets a stream finish and takes no new request', async () => {
    await using upstream = await startUpstream({ does: 'reply', pieces: ['One', ' two', ' three'], split: true })
    await using server = await startServer({ upstream: upstream.url })
    const response = await server.post('demo:me', { messages: [user('Count')], stream: true })
    const closed = server.close()
    await expect(fetch(`${server.url}/healthz`)).rejects.toThrow()
    expect(await response.text()).toBe(wordedReply('openai', ['One', ' two', ' three'], true))
    await closed
  })

  it('ends what does not finish in time', async () => {
    await using upstream = await startUpstream({ does: 'stall', pieces: ['One'] })
    await using server = await startServer({ upstream: upstream.url })
    const response = await server.post('demo:me', { messages: [user('Count')], stream: true })
    await server.close(50)
    await expect(response.text()).rejects.toThrow()
    expect(await upstream.requests[0]?.over).toBe('hung up')
  })
})
