import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import fc from 'fast-check'
import OpenAI from 'openai'
import { afterAll, describe, expect, it } from 'vitest'
import { Credentials } from '../../src/server/auth/credentials.ts'
import { parseForwardPath } from '../../src/server/forward.ts'
import { openConfiguredServer } from './config/harness.ts'
import { type RecordingServer, sendRaw, startRecordingServer } from './recordingServer.ts'
import { startServer } from './start.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-forward-'))
afterAll(() => rmSync(folder, { recursive: true }))

const newCredentials = () => new Credentials(join(folder, `${crypto.randomUUID()}.json`))
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const codeOf = async (response: Response): Promise<unknown> => {
  const { error } = (await response.json()) as { error: { code?: string; type: string } }
  return [response.status, error.code ?? error.type]
}

describe('parseForwardPath', () => {
  const parse = (path: string) => {
    const { key, endpoint } = parseForwardPath(path)
    return [key === undefined ? undefined : [key.scope, key.id], endpoint]
  }

  it('splits the key and the endpoint', () => {
    const ann = ['acme', 'ann']
    for (const [path, key, endpoint] of [
      ['/v1/files', undefined, 'files'],
      ['/v1/files/abc', undefined, 'files/abc'],
      ['/v1/acme:ann/files', ann, 'files'],
      ['/v1/acme%3Aann/files/', ann, 'files/'],
      ['/v1/acme:ann/v1/files', ann, 'files'],
      ['/v1/acme/v1/files', ['acme', ''], 'files'],
      ['/v1/v1/files', undefined, 'files'],
      ['/v1//acme:ann//files//a', ann, 'files/a'],
      ['/v1/acme:ann', ann, ''],
      ['/v1', undefined, ''],
      ['/v1/models/ft:gpt:org', undefined, 'models/ft:gpt:org'],
      ['/v1/files/org%2Fname', undefined, 'files/org%2Fname'],
      ['/v1/files/a..b', undefined, 'files/a..b'],
    ] as const)
      expect([path, ...parse(path)]).toEqual([path, key, endpoint])
  })

  it('refuses a first segment that looks like a key and is none', () => {
    for (const path of [
      '/v1/acme%253Aann/files',
      '/v1/acme:/files',
      '/v1/:ann/files',
      '/v1/a%20b:c/files',
      '/v1/http:/evil',
      '/v1/a:b:c/files',
    ])
      expect(() => parse(path), path).toThrow('of key')
  })

  it('refuses dot segments and control characters in any encoding', () => {
    const parts = ['..', '.', '%2e%2e', '.%2E', '%252e%252e', '%25252e.', '..;a=b', 'a%2f..%2fb', '..%5c..', 'a%5c%2e.']
    const others = [
      `%${'25'.repeat(5_000)}2e`,
      '%00',
      'a%0d%0aHost:x',
      '%250a',
      'a\\b',
      'a b',
      'a#b',
      'a%',
      '%zz',
      'é',
      'a"b',
      '%7f',
    ]
    for (const part of [...parts, ...others]) {
      expect(() => parse(`/v1/files/${part}/x`), part).toThrow('is not allowed')
      expect(() => parse(`/v1/${part}`), part).toThrow('is not allowed')
    }
  })
})

describe('paths of forwarded requests', () => {
  it('of any shape › never leave the base path of the upstream', async () => {
    await using upstream = await startRecordingServer()
    await using server = await startServer({ upstream: upstream.url, apiKey: 'sk-secret' })
    const host = new URL(server.url).host
    const parts = ['..', '.', '', '%2e%2e', '%2E.', '%252e%252e', '..;', '%2f', '%5c..', '\\..', '@evil.example', 'a']
    const more = [
      'http:',
      'evil.example:80',
      'v1',
      'acme:bob',
      'files',
      '%00',
      '%0d%0aX:y',
      '//evil.example',
      '?',
      '#',
      '~',
    ]
    const path = fc.array(fc.constantFrom(...parts, ...more), { maxLength: 6 }).map((all) => all.join('/'))
    const start = fc.constantFrom(
      '/v1/',
      '/v1',
      '/v1/acme:ann/',
      '/v1/acme:ann/v1/',
      `http://${host}/v1/`,
      '//v1/',
      '*',
    )
    await fc.assert(
      fc.asyncProperty(start, path, async (prefix, rest) => {
        const count = upstream.requests.length
        const { status } = await sendRaw(
          server.url,
          `GET ${prefix}${rest} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
        )
        expect([200, 400, 404, 405]).toContain(status)
        for (const { url, headers } of upstream.requests.slice(count)) {
          expect(new URL(`http://x${url}`).pathname).toMatch(/^\/gateway\/v1\/./)
          expect(decodeURIComponent(url.split('?')[0] ?? '')).not.toMatch(/\/\.{1,2}(?:[/;\\]|$)|acme:ann|\r|\n/)
          expect(headers).not.toHaveProperty('x')
        }
      }),
      { numRuns: 300 },
    )
    expect(upstream.requests.length).toBeGreaterThan(10)
  })

  it('TRACE and unknown methods › are not forwarded', async () => {
    await using upstream = await startRecordingServer()
    await using server = await startServer({ upstream: upstream.url })
    const host = new URL(server.url).host
    for (const method of ['TRACE', 'PROPFIND', 'LINK'])
      expect(
        (await sendRaw(server.url, `${method} /v1/files HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`))
          .status,
      ).toBe(404)
    expect(upstream.requests).toEqual([])
  })
})

