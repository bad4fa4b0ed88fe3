import { getEventListeners } from 'node:events'
import { describe, expect, it, vi } from 'vitest'
import type { MemoryError } from '../../src/domain/error.ts'
import { sleep } from '../../src/providers/deadline.ts'
import type { SettingNames } from '../../src/providers/errors.ts'
import { type PostRequest, post } from '../../src/providers/request.ts'
import { buildEndpointUrl } from '../../src/providers/url.ts'
import { formatErrorChain } from './collectReply.ts'
import { useFakeTimeouts } from './fakeTimeouts.ts'
import { type Behaviour, replyWith, respondWithStatus, sendRaw, startUpstream } from './upstream.ts'

const settings: SettingNames = { baseUrl: '--upstream or OPENAI_BASE_URL', apiKey: 'OPENAI_API_KEY' }
const helloPost: PostRequest = { headers: {}, body: { hello: 'there' }, model: 'test', settings }

/** Posts to a scripted upstream and records the delays between attempts and the error. */
async function postTo(script: readonly Behaviour[]): Promise<{ delays: number[]; error: MemoryError | undefined }> {
  await using upstream = await startUpstream(script)
  const delays: number[] = []
  const wait = async (ms: number): Promise<void> => void delays.push(ms)
  try {
    const response = await post(new URL(upstream.url), { ...helloPost, sleep: wait })
    await response.body.cancel()
    return { delays, error: undefined }
  } catch (error) {
    return { delays, error: error as MemoryError }
  }
}

