import { gzipSync } from 'node:zlib'
import Anthropic, { toFile as toAnthropicFile } from '@anthropic-ai/sdk'
import OpenAI, { toFile } from 'openai'
import { describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { type RecordedRequest, startRecordingServer } from './recordingServer.ts'
import { startServer } from './start.ts'

type SentRequest = { readonly method: string; readonly url: URL; readonly headers: Headers; readonly body: Buffer }

/** A fetch that records the bytes of each request, which may contain a random form boundary. */
function recordingFetch(sent: SentRequest[]): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, { ...init, ...(init?.body == null ? {} : { duplex: 'half' }) } as RequestInit)
    const body = Buffer.from(await request.arrayBuffer())
    const { method, headers } = request
    sent.push({ method, url: new URL(request.url), headers, body })
    return fetch(request.url, { method, headers, ...(body.length > 0 && { body }) })
  }
}

const file = () => toFile(Buffer.from([0, 255, 13, 10, 45, 45]), 'a.bin')
const image = () => toFile(Buffer.from([137, 80, 78, 71]), 'a.png', { type: 'image/png' })

/** One call of each endpoint with the OpenAI client. */
const openaiCalls: Readonly<Record<string, (client: OpenAI) => Promise<unknown>>> = {
  'POST /files': async (client) => client.files.create({ purpose: 'batch', file: await file() }),
  'GET /files': (client) => client.files.list({ limit: 2, after: 'file-1' }),
  'GET /files/file-1': (client) => client.files.retrieve('file-1'),
  'GET /files/file-1/content': async (client) => (await client.files.content('file-1')).arrayBuffer(),
  'DELETE /files/file-1': (client) => client.files.delete('file-1'),
  'POST /uploads': (client) =>
    client.uploads.create({ bytes: 1, filename: 'a', mime_type: 'text/plain', purpose: 'batch' }),
  'POST /batches': (client) =>
    client.batches.create({ input_file_id: 'file-1', endpoint: '/v1/responses', completion_window: '24h' }),
  'GET /batches/batch_1': (client) => client.batches.retrieve('batch_1'),
  'GET /batches': (client) => client.batches.list({ limit: 3 }),
  'POST /batches/batch_1/cancel': (client) => client.batches.cancel('batch_1'),
  'POST /images/generations': (client) => client.images.generate({ model: 'gpt-image-1', prompt: 'A cat' }),
  'POST /images/edits': async (client) => client.images.edit({ image: await image(), prompt: 'A dog' }),
  'POST /audio/transcriptions': async (client) =>
    client.audio.transcriptions.create({ model: 'whisper-1', file: await file() }),
  'POST /audio/speech': async (client) =>
    (await client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'Hi' })).arrayBuffer(),
  'POST /moderations': (client) => client.moderations.create({ input: 'Hello' }),
  'POST /completions': (client) => client.completions.create({ model: 'm', prompt: 'Once' }),
  'GET /responses/resp_1': (client) =>
    client.responses.retrieve('resp_1', { include: ['reasoning.encrypted_content'] }),
  'DELETE /responses/resp_1': (client) => client.responses.delete('resp_1'),
  'POST /responses/resp_1/cancel': (client) => client.responses.cancel('resp_1'),
  'GET /responses/resp_1/input_items': (client) => client.responses.inputItems.list('resp_1', { order: 'asc' }),
  'GET /fine_tuning/jobs': (client) => client.fineTuning.jobs.list(),
  'POST /vector_stores': (client) => client.vectorStores.create({ name: 'docs' }),
  'PUT /any/thing': (client) => client.put('/any/thing', { body: { a: 1 } }),
  'PATCH /any/thing': (client) => client.patch('/any/thing', { query: { 'api-version': '1' }, body: { a: 1 } }),
}

/** One call of each endpoint with the Anthropic client. */
const anthropicCalls: Readonly<Record<string, (client: Anthropic) => Promise<unknown>>> = {
  'POST /messages/batches': (client) =>
    client.messages.batches.create({
      requests: [
        { custom_id: 'a', params: { model: 'c', max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] } },
      ],
    }),
  'GET /messages/batches/b1': (client) => client.messages.batches.retrieve('b1'),
  'GET /messages/batches': (client) => client.messages.batches.list({ limit: 5 }),
  'POST /messages/batches/b1/cancel': (client) => client.messages.batches.cancel('b1'),
  'POST /messages/batches/b2/cancel': (client) => client.beta.messages.batches.cancel('b2'),
  'DELETE /messages/batches/b1': (client) => client.messages.batches.delete('b1'),
  'POST /files': async (client) =>
    client.beta.files.upload({ file: await toAnthropicFile(Buffer.from([1, 0, 255]), 'a.pdf') }),
  'GET /files': (client) => client.beta.files.list(),
  'GET /files/f1': (client) => client.beta.files.retrieveMetadata('f1'),
  'GET /files/f1/content': async (client) => (await client.beta.files.download('f1')).arrayBuffer(),
  'DELETE /files/f1': (client) => client.beta.files.delete('f1'),
}