/** A server that requires keys, and keys of one tenant, of all tenants and of an administrator. */
async function startWithKeys(upstream: RecordingServer, forward?: readonly string[]) {
  const credentials = newCredentials()
  const { key: tenant } = await credentials.create({ scopes: ['acme'] }, 0)
  const { key: all } = await credentials.create({ scopes: ['*'] }, 0)
  const { key: admin } = await credentials.create({ scopes: ['acme'], rights: 'admin' }, 0)
  const server = await startServer({ credentials, upstream: upstream.url, apiKey: 'sk-server', forward })
  return { server, tenant, all, admin }
}

describe('access to forwarded endpoints', () => {
  it('with Threadkeep keys › requires one, checks its tenants and never sends it', async () => {
    await using upstream = await startRecordingServer()
    const { server, all, tenant } = await startWithKeys(upstream, ['upstream'])
    await using _ = server
    const get = (path: string, headers: Record<string, string>) => fetch(`${server.url}${path}`, { headers })
    expect(await codeOf(await get('/v1/files', {}))).toEqual([401, 'invalid_api_key'])
    expect(await codeOf(await get('/v1/files', bearer('sk-client')))).toEqual([401, 'invalid_api_key'])
    expect(await codeOf(await get('/v1/other:bob/files', bearer(tenant)))).toEqual([404, 'not_found'])
    const foreign = { ...bearer(tenant), 'x-threadkeep-key': 'other:bob' }
    expect(await codeOf(await get('/v1/files', foreign))).toEqual([404, 'not_found'])
    expect(upstream.requests).toEqual([])
    const own = { 'x-threadkeep-api-key': all, ...bearer('sk-client'), 'x-goog-api-key': 'g', 'x-note': tenant }
    expect((await get(`/v1/other:bob/files?key=${all}&a=1`, own)).status).toBe(200)
    expect((await get('/v1/acme:ann/files', bearer(tenant))).status).toBe(200)
    expect(JSON.stringify(upstream.requests)).not.toMatch(/tk_|sk-client|x-goog/)
    expect(upstream.requests.map(({ url, headers }) => [url, headers.authorization])).toEqual([
      ['/gateway/v1/files?a=1', 'Bearer sk-server'],
      ['/gateway/v1/files', 'Bearer sk-server'],
    ])
  })

  it("a tenant's key › reaches the upstream's account only if forward is configured", async () => {
    await using upstream = await startRecordingServer()
    const { server, tenant, all, admin } = await startWithKeys(upstream)
    await using _ = server
    const statusOf = async (key: string, method: string, path: string) =>
      (await fetch(`${server.url}/v1/acme:ann/${path}`, { method, headers: bearer(key) })).status
    for (const path of ['images/generations', 'audio/speech', 'moderations', 'completions'])
      expect([path, await statusOf(tenant, 'POST', path)]).toEqual([path, 200])
    for (const [method, path] of [
      ['GET', 'files'],
      ['POST', 'files'],
      ['DELETE', 'responses/resp_1'],
      ['POST', 'images%2f..%2ffiles'],
      ['GET', 'images/1'],
    ] as const)
      expect([path, await statusOf(tenant, method, path)]).toEqual([path, path.includes('..') ? 400 : 403])
    for (const key of [all, admin]) expect(await statusOf(key, 'GET', 'files')).toBe(200)
    expect(upstream.requests.length).toBe(6)
  })

  it('rate limits, hosts and origins › are checked as for turns', async () => {
    await using upstream = await startRecordingServer()
    await using server = await startServer({ upstream: upstream.url, rateLimits: { requestsPerMinute: 2 } })
    const raw = `GET /v1/files HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n`
    expect((await sendRaw(server.url, raw)).status).toBe(421)
    const page = await fetch(`${server.url}/v1/files`, { method: 'POST', headers: { origin: 'https://evil.example' } })
    expect(page.status).toBe(403)
    expect(upstream.requests).toEqual([])
    const statuses = [1, 2, 3].map(async () => (await fetch(`${server.url}/v1/files`)).status)
    expect((await Promise.all(statuses)).sort()).toEqual([200, 200, 429])
  })

  it("the upstream refuses the server's own key › its message stays private", async () => {
    const secret = '{"error":{"message":"Incorrect API key sk-server of org-1"}}'
    await using upstream = await startRecordingServer(({ url }, response) =>
      response.writeHead(Number(url.split('/').at(-1))).end(secret),
    )
    await using server = await startServer({ upstream: upstream.url, apiKey: 'sk-server' })
    const at = (status: number, headers = {}) => fetch(`${server.url}/v1/x/${status}`, { headers })
    expect(await codeOf(await at(401))).toEqual([502, 'upstream'])
    expect(await codeOf(await at(403))).toEqual([403, 'upstream_forbidden'])
    expect(await (await at(401, bearer('sk-client'))).text()).toBe(secret)
    expect(await (await at(404)).text()).toBe(secret)
    for (const status of [301, 302, 307]) expect((await at(status)).status).toBe(502)
    expect((await server.requestJson('GET /readyz')).status).toBe(200)
  })
})