describe('post', () => {
  it('with errors without Retry-After › increases the delay', async () => {
    expect(await postTo([respondWithStatus(503), respondWithStatus(429), replyWith()])).toEqual({
      delays: [500, 1_500],
      error: undefined,
    })
  })

  it("with a date in Retry-After › measures the delay by the server's clock", async () => {
    const headers = { date: 'Mon, 02 Nov 2026 10:00:00 GMT', 'retry-after': 'Mon, 02 Nov 2026 10:00:12 GMT' }
    expect(await postTo([respondWithStatus(503, headers), replyWith()])).toEqual({ delays: [12_000], error: undefined })
    const past = { ...headers, 'retry-after': 'Mon, 02 Nov 2026 09:00:00 GMT' }
    expect(await postTo([respondWithStatus(503, past), replyWith()])).toEqual({ delays: [0], error: undefined })
  })

  it('with an invalid Retry-After › uses the default delay', async () => {
    expect((await postTo([respondWithStatus(429, { 'retry-after': 'soon' }), replyWith()])).delays).toEqual([500])
    expect((await postTo([respondWithStatus(429, { 'retry-after': '-5' }), replyWith()])).delays).toEqual([500])
  })

  it('with a Retry-After of more than 30 seconds › does not retry', async () => {
    const { delays, error } = await postTo([respondWithStatus(429, { 'retry-after': '31' }), replyWith()])
    expect(delays).toEqual([])
    expect(error).toMatchObject({ code: 'upstream', status: 429 })
  })

  it('with the quota used up › does not retry', async () => {
    const { delays, error } = await postTo([respondWithStatus(429, {}, '{"error":{"code":"insufficient_quota"}}')])
    expect(delays).toEqual([])
    expect(error?.message).toMatch(
      /reports that the quota is used up \(HTTP 429, insufficient_quota\)\. Check the plan and billing of the account behind OPENAI_API_KEY\.$/,
    )
  })

  it("with the provider's error code and parameter › names both in the error", async () => {
    const { error } = await postTo([
      respondWithStatus(
        400,
        {},
        '{"error":{"code":"unsupported_value","param":"temperature","message":"Unsupported"}}',
      ),
    ])
    expect(error?.message).toMatch(/refused the request \(HTTP 400, unsupported_value: temperature\)/)
  })

  it('with a long error body › reads only its beginning', async () => {
    const { error } = await postTo([respondWithStatus(400, {}, 'x'.repeat(1_000_000))])
    expect(error?.message).toMatch(/refused the request \(HTTP 400\)/)
  })

  it('with a redirect › does not follow it, which would send the key along', async () => {
    await using otherServer = await startUpstream()
    const { error } = await postTo([respondWithStatus(307, { location: otherServer.url })])
    expect(error).toMatchObject({
      code: 'upstream',
      status: 307,
      message: expect.stringContaining(
        'redirects elsewhere (HTTP 307). Give the final address: check --upstream or OPENAI_BASE_URL.',
      ),
    })
    expect(otherServer.requests).toEqual([])
  })

  it('with a connection dropped before the response › retries', async () => {
    await using upstream = await startUpstream([{ does: 'cut' }, replyWith()])
    const delays: number[] = []
    const response = await post(new URL(upstream.url), { ...helloPost, sleep: async (ms) => void delays.push(ms) })
    expect(response.contentType).toBe('application/json')
    await response.body.cancel()
    expect(delays).toEqual([500])
  })

  it('with a header that cannot be sent › throws an error that does not quote it', async () => {
    const error = await post(new URL('http://127.0.0.1:9'), {
      ...helloPost,
      headers: { authorization: 'Bearer SECRET\nSECRET' },
    }).catch((reason) => reason)
    expect(error).toMatchObject({ code: 'bad-option', param: 'headers' })
    expect(formatErrorChain(error)).not.toMatch(/SECRET/)
  })

  it('with a key in the query › throws errors without the query', async () => {
    await using upstream = await startUpstream(respondWithStatus(401))
    const error = await post(new URL(`${upstream.url}?key=SECRET`), helloPost).catch((reason) => reason)
    expect(error.message).toContain(`${upstream.url} refused the key`)
    expect(formatErrorChain(error)).not.toMatch(/SECRET/)
  })

  it('with headers but no body › times out at the first byte', async () => {
    using clock = useFakeTimeouts()
    // The test upstream starts OpenAI streams with a keep-alive, Gemini streams with nothing.
    await using upstream = await startUpstream({ does: 'stall', pieces: [] })
    const response = await post(new URL(`${upstream.origin}/v1beta/models/x:streamGenerateContent`), {
      ...helloPost,
      timeouts: { firstByte: 30 },
    })
    const failure = expect(response.body.getReader().read()).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('did not answer within 30 ms'),
    })
    clock.advance(30)
    await failure
    expect(await upstream.requests[0]?.outcome).toBe('hung up')
  })

  it('when aborted between attempts › throws the reason', async () => {
    const caller = new AbortController()
    await using upstream = await startUpstream(respondWithStatus(429, { 'retry-after': '30' }))
    const wait = (ms: number, signal: AbortSignal): Promise<void> => {
      const sleeping = sleep(ms, signal)
      caller.abort('enough')
      return sleeping
    }
    await expect(
      post(new URL(upstream.url), { ...helloPost, sleep: wait, signal: caller.signal }),
    ).rejects.toMatchObject({
      code: 'aborted',
      cause: 'enough',
    })
  })

  it('when the total timeout expires between attempts › throws', async () => {
    using clock = useFakeTimeouts()
    await using upstream = await startUpstream(respondWithStatus(429, { 'retry-after': '30' }))
    const wait = (ms: number, signal: AbortSignal): Promise<void> => {
      const sleeping = sleep(ms, signal)
      clock.advance(40)
      return sleeping
    }
    await expect(
      post(new URL(upstream.url), { ...helloPost, sleep: wait, timeouts: { total: 40 } }),
    ).rejects.toMatchObject({
      code: 'timeout',
    })
  })

  it('with a delay longer than the first-byte timeout › does not count the delay', async () => {
    using clock = useFakeTimeouts()
    await using upstream = await startUpstream([respondWithStatus(503), replyWith()])
    const wait = async (): Promise<void> => clock.advance(450)
    const response = await post(new URL(upstream.url), { ...helloPost, sleep: wait, timeouts: { firstByte: 400 } })
    await response.body.cancel()
    expect(upstream.requests).toHaveLength(2)
  })

  it('with infinite timeouts › never times out', async () => {
    await using upstream = await startUpstream()
    const infinite = {
      firstByte: Number.POSITIVE_INFINITY,
      idle: Number.POSITIVE_INFINITY,
      total: Number.POSITIVE_INFINITY,
    }
    const response = await post(new URL(upstream.url), { ...helloPost, timeouts: infinite })
    expect((await response.body.getReader().read()).done).toBe(false)
  })

  it.each<[ending: string, script: Behaviour[], consume: (body: ReadableStream<Uint8Array>) => Promise<unknown>]>([
    ['read to the end', [respondWithStatus(500), replyWith('All')], (body) => new Response(body).text()],
    ['cancelled', [{ does: 'stall', pieces: ['Half'] }], (body) => body.cancel()],
    ['cancelled during a read', [{ does: 'stall', pieces: [] }], (body) => cancelDuringRead(body)],
    ['dropped', [{ does: 'drop', pieces: ['Half'] }], (body) => new Response(body).text().catch(() => '')],
    ['refused', [respondWithStatus(401)], async () => undefined],
    ['empty', [sendRaw('text/plain', '')], (body) => new Response(body).text()],
  ])('with a response that is %s › leaves no timer and no listener', async (_, script, consume) => {
    await using upstream = await startUpstream(script)
    const caller = new AbortController()
    using timers = trackTimers(Object.values(timeouts))
    const response = await post(new URL(upstream.url), {
      ...helloPost,
      timeouts,
      signal: caller.signal,
      sleep: async () => undefined,
    }).catch(() => undefined)
    if (response !== undefined) await consume(response.body)
    await upstream.requests.at(-1)?.outcome
    expect(getEventListeners(caller.signal, 'abort')).toEqual([])
    expect(timers.started().length).toBeGreaterThan(0)
    expect(timers.active()).toEqual([])
  })
})

