import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { thread } from '../../src/profiles/thread.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { startUpstream } from '../providers/upstream.ts'
import { startServer, user } from './start.ts'

type ErrorResponse = {
  readonly status: number
  readonly error: {
    readonly message: string
    readonly type: string
    readonly param: string | null
    readonly code: string
  }
}

describe('client requests', () => {
  for (const does of ['stall', 'hang'] as const) {
    it(`aborted (upstream: ${does}) › abort the upstream request, and the partial reply is not stored`, async () => {
      await using upstream = await startUpstream({ does, pieces: ['Once', ' upon'] })
      await using server = await startServer({ upstream: upstream.url })
      const abortController = new AbortController()
      const create = server
        .client('demo:me')
        .chat.completions.create(
          { model: 'm', messages: [user('Hello')], stream: true },
          { signal: abortController.signal },
        )
      if (does === 'stall') await (await create)[Symbol.asyncIterator]().next()
      else while (upstream.requests.length === 0) await new Promise(setImmediate)
      abortController.abort()
      await create.catch(() => undefined)
      expect(await upstream.requests[0]?.outcome).toBe('hung up')
      expect(await server.transcriptLines('demo:me')).toEqual(['user: Hello'])
      expect(server.faults).toEqual([])
    })
  }

  it('invalid › are refused with the reason', async () => {
    await using server = await startServer({ maxBodyBytes: 10_000 })
    const errorOf = async (body: unknown, headers = {}) => {
      const response = await server.postChat('demo:me', body, headers)
      const { error } = (await response.json()) as ErrorResponse
      expect(error.type).toBe('invalid_request_error')
      return [response.status, error.code, error.param, error.message]
    }
    const needed =
      'messages is missing: it must be a list with at least one message such as { "role": "user", "content": "Hello" }.'
    expect(await errorOf('{"messages": [')).toEqual([400, 'invalid_json', null, 'The body is not valid JSON in UTF-8.'])
    expect(await errorOf('')).toEqual([400, 'invalid_json', null, 'The body is not valid JSON in UTF-8.'])
    expect(await errorOf('[1]')).toEqual([
      400,
      'invalid_body',
      null,
      'The body must be a JSON object such as { "model": "…", "messages": [ … ] }.',
    ])
    for (const body of [{}, { messages: [] }, { messages: 'Hello' }, { messages: null }])
      expect(await errorOf(body)).toEqual([400, 'missing_messages', 'messages', needed])
    expect(await errorOf({ messages: [user('Hi'), { role: 'wizard', content: 'Hello' }] })).toEqual([
      400,
      'bad-message',
      'messages[1].role',
      'messages[1].role is "wizard"; it must be one of system, developer, user, assistant, tool.',
    ])
    // The beginning of a key is not recognised as one.
    const key = `gh${'p_'}${'aB3dE6'.repeat(6)}`
    for (const role of [key, `sk${'-ant-'}${'aB3-dE6_'.repeat(12)}`, `${key} ${key}`, { [key]: key }])
      expect(JSON.stringify(await errorOf({ messages: [{ role, content: 'Hello' }] }))).not.toMatch(/aB3/)
    expect(await errorOf({ messages: [{ role: 'user', content: 5 }] })).toEqual([
      400,
      'bad-message',
      'messages[0].content',
      'messages[0].content must be text, null or a list of parts such as { type: "text", text: "Hello" }.',
    ])
    expect(await errorOf({ messages: [user('x'.repeat(20_000))] })).toEqual([
      413,
      'body_too_large',
      null,
      'The body is larger than 10000 bytes.',
    ])
    expect(await errorOf({ messages: [user('x'.repeat(2_000_000))] })).toEqual([
      413,
      'body_too_large',
      null,
      'The body is larger than 10000 bytes.',
    ])
    expect(await errorOf({ messages: [user('Hi')] }, { 'content-type': 'text/plain' })).toEqual([
      415,
      'unsupported_media_type',
      null,
      'The body must be JSON, sent with the header content-type: application/json.',
    ])
    expect(await errorOf('{}', { 'content-encoding': 'gzip' })).toEqual([
      415,
      'unsupported_media_type',
      null,
      'The body has content-encoding: gzip. Send it uncompressed.',
    ])
    expect(await server.transcriptLines('demo:me')).toEqual([])
  })

  it('nested too deeply › are refused', async () => {
    await using server = await startServer()
    const nested = `{"messages":[{"role":"user","content":"Hi"}],"tools":${'['.repeat(50_000)}${']'.repeat(50_000)}}`
    const response = await server.postChat('demo:me', nested)
    const message = 'The body is nested deeper than 64 levels. Send deep data as text.'
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: { message, type: 'invalid_request_error', param: null, code: 'too_deep' } },
    ])
    expect(server.faults).toEqual([])
  })

  it('with invalid UTF-8 › are refused', async () => {
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

  it('broken off › leave nothing behind', async () => {
    await using server = await startServer()
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.write(
      'POST /v1/demo:me/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"messages": [',
    )
    await new Promise<void>((ended) => socket.end(ended))
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
    expect(await server.transcriptLines('demo:me')).toEqual([])
    expect(server.faults).toEqual([])
  })

  it('to a full session › are refused without retries', async () => {
    await using server = await startServer({
      memory: { profile: { ...thread, lifetime: { messages: 2, whenFull: 'refuse' } } },
    })
    await server.postChat('demo:me', { messages: [user('one')] })
    const response = await server.postChat('demo:me', { messages: [user('two')] })
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

  it('to a session without space for the reply › get their reply', async () => {
    await using server = await startServer({
      memory: { profile: { ...thread, lifetime: { messages: 3, whenFull: 'refuse' } } },
    })
    await server.postChat('demo:me', { messages: [user('one')] })
    expect((await server.postChat('demo:me', { messages: [user('two')] })).status).toBe(200)
    expect(server.faults).toEqual([
      'full: Session demo:me holds 3 messages and its profile allows 3. Start a new session, or raise lifetime.messages.',
    ])
  })

  it('with an unexpected error › get no internal details', async () => {
    await using server = await startServer()
    await server.memory.close()
    const closed = await server.postChat('demo:me', { messages: [user('Hello')] })
    expect([closed.status, ((await closed.json()) as ErrorResponse).error.code]).toEqual([503, 'closed'])
    const store = ramStore()
    const broken = { ...store, commit: () => Promise.reject(new RangeError('There is no place for "my secret".')) }
    await using fresh = await startServer({ memory: { store: broken } })
    const response = await fresh.postChat('demo:me', { messages: [user('my secret')] })
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
