import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { MemoryError } from '../../src/domain/error.ts'
import { endpoint } from '../../src/providers/address.ts'
import { pause } from '../../src/providers/deadline.ts'
import { type Posting, post } from '../../src/providers/request.ts'
import { everythingIn } from './gather.ts'
import { type Behaviour, refuses, replies, sends, startUpstream } from './upstream.ts'

const check = { address: '--upstream or OPENAI_BASE_URL', key: 'OPENAI_API_KEY' }
const plain: Posting = { headers: {}, body: { hello: 'there' }, model: 'test', check }

/** What a request paused for, and how it ended. */
async function pausesOf(script: readonly Behaviour[]): Promise<{ pauses: number[]; error: MemoryError | undefined }> {
  await using upstream = await startUpstream(script)
  const pauses: number[] = []
  const wait = async (ms: number): Promise<void> => void pauses.push(ms)
  try {
    const answer = await post(new URL(upstream.url), { ...plain, wait })
    await answer.body.cancel()
    return { pauses, error: undefined }
  } catch (error) {
    return { pauses, error: error as MemoryError }
  }
}

const timers = (): number => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length

describe('post', () => {
  it('pauses longer each time when it is not told how long', async () => {
    expect(await pausesOf([refuses(503), refuses(429), replies()])).toEqual({ pauses: [500, 1_500], error: undefined })
  })

  it('pauses until the date it is told, by the clock of the server', async () => {
    const headers = { date: 'Mon, 02 Nov 2026 10:00:00 GMT', 'retry-after': 'Mon, 02 Nov 2026 10:00:12 GMT' }
    expect(await pausesOf([refuses(503, headers), replies()])).toEqual({ pauses: [12_000], error: undefined })
    const past = { ...headers, 'retry-after': 'Mon, 02 Nov 2026 09:00:00 GMT' }
    expect(await pausesOf([refuses(503, past), replies()])).toEqual({ pauses: [0], error: undefined })
  })

  it('pauses as usual when what it is told is nonsense', async () => {
    expect((await pausesOf([refuses(429, { 'retry-after': 'soon' }), replies()])).pauses).toEqual([500])
    expect((await pausesOf([refuses(429, { 'retry-after': '-5' }), replies()])).pauses).toEqual([500])
  })

  it('does not pause for more than half a minute', async () => {
    const { pauses, error } = await pausesOf([refuses(429, { 'retry-after': '31' }), replies()])
    expect(pauses).toEqual([])
    expect(error).toMatchObject({ code: 'upstream', status: 429 })
  })

  it('does not ask again when the quota is used up', async () => {
    const { pauses, error } = await pausesOf([refuses(429, {}, '{"error":{"code":"insufficient_quota"}}')])
    expect(pauses).toEqual([])
    expect(error?.message).toMatch(
      /says the quota is used up \(HTTP 429, insufficient_quota\)\. Check the plan and billing of the account behind OPENAI_API_KEY\.$/,
    )
  })

  it("names the provider's word for a refusal and the field it is about", async () => {
    const { error } = await pausesOf([
      refuses(400, {}, '{"error":{"code":"unsupported_value","param":"temperature","message":"Unsupported"}}'),
    ])
    expect(error?.message).toMatch(/refused the request \(HTTP 400, unsupported_value: temperature\)/)
  })

  it('reads only the beginning of what a refusal says', async () => {
    const { error } = await pausesOf([refuses(400, {}, 'x'.repeat(1_000_000))])
    expect(error?.message).toMatch(/refused the request \(HTTP 400\)/)
  })

  it('does not follow to another address, which would take the key along', async () => {
    await using elsewhere = await startUpstream()
    const { error } = await pausesOf([refuses(307, { location: elsewhere.url })])
    expect(error).toMatchObject({
      code: 'upstream',
      status: 307,
      message: expect.stringContaining(
        'sends elsewhere (HTTP 307). Give the final address: check --upstream or OPENAI_BASE_URL.',
      ),
    })
    expect(elsewhere.requests).toEqual([])
  })

  it('asks again when the connection is cut before an answer', async () => {
    await using upstream = await startUpstream([{ does: 'cut' }, replies()])
    const pauses: number[] = []
    const answer = await post(new URL(upstream.url), { ...plain, wait: async (ms) => void pauses.push(ms) })
    expect(answer.type).toBe('application/json')
    await answer.body.cancel()
    expect(pauses).toEqual([500])
  })

  it('refuses a header that cannot be sent, without quoting it', async () => {
    const error = await post(new URL('http://127.0.0.1:9'), {
      ...plain,
      headers: { authorization: 'Bearer SECRET\nSECRET' },
    }).catch((reason) => reason)
    expect(error).toMatchObject({ code: 'bad-option', param: 'headers' })
    expect(everythingIn(error)).not.toMatch(/SECRET/)
  })

  it('shows no query in an error, where some services want a key', async () => {
    await using upstream = await startUpstream(refuses(401))
    const error = await post(new URL(`${upstream.url}?key=SECRET`), plain).catch((reason) => reason)
    expect(error.message).toContain(`${upstream.url} refused the key`)
    expect(everythingIn(error)).not.toMatch(/SECRET/)
  })

  it('does not wait for a body that does not begin', async () => {
    // An OpenAI stream would begin with a keep-alive.
    await using upstream = await startUpstream({ does: 'stall', pieces: [] })
    const answer = await post(new URL(`${upstream.origin}/v1beta/models/x:streamGenerateContent`), {
      ...plain,
      timeouts: { first: 30 },
    })
    await expect(answer.body.getReader().read()).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('did not answer within 30 ms'),
    })
    expect(await upstream.requests[0]?.over).toBe('hung up')
  })

  it('stops pausing when the caller gives up', async () => {
    const caller = new AbortController()
    await using upstream = await startUpstream(() => {
      setImmediate(() => caller.abort('enough'))
      return refuses(429, { 'retry-after': '30' })
    })
    await expect(post(new URL(upstream.url), { ...plain, signal: caller.signal })).rejects.toMatchObject({
      code: 'aborted',
      cause: 'enough',
    })
  })

  it('stops pausing when the time for all of it is up', async () => {
    await using upstream = await startUpstream(refuses(429, { 'retry-after': '30' }))
    await expect(post(new URL(upstream.url), { ...plain, timeouts: { total: 40 } })).rejects.toMatchObject({
      code: 'timeout',
    })
  })

  it('does not count a pause as waiting for the first byte', async () => {
    await using upstream = await startUpstream([refuses(503), replies()])
    const wait = (_: number, signal: AbortSignal) => pause(450, signal)
    const answer = await post(new URL(upstream.url), { ...plain, wait, timeouts: { first: 400 } })
    await answer.body.cancel()
    expect(upstream.requests).toHaveLength(2)
  })

  it('takes an endless time-out for one that never ends', async () => {
    await using upstream = await startUpstream()
    const endless = { first: Number.POSITIVE_INFINITY, idle: Number.POSITIVE_INFINITY, total: Number.POSITIVE_INFINITY }
    const answer = await post(new URL(upstream.url), { ...plain, timeouts: endless })
    expect((await answer.body.getReader().read()).done).toBe(false)
  })

  it.each<[how: string, script: Behaviour[], use: (body: ReadableStream<Uint8Array>) => Promise<unknown>]>([
    ['read to its end', [refuses(500), replies('All')], (body) => new Response(body).text()],
    ['cancelled', [{ does: 'stall', pieces: ['Half'] }], (body) => body.cancel()],
    ['cancelled while it is read', [{ does: 'stall', pieces: [] }], (body) => cancelledWhileRead(body)],
    ['dropped', [{ does: 'drop', pieces: ['Half'] }], (body) => new Response(body).text().catch(() => '')],
    ['refused', [refuses(401)], async () => undefined],
    ['empty', [sends('text/plain', '')], (body) => new Response(body).text()],
  ])('leaves no timer and no listener behind when the answer is %s', async (_, script, use) => {
    await using upstream = await startUpstream(script)
    const caller = new AbortController()
    const before = timers()
    const posted = await post(new URL(upstream.url), {
      ...plain,
      signal: caller.signal,
      wait: async () => undefined,
    }).catch(() => undefined)
    if (posted !== undefined) await use(posted.body)
    await upstream.requests.at(-1)?.over
    expect(getEventListeners(caller.signal, 'abort')).toEqual([])
    await upstream.close()
    expect(timers()).toBeLessThanOrEqual(before)
  })
})

async function cancelledWhileRead(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader()
  const reading = reader.read().then(() => reader.read())
  await reader.cancel()
  await reading
}

describe('endpoint', () => {
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
  ])('joins %s', (base, ending, whole) => {
    expect(endpoint(base, '/chat/completions', ending).href).toBe(whole)
  })

  it.each([
    ['localhost:11434', 'is not an http:// or https:// address'],
    ['', 'is not an http:// or https:// address'],
    ['file:///etc/passwd', 'is not an http:// or https:// address'],
    ['https://user:SECRET@example.com/v1', 'holds a user name or password'],
    ['SECRET at home', 'is not an http:// or https:// address'],
  ])('refuses %j', (base, message) => {
    const refused = (): unknown => {
      try {
        return endpoint(base, '/chat/completions')
      } catch (error) {
        return error
      }
    }
    expect(refused()).toMatchObject({ code: 'bad-option', param: 'baseUrl', message: expect.stringContaining(message) })
    expect(everythingIn(refused()).replace(/\n\s+at .*/g, '')).not.toMatch(/SECRET/)
  })
})
