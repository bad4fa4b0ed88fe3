import { describe, expect, it } from 'vitest'
import type { Model } from '../../src/domain/ports.ts'
import { anthropicModel } from '../../src/providers/anthropic.ts'
import type { Timeouts } from '../../src/providers/deadline.ts'
import { geminiModel } from '../../src/providers/gemini.ts'
import { localModel, type ModelOptions, openaiModel, xaiModel } from '../../src/providers/openai.ts'
import { verifies } from '../requirements/verifies.ts'
import { collectFailure, collectReply, formatErrorChain, helloRequest } from './collectReply.ts'
import { useFakeTimeouts } from './fakeTimeouts.ts'
import {
  type Behaviour,
  closedPortUrl,
  replyWith,
  respondWithStatus,
  type Script,
  sendRaw,
  startUpstream,
} from './upstream.ts'

/** Behaviour that all providers share, whatever their protocol. */
const providers: [name: string, create: (options: ModelOptions) => Model][] = [
  ['openai', openaiModel],
  ['xai', xaiModel],
  ['local', localModel],
  ['anthropic', anthropicModel],
  ['gemini', geminiModel],
]
const key = 'sk-SECRET0123456789'
const skipSleep = async (): Promise<void> => undefined

describe.each(providers)('%s', (name, create) => {
  const modelAt = (baseUrl: string, options: Partial<ModelOptions> = {}): Model =>
    create({ baseUrl, apiKey: key, model: 'test', sleep: skipSleep, ...options })

  async function failWith(script: Script, options: Partial<ModelOptions> = {}) {
    await using upstream = await startUpstream(script)
    const model = modelAt(upstream.origin, options)
    return {
      ...(await collectFailure(model)),
      origin: upstream.origin,
      requests: upstream.requests,
      outcome: await upstream.requests[0]?.outcome,
    }
  }

  verifies('E-15', `${name} › reply › streams piece by piece`, async () => {
    await using upstream = await startUpstream(replyWith('Good', ' morning', ', 猫 🐈'))
    expect(await collectReply(modelAt(upstream.url))).toEqual(['Good', ' morning', ', 猫 🐈'])
    expect(upstream.requests.map((request) => request.method)).toEqual(['POST'])
    expect(await upstream.requests[0]?.outcome).toBe('answered')
  })

  it('reply › with a stream that arrives byte by byte › decodes it', async () => {
    await using upstream = await startUpstream({ does: 'reply', pieces: ['Grüße', ' 🐈'], split: true })
    expect(await collectReply(modelAt(upstream.origin))).toEqual(['Grüße', ' 🐈'])
  })

  it('reply › with a server that does not stream › yields the whole reply', async () => {
    await using upstream = await startUpstream({ does: 'whole', pieces: ['Good', ' morning'] })
    expect(await collectReply(modelAt(upstream.origin))).toEqual(['Good morning'])
  })

  verifies('R-03', `${name} › reply › with JSON nested deeply › throws before it is parsed`, async () => {
    const [opened, closed] = ['[', ']'].map((sign) => sign.repeat(200_000))
    for (const script of [
      sendRaw('application/json', `{"extra":${opened}${closed}}`),
      sendRaw('text/event-stream', `data: {"extra":${opened}${closed}}\n\n`),
    ])
      expect((await failWith(script)).error).toMatchObject({
        code: 'upstream',
        message: expect.stringContaining('nested too deeply'),
      })
  })

  it('reply › with status 429 and Retry-After › retries after that delay', async () => {
    const pauses: number[] = []
    await using upstream = await startUpstream([respondWithStatus(429, { 'retry-after': '7' }), replyWith('At last')])
    const wait = async (ms: number): Promise<void> => void pauses.push(ms)
    expect(await collectReply(modelAt(upstream.origin, { sleep: wait }))).toEqual(['At last'])
    expect(pauses).toEqual([7_000])
  })

  it('reply › with two server errors › retries the same request', async () => {
    await using upstream = await startUpstream([respondWithStatus(500), respondWithStatus(503), replyWith('At last')])
    expect(await collectReply(modelAt(upstream.origin))).toEqual(['At last'])
    expect(upstream.requests).toHaveLength(3)
    expect(new Set(upstream.requests.map((request) => request.text)).size).toBe(1)
  })

  it('reply › six times › reuses connections', async () => {
    await using upstream = await startUpstream({ does: 'reply', pieces: ['Good', ' morning'], split: true })
    const model = modelAt(upstream.origin)
    for (let turn = 0; turn < 6; turn++) expect(await collectReply(model)).toEqual(['Good', ' morning'])
    // Fetch may open a second connection, because it releases the first one shortly after the last byte.
    expect(new Set(upstream.requests.map((request) => request.port)).size).toBeLessThanOrEqual(2)
  })

  it('reply › with a closed port › throws an error that names the setting to check', async () => {
    const { error } = await collectFailure(modelAt(await closedPortUrl()))
    expect(error).toMatchObject({ name: 'MemoryError', code: 'upstream', status: undefined })
    expect(error.message).toMatch(
      /^No answer from http:\/\/127\.0\.0\.1:\d+\/\S+ \(ECONNREFUSED\)\. Is the server running\? Check .+\.$/,
    )
  })

  it.each<[response: string, behaviour: Behaviour, pieces: string[], message: RegExp]>([
    ['an empty stream', sendRaw('text/event-stream', ''), [], /ended early/],
    ['a stream that stops early', { does: 'stop', pieces: ['Half'] }, ['Half'], /ended early/],
    ['a connection that drops', { does: 'drop', pieces: ['Half'] }, ['Half'], /broke off in the middle/],
    [
      'an error in the stream',
      sendRaw('text/event-stream', 'data: {"error":{"type":"overloaded_error","message":"Hello there"}}\n\n'),
      [],
      /reported an error \(overloaded_error\)/,
    ],
    [
      'an error in a JSON body',
      sendRaw('application/json', '{"error":"Hello there"}'),
      [],
      /reported an error instead/,
    ],
    [
      'a web page',
      sendRaw('text/html; charset=utf-8', '<!doctype html><p>Welcome</p>'),
      [],
      /sent a web page instead of a reply/,
    ],
    [
      'binary garbage',
      sendRaw('application/octet-stream', new Uint8Array([0, 255, 10, 13, 254, 10, 10])),
      [],
      /ended early/,
    ],
    ['an event that is not JSON', sendRaw('text/event-stream', 'data: <rubbish>\n\n'), [], /an event that is not JSON/],
    ['a body that is not JSON', sendRaw('application/json', '{"half":'), [], /something that is not JSON/],
    ['JSON of another kind', sendRaw('application/json', '[{"status":"ok"}]'), [], /JSON of another kind/],
    [
      'ten megabytes without a line end',
      sendRaw('text/event-stream', 'x'.repeat(10_000_000)),
      [],
      /a line of more than 1048576 characters/,
    ],
  ])('reply › with %s › throws an error that explains it', async (_, behaviour, pieces, message) => {
    const failure = await failWith(behaviour)
    expect(failure.error).toMatchObject({ name: 'MemoryError', code: 'upstream' })
    expect(failure.error.message).toMatch(message)
    expect(failure.pieces).toEqual(pieces)
    expect(failure.requests).toHaveLength(1)
  })

  it('reply › with ten megabytes without a line end › closes the connection', async () => {
    const { outcome } = await failWith(sendRaw('text/event-stream', 'x'.repeat(10_000_000)))
    expect(outcome).toBe('hung up')
  })

  it.each<[status: number, attempts: number, message: RegExp]>([
    [400, 1, /refused the request \(HTTP 400\)\. Check that the model accepts the parameters that were sent\.$/],
    [401, 1, /refused the key \(HTTP 401\)\. Check .+\.$/],
    [403, 1, /refused the key \(HTTP 403\)\. Check .+\.$/],
    [404, 1, /has no model "test" or no such endpoint \(HTTP 404\)\. Check the model name and .+\.$/],
    [429, 3, /receives too many requests \(HTTP 429\) after 3 tries\. Wait a while/],
    [500, 3, /failed \(HTTP 500\) after 3 tries\. Try again later/],
    [529, 3, /failed \(HTTP 529\) after 3 tries\. Try again later/],
  ])(
    'reply › with status %i › throws an error with the remedy after %i attempt(s)',
    async (status, attempts, message) => {
      const failure = await failWith(respondWithStatus(status))
      expect(failure.error).toMatchObject({ code: 'upstream', status })
      expect(failure.error.message).toMatch(message)
      expect(failure.requests).toHaveLength(attempts)
    },
  )

  it('reply › with keys and messages echoed by the upstream › throws errors that do not contain them', async () => {
    const echo = JSON.stringify({
      error: { message: `${key}: Hello there`, type: `${key}`, code: 'Hello there', param: key },
    })
    const scripts: Script[] = [
      ...[400, 401, 404, 500].map((status) => respondWithStatus(status, {}, echo)),
      sendRaw('text/event-stream', `data: ${echo}\n\n`),
      sendRaw('application/json', echo),
      sendRaw('text/event-stream', `data: ${key} Hello there\n\n`),
      { does: 'drop', pieces: [] },
    ]
    for (const script of scripts) {
      const { error } = await failWith(script)
      expect(formatErrorChain(error)).not.toMatch(/SECRET|Hello there/)
    }
  })

  it('reply › with an upstream that never answers › times out and closes the connection', async () => {
    using clock = useFakeTimeouts()
    const hang = (): Behaviour => {
      clock.advance(30)
      return { does: 'hang' }
    }
    const { error, outcome } = await failWith(hang, { timeouts: { firstByte: 30 } })
    expect(error).toMatchObject({ code: 'timeout', message: expect.stringContaining('did not answer within 30 ms') })
    expect(outcome).toBe('hung up')
  })

  it.each<[timeouts: Partial<Timeouts>, message: string]>([
    [{ idle: 30 }, 'sent nothing for 30 ms'],
    [{ total: 30 }, 'took longer than 30 ms in all'],
  ])(
    'reply › with a stalled stream and timeouts %o › times out and closes the connection',
    async (timeouts, message) => {
      using clock = useFakeTimeouts()
      await using upstream = await startUpstream({ does: 'stall', pieces: ['Half'] })
      const reply = modelAt(upstream.origin, { timeouts }).reply(helloRequest)[Symbol.asyncIterator]()
      expect(await reply.next()).toEqual({ done: false, value: 'Half' })
      const failure = expect(reply.next()).rejects.toMatchObject({
        code: 'timeout',
        message: expect.stringContaining(message),
      })
      // The next read starts the idle timer a few microtasks later.
      await new Promise((resolve) => setImmediate(resolve))
      clock.advance(30)
      await failure
      expect(await upstream.requests[0]?.outcome).toBe('hung up')
    },
  )

  it('reply › when the consumer stops early › closes the connection', async () => {
    await using upstream = await startUpstream({ does: 'stall', pieces: ['One', 'Two'] })
    for await (const piece of modelAt(upstream.origin).reply(helloRequest)) {
      expect(piece).toBe('One')
      break
    }
    expect(await upstream.requests[0]?.outcome).toBe('hung up')
  })

  it('reply › when aborted before or during the response › throws and closes the connection', async () => {
    const before = new AbortController()
    await using silent = await startUpstream(() => {
      before.abort()
      return { does: 'hang' }
    })
    const { error } = await collectFailure(modelAt(silent.origin), helloRequest, before.signal)
    expect(error).toMatchObject({ name: 'MemoryError', code: 'aborted' })
    expect(await silent.requests[0]?.outcome).toBe('hung up')

    const within = new AbortController()
    await using stalling = await startUpstream({ does: 'stall', pieces: ['Half'] })
    const reply = modelAt(stalling.origin).reply(helloRequest, within.signal)[Symbol.asyncIterator]()
    expect(await reply.next()).toEqual({ done: false, value: 'Half' })
    const next = reply.next()
    within.abort()
    await expect(next).rejects.toMatchObject({ code: 'aborted' })
    expect(await stalling.requests[0]?.outcome).toBe('hung up')
  })

  it('reply › with an aborted signal › sends no request', async () => {
    await using upstream = await startUpstream()
    const { error } = await collectFailure(modelAt(upstream.origin), helloRequest, AbortSignal.abort())
    expect(error.code).toBe('aborted')
    expect(upstream.requests).toHaveLength(0)
  })
})