const openaiClient = (url: string, sent: SentRequest[] = []) =>
  new OpenAI({
    baseURL: url,
    apiKey: 'sk-client',
    organization: 'org',
    maxRetries: 0,
    defaultHeaders: { 'HTTP-Referer': 'https://shop.example', 'X-Title': 'Shop', 'Idempotency-Key': 'k1' },
    fetch: recordingFetch(sent),
  })
const anthropicClient = (url: string, sent: SentRequest[] = []) =>
  new Anthropic({ baseURL: url, apiKey: 'sk-ant', maxRetries: 0, fetch: recordingFetch(sent) })

/** Headers that a proxy sets itself. */
const connectionHeaders = ['host', 'connection']

/** Compares a request at the upstream with the one that the client has sent. */
function expectSame(received: RecordedRequest | undefined, sent: SentRequest | undefined, path: string): void {
  if (received === undefined || sent === undefined) throw new Error(`${path} was not forwarded`)
  expect([received.method, received.url]).toEqual([sent.method, `/gateway/v1${path}${sent.url.search}`])
  expect(received.body.equals(sent.body)).toBe(true)
  const headers = Object.fromEntries(
    Object.entries(received.headers).filter(([name]) => !connectionHeaders.includes(name)),
  )
  expect(headers).toMatchObject(Object.fromEntries(sent.headers))
}