describe('the upstream for forwarded endpoints', () => {
  it('is the first of the protocol, or one that the configuration names', async () => {
    await using first = await startRecordingServer()
    await using second = await startRecordingServer()
    await using claude = await startRecordingServer()
    const servers = { first, second, claude }
    const upstreams = [
      { name: 'first', base: first.url, key: 'sk-1' },
      { name: 'claude', base: claude.url, protocol: 'anthropic', key: 'sk-2' },
      { name: 'second', base: second.url, key: 'sk-3' },
    ]
    const targetsOf = async (config: object): Promise<readonly string[]> => {
      const file = join(folder, `${crypto.randomUUID()}.json`)
      await using opened = await openConfiguredServer(file, { store: 'ram:', profile: 'support', ...config })
      const before = Object.values(servers).map(({ requests }) => requests.length)
      const options = { maxRetries: 0, apiKey: 'k' }
      await new OpenAI({ ...options, baseURL: `${opened.server.url}/v1/acme:ann` }).files.list()
      const baseURL = `${opened.server.url}/v1/acme:ann`
      await new Anthropic({ ...options, baseURL }).messages.batches.list()
      return Object.entries(servers).flatMap(([name, { requests }], index) =>
        requests.slice(before[index]).map(({ url }) => `${name} ${url}`),
      )
    }
    const [files, batches] = ['/gateway/v1/files', '/gateway/v1/messages/batches']
    expect(await targetsOf({ upstreams })).toEqual([`first ${files}`, `claude ${batches}`])
    expect(await targetsOf({ upstreams, forward: 'second' })).toEqual([`second ${files}`, `second ${batches}`])
    expect(await targetsOf({ upstreams, forward: ['second', 'claude'] })).toEqual([
      `second ${files}`,
      `claude ${batches}`,
    ])
    expect(await targetsOf({ upstreams: upstreams.slice(1, 2) })).toEqual([`claude ${files}`, `claude ${batches}`])
    for (const [forward, rule] of [
      ['third', 'one of first, claude, second, or false'],
      [['first', 'third'], 'one of first, claude, second, or false'],
      [true, 'the name of an upstream, a list of names, or false'],
    ] as const)
      await expect(targetsOf({ upstreams, forward })).rejects.toThrow(rule)
    await expect(targetsOf({ forward: 'first' })).rejects.toThrow('omitted, because there are no upstreams')
  })

  it("none › 404 in the shape of the client's protocol", async () => {
    await using upstream = await startRecordingServer()
    await using offline = await startServer()
    await using disabled = await startServer({ upstream: upstream.url, forward: false })
    for (const { url } of [offline, disabled]) {
      const unknown = (path: string, headers = {}) => fetch(`${url}/v1/${path}`, { headers })
      const openai = { error: { type: 'not_found_error', param: null, code: 'unknown_url' } }
      const anthropic = { type: 'error', error: { type: 'not_found_error' } }
      for (const [path, headers, shape] of [
        ['files', {}, openai],
        ['threads/t/messages', {}, openai],
        ['acme:ann/files', { 'anthropic-version': '2023-06-01' }, anthropic],
        ['files', { 'x-api-key': 'k' }, anthropic],
        ['messages/batches', {}, anthropic],
        ['acme:ann/v1/messages/batches', {}, anthropic],
      ] as const) {
        const response = await unknown(path, headers)
        const body = (await response.json()) as { type?: string; error: { message: string } }
        expect([response.status, body]).toMatchObject([404, shape])
        expect(body.type).toBe('type' in shape ? 'error' : undefined)
        expect(body.error.message).toMatch(/^Unknown URL: GET \/v1\/.+ to forward other URLs/)
      }
    }
    expect(upstream.requests).toEqual([])
  })

  it('none › a refused upload does not block its connection', async () => {
    await using server = await startServer()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const body = Buffer.alloc(3_000_000)
    for (const path of ['files', 'batches', 'moderations']) {
      const upload = httpRequest(`${server.url}/v1/${path}`, { method: 'POST', agent })
      const responded = once(upload, 'response') as Promise<[IncomingMessage]>
      upload.end(body)
      const [response] = await responded
      response.resume()
      await once(response, 'end')
      expect(response.statusCode).toBe(404)
    }
    agent.destroy()
  })

  it('cannot be reached › 502', async () => {
    const upstream = await startRecordingServer()
    await upstream[Symbol.asyncDispose]()
    await using server = await startServer({ upstream: upstream.url })
    expect(await codeOf(await fetch(`${server.url}/v1/files`))).toEqual([502, 'upstream'])
    const headers = { 'anthropic-version': '2023-06-01' }
    expect(await codeOf(await fetch(`${server.url}/v1/files`, { headers }))).toEqual([502, 'api_error'])
  })
})
