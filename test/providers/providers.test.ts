import { describe, expect, it } from 'vitest'
import type { Model } from '../../src/domain/ports.ts'
import { anthropicModel } from '../../src/providers/anthropic.ts'
import { geminiModel } from '../../src/providers/gemini.ts'
import { type Access, localModel, openaiModel, xaiModel } from '../../src/providers/openai.ts'
import { verifies } from '../requirements/verifies.ts'
import { everythingIn, failureOf, hello, piecesOf } from './gather.ts'
import { type Behaviour, closedPort, refuses, replies, type Script, sends, startUpstream } from './upstream.ts'

/** What every provider promises, whatever its protocol. */
const providers: [name: string, make: (access: Access) => Model][] = [
  ['openai', openaiModel],
  ['xai', xaiModel],
  ['local', localModel],
  ['anthropic', anthropicModel],
  ['gemini', geminiModel],
]
const key = 'sk-SECRET0123456789'
const noWait = async (): Promise<void> => undefined

describe.each(providers)('%s', (name, make) => {
  const modelAt = (baseUrl: string, access: Partial<Access> = {}): Model =>
    make({ baseUrl, apiKey: key, model: 'test', wait: noWait, ...access })

  async function failing(script: Script, access: Partial<Access> = {}) {
    await using upstream = await startUpstream(script)
    const model = modelAt(upstream.origin, access)
    return {
      ...(await failureOf(model)),
      origin: upstream.origin,
      requests: upstream.requests,
      over: await upstream.requests[0]?.over,
    }
  }

  verifies('E-15', `${name}: a reply is streamed piece by piece`, async () => {
    await using upstream = await startUpstream(replies('Good', ' morning', ', 猫 🐈'))
    expect(await piecesOf(modelAt(upstream.url))).toEqual(['Good', ' morning', ', 猫 🐈'])
    expect(upstream.requests.map((request) => request.method)).toEqual(['POST'])
    expect(await upstream.requests[0]?.over).toBe('answered')
  })

  it('takes a stream that comes byte by byte', async () => {
    await using upstream = await startUpstream({ does: 'reply', pieces: ['Grüße', ' 🐈'], split: true })
    expect(await piecesOf(modelAt(upstream.origin))).toEqual(['Grüße', ' 🐈'])
  })

  it('takes a reply in one from a server that knows no streams', async () => {
    await using upstream = await startUpstream({ does: 'whole', pieces: ['Good', ' morning'] })
    expect(await piecesOf(modelAt(upstream.origin))).toEqual(['Good morning'])
  })

  it('asks again when the upstream is busy, after the pause it asked for', async () => {
    const pauses: number[] = []
    await using upstream = await startUpstream([refuses(429, { 'retry-after': '7' }), replies('At last')])
    const wait = async (ms: number): Promise<void> => void pauses.push(ms)
    expect(await piecesOf(modelAt(upstream.origin, { wait }))).toEqual(['At last'])
    expect(pauses).toEqual([7_000])
  })

  it('asks again when the upstream fails twice, each time the same', async () => {
    await using upstream = await startUpstream([refuses(500), refuses(503), replies('At last')])
    expect(await piecesOf(modelAt(upstream.origin))).toEqual(['At last'])
    expect(upstream.requests).toHaveLength(3)
    expect(new Set(upstream.requests.map((request) => request.text)).size).toBe(1)
  })

  it('does not open a connection for every reply', async () => {
    await using upstream = await startUpstream({ does: 'reply', pieces: ['Good', ' morning'], split: true })
    const model = modelAt(upstream.origin)
    for (let turn = 0; turn < 6; turn++) expect(await piecesOf(model)).toEqual(['Good', ' morning'])
    // The platform may keep a second one, because it frees the first a moment after the last byte.
    expect(new Set(upstream.requests.map((request) => request.port)).size).toBeLessThanOrEqual(2)
  })

  it('says that nobody is there', async () => {
    const { error } = await failureOf(modelAt(await closedPort()))
    expect(error).toMatchObject({ name: 'MemoryError', code: 'upstream', status: undefined })
    expect(error.message).toMatch(
      /^No answer from http:\/\/127\.0\.0\.1:\d+\/\S+ \(ECONNREFUSED\)\. Is the server running\? Check .+\.$/,
    )
  })

  it.each<[what: string, behaviour: Behaviour, pieces: string[], message: RegExp]>([
    ['a stream that is empty', sends('text/event-stream', ''), [], /ended early/],
    ['a stream that stops early', { does: 'stop', pieces: ['Half'] }, ['Half'], /ended early/],
    ['a connection that drops', { does: 'drop', pieces: ['Half'] }, ['Half'], /broke off in the middle/],
    [
      'an error in the stream',
      sends('text/event-stream', 'data: {"error":{"type":"overloaded_error","message":"Hello there"}}\n\n'),
      [],
      /reported an error \(overloaded_error\)/,
    ],
    ['an error in one', sends('application/json', '{"error":"Hello there"}'), [], /reported an error instead/],
    [
      'a web page',
      sends('text/html; charset=utf-8', '<!doctype html><p>Welcome</p>'),
      [],
      /sent a web page instead of a reply/,
    ],
    ['rubbish', sends('application/octet-stream', new Uint8Array([0, 255, 10, 13, 254, 10, 10])), [], /ended early/],
    ['rubbish in events', sends('text/event-stream', 'data: <rubbish>\n\n'), [], /an event that is not JSON/],
    ['rubbish for JSON', sends('application/json', '{"half":'), [], /something that is not JSON/],
    ['JSON of another kind', sends('application/json', '[{"status":"ok"}]'), [], /JSON of another kind/],
    [
      'ten megabytes without a line end',
      sends('text/event-stream', 'x'.repeat(10_000_000)),
      [],
      /a line of more than 1048576 characters/,
    ],
  ])('says what is wrong with %s', async (_, behaviour, pieces, message) => {
    const failure = await failing(behaviour)
    expect(failure.error).toMatchObject({ name: 'MemoryError', code: 'upstream' })
    expect(failure.error.message).toMatch(message)
    expect(failure.pieces).toEqual(pieces)
    expect(failure.requests).toHaveLength(1)
  })

  it('hangs up on an upstream that sends ten megabytes without a line end', async () => {
    const { over } = await failing(sends('text/event-stream', 'x'.repeat(10_000_000)))
    expect(over).toBe('hung up')
  })

  it.each<[status: number, tries: number, message: RegExp]>([
    [400, 1, /refused the request \(HTTP 400\)\. Check that the model takes what was sent\.$/],
    [401, 1, /refused the key \(HTTP 401\)\. Check .+\.$/],
    [403, 1, /refused the key \(HTTP 403\)\. Check .+\.$/],
    [404, 1, /knows no model "test" or no such address \(HTTP 404\)\. Check the model name and .+\.$/],
    [429, 3, /receives too many requests \(HTTP 429\) after 3 tries\. Wait a while/],
    [500, 3, /failed \(HTTP 500\) after 3 tries\. Try again later/],
    [529, 3, /failed \(HTTP 529\) after 3 tries\. Try again later/],
  ])('explains status %i after asking %i times', async (status, tries, message) => {
    const failure = await failing(refuses(status))
    expect(failure.error).toMatchObject({ code: 'upstream', status })
    expect(failure.error.message).toMatch(message)
    expect(failure.requests).toHaveLength(tries)
  })

  it('never puts keys or messages into an error', async () => {
    const echo = JSON.stringify({
      error: { message: `${key}: Hello there`, type: `${key}`, code: 'Hello there', param: key },
    })
    const misfortunes: Script[] = [
      ...[400, 401, 404, 500].map((status) => refuses(status, {}, echo)),
      sends('text/event-stream', `data: ${echo}\n\n`),
      sends('application/json', echo),
      sends('text/event-stream', `data: ${key} Hello there\n\n`),
      { does: 'drop', pieces: [] },
    ]
    for (const script of misfortunes) {
      const { error } = await failing(script)
      expect(everythingIn(error)).not.toMatch(/SECRET|Hello there/)
    }
  })

  it('does not wait for an upstream that never answers', async () => {
    const { error, over } = await failing({ does: 'hang' }, { timeouts: { first: 30 } })
    expect(error).toMatchObject({ code: 'timeout', message: expect.stringContaining('did not answer within 30 ms') })
    expect(over).toBe('hung up')
  })

  it('does not wait for an upstream that falls silent', async () => {
    const { error, pieces, over } = await failing({ does: 'stall', pieces: ['Half'] }, { timeouts: { idle: 30 } })
    expect(pieces).toEqual(['Half'])
    expect(error).toMatchObject({ code: 'timeout', message: expect.stringContaining('sent nothing for 30 ms') })
    expect(over).toBe('hung up')
  })

  it('does not wait longer than for the whole reply', async () => {
    const { error } = await failing({ does: 'stall', pieces: ['Half'] }, { timeouts: { total: 60 } })
    expect(error).toMatchObject({ code: 'timeout', message: expect.stringContaining('took longer than 60 ms in all') })
  })

  it('hangs up when the reader stops listening', async () => {
    await using upstream = await startUpstream({ does: 'stall', pieces: ['One', 'Two'] })
    for await (const piece of modelAt(upstream.origin).reply(hello)) {
      expect(piece).toBe('One')
      break
    }
    expect(await upstream.requests[0]?.over).toBe('hung up')
  })

  it('hangs up when the caller aborts, before the answer and within it', async () => {
    const before = new AbortController()
    await using silent = await startUpstream(() => {
      before.abort()
      return { does: 'hang' }
    })
    const { error } = await failureOf(modelAt(silent.origin), hello, before.signal)
    expect(error).toMatchObject({ name: 'MemoryError', code: 'aborted' })
    expect(await silent.requests[0]?.over).toBe('hung up')

    const within = new AbortController()
    await using stalling = await startUpstream({ does: 'stall', pieces: ['Half'] })
    const reply = modelAt(stalling.origin).reply(hello, within.signal)[Symbol.asyncIterator]()
    expect(await reply.next()).toEqual({ done: false, value: 'Half' })
    const next = reply.next()
    within.abort()
    await expect(next).rejects.toMatchObject({ code: 'aborted' })
    expect(await stalling.requests[0]?.over).toBe('hung up')
  })

  it('does not ask at all when the caller has already given up', async () => {
    await using upstream = await startUpstream()
    const { error } = await failureOf(modelAt(upstream.origin), hello, AbortSignal.abort())
    expect(error.code).toBe('aborted')
    expect(upstream.requests).toHaveLength(0)
  })
})
