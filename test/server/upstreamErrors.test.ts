import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { encodeEventStream } from '../providers/protocols.ts'
import {
  type Behaviour,
  closedPortUrl,
  replyWith,
  respondWithStatus,
  sendRaw,
  startUpstream,
} from '../providers/upstream.ts'
import { collectAll, startServer, user } from './start.ts'

type ErrorResponse = {
  readonly status: number
  readonly error: {
    readonly message: string
    readonly type: string
    readonly param: string | null
    readonly code: string
  }
}

/** One attempt only; retries are tested in upstreams/. */
const singleAttempt = { tries: 1 }

/** The error response for an upstream behaviour, and the stored transcript. */
async function errorFor(
  behaviour: Behaviour | string,
  stream: boolean,
): Promise<ErrorResponse & { transcript: string[] }> {
  await using upstream = await startUpstream(typeof behaviour === 'string' ? undefined : behaviour)
  const address = typeof behaviour === 'string' ? behaviour : upstream.url
  await using server = await startServer({
    upstream: address,
    retries: singleAttempt,
    // Short only where the upstream never answers: a busy machine must not cause a timeout.
    ...(typeof behaviour !== 'string' && behaviour.does === 'hang' ? { timeouts: { firstByte: 150, idle: 150 } } : {}),
  })
  const response = await server.postChat('demo:me', { messages: [user('Hello')], stream })
  const { error } = (await response.json()) as ErrorResponse
  const where = address.replace('/v1', '')
  return {
    status: response.status,
    error: { ...error, message: error.message.replace(where, 'UPSTREAM') },
    transcript: await server.transcriptLines('demo:me'),
  }
}

const badGateway = (message: string) => ({
  status: 502,
  error: { message, type: 'upstream_error', param: null, code: 'upstream' },
  transcript: ['user: Hello'],
})

const checkAddress = 'Check that the address is that of a model server.'