/** Delays that no other code uses, so that the timers of a request can be told from those of fetch. */
const timeouts = { firstByte: 100_001, idle: 100_002, total: 100_003 }

/** Tracks the timers with these delays that were started and not cleared. */
function trackTimers(delays: readonly number[]) {
  const start = vi.spyOn(globalThis, 'setTimeout')
  const clear = vi.spyOn(globalThis, 'clearTimeout')
  const started = () =>
    start.mock.calls.flatMap(([, delay], index) =>
      delays.includes(delay ?? 0) ? [{ delay, timer: start.mock.results[index]?.value }] : [],
    )
  return {
    started,
    active: () => started().filter(({ timer }) => !clear.mock.calls.some(([cleared]) => cleared === timer)),
    [Symbol.dispose]() {
      start.mockRestore()
      clear.mockRestore()
    },
  }
}

async function cancelDuringRead(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader()
  const reading = reader.read().then(() => reader.read())
  await reader.cancel()
  await reading
}

describe('buildEndpointUrl', () => {
  it.each([
    ['http://localhost:11434/v1', '', 'http://localhost:11434/v1/chat/completions'],
    ['http://localhost:11434/v1/', '', 'http://localhost:11434/v1/chat/completions'],
    ['https://example.com', '', 'https://example.com/chat/completions'],
    [
      'https://example.com/openai/v1?api-version=1#x',
      '',
      'https://example.com/openai/v1/chat/completions?api-version=1',
    ],
    ['https://example.com/v1', '/v1', 'https://example.com/chat/completions'],
    ['https://example.com/proxy/v1/', '/v1', 'https://example.com/proxy/chat/completions'],
  ])('with base URL %s and suffix %j › returns %s', (baseUrl, suffix, url) => {
    expect(buildEndpointUrl(baseUrl, '/chat/completions', suffix).href).toBe(url)
  })

  it.each([
    ['localhost:11434', 'is not an http:// or https:// address'],
    ['', 'is not an http:// or https:// address'],
    ['file:///etc/passwd', 'is not an http:// or https:// address'],
    ['https://user:SECRET@example.com/v1', 'holds a user name or password'],
    ['SECRET at home', 'is not an http:// or https:// address'],
  ])('with base URL %j › throws an error that does not quote it', (baseUrl, message) => {
    const thrown = (): unknown => {
      try {
        return buildEndpointUrl(baseUrl, '/chat/completions')
      } catch (error) {
        return error
      }
    }
    expect(thrown()).toMatchObject({ code: 'bad-option', param: 'baseUrl', message: expect.stringContaining(message) })
    expect(formatErrorChain(thrown()).replace(/\n\s+at .*/g, '')).not.toMatch(/SECRET/)
  })
})