describe('forwarded endpoints', () => {
  verifies('F-05', 'the OpenAI client › every endpoint reaches the upstream byte for byte', async () => {
    await using upstream = await startRecordingServer()
    await using server = await startServer({ upstream: upstream.url })
    for (const prefix of ['/v1/acme:ann', '/v1', '/v1/acme:ann/v1', '/v1/acme/v1'])
      for (const [name, call] of Object.entries(openaiCalls)) {
        const sent: SentRequest[] = []
        const result = await call(openaiClient(server.url + prefix, sent))
        expectSame(upstream.requests.at(-1), sent.at(-1), name.split(' ')[1] ?? '')
        expect(`${sent.at(-1)?.method} ${sent.at(-1)?.url.pathname}`).toBe(name.replace(' ', ` ${prefix}`))
        if (result instanceof ArrayBuffer) expect(Buffer.from(result).toString()).toBe('{"id":"x"}')
        else if (!name.startsWith('DELETE /responses')) expect(JSON.stringify(result)).toContain('"id":"x"')
      }
    expect(upstream.requests.length).toBe(4 * Object.keys(openaiCalls).length)
    expect(server.faults).toEqual([])
  })

  verifies('F-05', 'the Anthropic client › every endpoint reaches the upstream byte for byte', async () => {
    await using upstream = await startRecordingServer()
    const upstreams = [{ name: 'claude', base: upstream.url, protocol: 'anthropic' as const }]
    await using server = await startServer({ upstream: upstreams })
    for (const prefix of ['/v1/acme:ann', '', '/v1/acme', '/v1'])
      for (const [name, call] of Object.entries(anthropicCalls)) {
        const sent: SentRequest[] = []
        await call(anthropicClient(server.url + prefix, sent))
        expectSame(upstream.requests.at(-1), sent.at(-1), name.split(' ')[1] ?? '')
      }
    expect(upstream.requests.length).toBe(4 * Object.keys(anthropicCalls).length)
  })

  it('the response › has the status, headers and bytes of the upstream', async () => {
    const bytes = gzipSync('compressed')
    await using upstream = await startRecordingServer(({ url }, response) => {
      if (url.endsWith('/gone')) return void response.writeHead(410, { 'x-reason': 'old' }).end('gone')
      if (url.endsWith('/cached')) return void response.writeHead(304, { etag: '"1"' }).end()
      if (url.endsWith('/empty')) return void response.writeHead(204).end()
      const type = { 'content-type': 'text/html', 'content-encoding': 'gzip', 'content-length': bytes.length }
      response.writeHead(206, { ...type, 'content-range': 'bytes 0-9/90', 'set-cookie': 'a=1' }).end(bytes)
    })
    await using server = await startServer({ upstream: upstream.url })
    const at = (path: string, init?: RequestInit) => fetch(`${server.url}/v1/${path}`, init)
    const page = await at('files/f/content')
    expect([page.status, await page.text()]).toEqual([206, 'compressed'])
    expect(Object.fromEntries(page.headers)).toMatchObject({
      'content-type': 'text/html',
      'content-range': 'bytes 0-9/90',
      'content-length': String(bytes.length),
      'content-security-policy': 'sandbox',
      'x-content-type-options': 'nosniff',
    })
    expect(page.headers.get('set-cookie')).toBeNull()
    const gone = await at('gone', { method: 'DELETE' })
    expect([gone.status, gone.headers.get('x-reason'), await gone.text()]).toEqual([410, 'old', 'gone'])
    expect((await at('cached')).status).toBe(304)
    expect((await at('empty', { method: 'POST', body: '' })).status).toBe(204)
    const head = await at('files/f/content', { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length'), upstream.requests.at(-1)?.method]).toEqual([
      206,
      String(bytes.length),
      'HEAD',
    ])
  })

  verifies('F-05', 'query strings › reach the upstream verbatim with turns, models and other endpoints', async () => {
    await using upstream = await startRecordingServer((_, response) => response.writeHead(400).end('{}'))
    await using server = await startServer({ upstream: `${upstream.url}?api-version=7` })
    const query = 'beta=true&tags[]=a%20b&&x=1%2B1+2'
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }], input: 'Hi' }),
    }
    const turns = ['chat/completions', 'responses', 'messages', 'messages/count_tokens', 'embeddings']
    for (const path of turns) await (await fetch(`${server.url}/v1/acme:ann/${path}?${query}`, init)).text()
    for (const path of ['models', 'files']) await (await fetch(`${server.url}/v1/acme:ann/${path}?${query}`)).text()
    expect(upstream.requests.map(({ url }) => url)).toEqual(
      [...turns, 'models', 'files'].map((path) => `/gateway/v1/${path}?api-version=7&${query}`),
    )
  })

  verifies('F-05', "client headers › reach the upstream with a turn, except this server's own", async () => {
    await using upstream = await startRecordingServer((_, response) => response.writeHead(400).end('{}'))
    await using server = await startServer({ upstream: upstream.url, apiKey: 'sk-server' })
    const sent = {
      'http-referer': 'https://shop.example',
      'x-title': 'Shop',
      'idempotency-key': 'k',
      'x-stainless-os': 'L',
    }
    const own = { 'x-threadkeep-person': 'ann', cookie: 'a=1', 'x-portkey-custom-host': 'http://evil.example' }
    await server.postChat('acme:ann', { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }, { ...sent, ...own })
    const [{ headers } = { headers: {} }] = upstream.requests
    expect(headers).toMatchObject({ ...sent, authorization: 'Bearer sk-server' })
    for (const name of Object.keys(own)) expect(headers).not.toHaveProperty(name)
  })

  it('a base URL › answers probes with 200 and reaches no upstream', async () => {
    await using upstream = await startRecordingServer()
    await using server = await startServer({ upstream: upstream.url })
    for (const path of ['/v1', '/v1/', '/v1/acme:ann', '/v1/acme:ann/', '/v1/acme%3Aann', '/v1/acme:ann/v1'])
      for (const method of ['HEAD', 'GET']) expect((await fetch(server.url + path, { method })).status).toBe(200)
    expect((await fetch(`${server.url}/v1/acme`, { method: 'HEAD' })).status).toBe(200)
    expect((await fetch(`${server.url}/v1/a b:c`)).status).toBe(400)
    expect(upstream.requests).toEqual([])
  })

  it('own routes › always win, in any spelling', async () => {
    await using upstream = await startRecordingServer()
    await using server = await startServer({ upstream: upstream.url })
    const statusOf = async (line: string): Promise<number> => {
      const [method = '', path = ''] = line.split(' ')
      return (await fetch(server.url + path, { method })).status
    }
    for (const line of [
      'GET /v1/chat/completions',
      'DELETE /v1/acme:ann/models/a%2Fm',
      'PUT /v1/acme:ann/conversations',
    ])
      expect([line, await statusOf(line)]).toEqual([line, 405])
    for (const path of ['chat/completions/', '/chat/completions', 'ch%61t/completions', 'chat%2Fcompletions'])
      expect([path, await statusOf(`POST /v1/acme:ann/${path}`)]).toEqual([path, 404])
    for (const line of ['POST /v1/acme:ann/v1/conversations', 'POST /v1//responses', 'GET /api/files', 'GET /v2/files'])
      expect([line, await statusOf(line)]).toEqual([line, 404])
    expect(upstream.requests).toEqual([])
    const body = { messages: [{ role: 'user', content: 'Hi' }] }
    await server.requestJson('POST /v1/acme:ann/v1/chat/completions', body)
    expect(await server.transcriptLines('acme:ann')).toEqual(['user: Hi'])
  })
})