describe('a failing upstream', () => {
  for (const stream of [false, true]) {
    const suffix = stream ? ', asked for a stream' : ''

    it(`down${suffix} › 502`, async () => {
      const message =
        'No answer from UPSTREAM/v1/chat/completions (ECONNREFUSED). Is the server running? Check --upstream or OPENAI_BASE_URL.'
      expect(await errorFor(await closedPortUrl(), stream)).toEqual(badGateway(message))
    })

    it(`an invalid response${suffix} › 502`, async () => {
      const at = 'UPSTREAM/v1/chat/completions sent'
      expect(await errorFor(sendRaw('text/html; charset=utf-8', '<html>Welcome</html>'), stream)).toEqual(
        badGateway(`${at} a web page instead of a reply. ${checkAddress}`),
      )
      expect(await errorFor(sendRaw('application/json', '{"choices": ['), stream)).toEqual(
        badGateway(`${at} something that is not JSON instead of a reply. ${checkAddress}`),
      )
      expect(await errorFor(sendRaw('application/json', ''), stream)).toEqual(
        badGateway(`${at} something that is not JSON instead of a reply. ${checkAddress}`),
      )
      expect(await errorFor(sendRaw('application/json', '{"status":"ok"}'), stream)).toEqual(
        badGateway(`${at} JSON of another kind instead of a reply. ${checkAddress}`),
      )
      expect(await errorFor(sendRaw('application/json', '{"choices":[{"message":null}]}'), stream)).toEqual(
        badGateway(`${at} JSON of another kind instead of a reply. ${checkAddress}`),
      )
      expect(await errorFor(sendRaw('text/event-stream', 'data: rubbish\n\n'), stream)).toEqual(
        badGateway(`${at} an event that is not JSON instead of a reply. ${checkAddress}`),
      )
    })

    it(`an error object with status 200${suffix} › 502`, async () => {
      const message =
        'UPSTREAM/v1/chat/completions reported an error (overloaded_error) instead of going on. Try again later.'
      expect(
        await errorFor(sendRaw('application/json', '{"error":{"type":"overloaded_error","message":"secret"}}'), stream),
      ).toEqual(badGateway(message))
    })

    it(`a redirect${suffix} › 502`, async () => {
      const message =
        'UPSTREAM/v1/chat/completions redirects elsewhere (HTTP 302). Give the final address: check --upstream or OPENAI_BASE_URL.'
      expect(await errorFor(respondWithStatus(302, { location: 'http://example.com/' }), stream)).toEqual(
        badGateway(message),
      )
    })

    it(`an empty stream${suffix} › 502`, async () => {
      const message =
        'The reply of UPSTREAM/v1/chat/completions ended early: the stream closed before it was complete. Try again.'
      expect(await errorFor(sendRaw('text/event-stream', ''), stream)).toEqual(badGateway(message))
    })

    it(`no response${suffix} › 504`, async () => {
      const error = {
        message: 'UPSTREAM/v1/chat/completions did not answer in time. Try again, or ask for less.',
        type: 'timeout_error',
        param: null,
        code: 'timeout',
      }
      expect(await errorFor({ does: 'hang' }, stream)).toEqual({ status: 504, error, transcript: ['user: Hello'] })
    })

    it(`an error status${suffix} › is forwarded unchanged, and a refused turn is taken back`, async () => {
      const body =
        '{"error": {"message":"No.","type":"invalid_request_error","param":"model","code":"model_not_found"},  "extra": 1}'
      for (const status of [400, 401, 404, 429, 500, 503]) {
        await using upstream = await startUpstream(
          respondWithStatus(
            status,
            { 'retry-after': '7', 'x-ratelimit-remaining-requests': '0', 'set-cookie': 'a=1' },
            body,
          ),
        )
        await using server = await startServer({ upstream: upstream.url, retries: singleAttempt })
        const response = await server.postChat('demo:me', { messages: [user('Hello')], stream })
        expect([response.status, await response.text()]).toEqual([status, body])
        expect(response.headers.get('retry-after')).toBe('7')
        expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('0')
        expect(response.headers.get('set-cookie')).toBeNull()
        expect(response.headers.get('x-request-id')).toMatch(/^req_/)
        // A turn that the upstream refused is taken back; after other failures a retry continues it.
        expect(await server.transcriptLines('demo:me')).toEqual(status < 500 ? [] : ['user: Hello'])
      }
    })
  }

  it("an OpenAI client › raises OpenAI's error classes", async () => {
    await using server = await startServer({ upstream: await closedPortUrl(), retries: singleAttempt })
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

  it('without a reply › sends no receipt header', async () => {
    for (const behaviour of [
      respondWithStatus(429),
      respondWithStatus(500),
      { does: 'cut' },
      sendRaw('application/json', '{}'),
      replyWith('Hello'),
    ] as const) {
      await using upstream = await startUpstream(behaviour)
      await using server = await startServer({ upstream: upstream.url, retries: singleAttempt })
      const response = await server.postChat('demo:me', { messages: [user('Hello')] })
      expect([response.status, response.headers.has('x-threadkeep-receipt')]).toEqual([
        response.status,
        response.status === 200,
      ])
    }
  })

  it('x-request-id equal to a header name › is returned without affecting that header', async () => {
    await using upstream = await startUpstream([respondWithStatus(400), replyWith('Hello')])
    await using server = await startServer({ upstream: upstream.url, retries: singleAttempt })
    const headers = { 'x-request-id': 'x-threadkeep-receipt', 'content-type': 'application/json' }
    const lost = await fetch(`${server.url}/nowhere`, { headers })
    expect([lost.status, lost.headers.get('x-request-id')]).toEqual([404, 'x-threadkeep-receipt'])
    const body = JSON.stringify({ model: 'm', messages: [user('Hello')] })
    const refused = await fetch(`${server.url}/v1/demo:me/chat/completions`, { method: 'POST', headers, body })
    const values = ['x-request-id', 'x-threadkeep-memory', 'x-threadkeep-receipt'].map((name) =>
      refused.headers.get(name),
    )
    expect([refused.status, values]).toEqual([400, ['x-threadkeep-receipt', 'on', null]])
    expect((await server.postChat('demo:me', { messages: [user('Hello')] })).status).toBe(200)
    expect(server.faults).toEqual([])
  })

  it('a rejected server key › is not revealed to the client', async () => {
    await using upstream = await startUpstream(
      respondWithStatus(
        401,
        {},
        '{"error":{"message":"Incorrect API key provided: sk-ho***se. Organization org-HOUSE"}}',
      ),
    )
    await using server = await startServer({ upstream: upstream.url, apiKey: 'sk-house', retries: singleAttempt })
    const response = await server.postChat('demo:me', { messages: [user('Hello')] })
    const error = {
      message: 'The upstream rejected the API key of this server. Ask the operator to check it.',
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

  it('a repeated request after a failure › is stored once', async () => {
    await using upstream = await startUpstream([respondWithStatus(500), replyWith('There.')])
    await using server = await startServer({ upstream: upstream.url, retries: singleAttempt })
    await server.postChat('demo:me', { messages: [user('Hello')] })
    await server.postChat('demo:me', { messages: [user('Hello')] })
    expect(await server.transcriptLines('demo:me')).toEqual(['user: Hello', 'assistant: There.'])
  })

  for (const [does, message] of [
    [
      'drop',
      'The connection to UPSTREAM broke off in the middle of the reply. Try again; if it is your own server, look at its log.',
    ],
    ['stop', 'The reply of UPSTREAM ended early: the stream closed before it was complete. Try again.'],
    ['stall', 'UPSTREAM did not answer in time. Try again, or ask for less.'],
  ] as const) {
    it(`mid-stream failure (${does}) › is reported inside the stream, and the partial reply is not stored`, async () => {
      await using upstream = await startUpstream({ does, pieces: ['Once', ' upon'] })
      await using server = await startServer({
        upstream: upstream.url,
        ...(does === 'stall' ? { timeouts: { idle: 150 } } : {}),
      })
      const response = await server.postChat('demo:me', { messages: [user('Hello')], stream: true })
      const text = (await response.text()).replaceAll(`${upstream.url}/chat/completions`, 'UPSTREAM')
      const [type, code] = does === 'stall' ? ['timeout_error', 'timeout'] : ['upstream_error', 'upstream']
      const event = `data: ${JSON.stringify({ error: { message, type, param: null, code } })}\n\n`
      expect([response.status, text]).toEqual([200, encodeEventStream('openai', ['Once', ' upon'], false) + event])
      expect(await server.transcriptLines('demo:me')).toEqual(['user: Hello'])
      const stream = await server
        .client('demo:me')
        .chat.completions.create({ model: 'm', messages: [user('Hello')], stream: true })
      await expect(collectAll(stream)).rejects.toMatchObject({ code, error: { type } })
    })
  }

  it('a stream that ends inside a line › forwards no partial line before the error', async () => {
    const whole = encodeEventStream('openai', ['Once'], false)
    await using upstream = await startUpstream(
      sendRaw('text/event-stream', `${whole}data: {"choices":[{"delta":{"conte`),
    )
    await using server = await startServer({ upstream: upstream.url })
    const text = await (await server.postChat('demo:me', { messages: [user('Hello')], stream: true })).text()
    expect(text.startsWith(`${whole}data: {"error":{`)).toBe(true)
    const stream = await server
      .client('demo:me')
      .chat.completions.create({ model: 'm', messages: [user('Hello')], stream: true })
    await expect(collectAll(stream)).rejects.toMatchObject({ code: 'upstream' })
  })

  it('an error event inside the stream › is forwarded unchanged', async () => {
    const body = `${encodeEventStream('openai', ['Once'], false)}data: {"error":{"message":"Overloaded","code":"busy"}}\n\n`
    await using upstream = await startUpstream(sendRaw('text/event-stream', body))
    await using server = await startServer({ upstream: upstream.url })
    const response = await server.postChat('demo:me', { messages: [user('Hello')], stream: true })
    expect(await response.text()).toBe(body)
    expect(await server.transcriptLines('demo:me')).toEqual(['user: Hello'])
  })

  it('a stream that ends after the last chunk › is complete', async () => {
    for (const end of ['', 'data: [DONE]', 'data: [DONE]\n', ': bye\n\n']) {
      await using upstream = await startUpstream(
        sendRaw('text/event-stream', encodeEventStream('openai', ['Done.'], true).replace('data: [DONE]\n\n', end)),
      )
      await using server = await startServer({ upstream: upstream.url })
      const response = await server.postChat('demo:me', { messages: [user('Hello')], stream: true })
      expect(await response.text()).not.toContain('"error"')
      expect(await server.transcriptLines('demo:me')).toEqual(['user: Hello', 'assistant: Done.'])
    }
  })
})
