import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { apiRoutes } from '../../src/server/api/apiRoutes.ts'
import { Credentials } from '../../src/server/auth/credentials.ts'
import { modelRoutes } from '../../src/server/modelRoutes.ts'
import { verifies } from '../requirements/verifies.ts'
import { startServer, type TestServer, user } from './start.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-isolation-'))
afterAll(() => rmSync(folder, { recursive: true }))

type Answer = { readonly status: number | undefined; readonly body: string }
type Request = {
  readonly method: string
  readonly path: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** Sends a path unchanged, which HTTP clients would normalise. */
function sendRaw({ url }: TestServer, { method, path, body, headers }: Request): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const { hostname, port } = new URL(url)
  const outgoing = request(
    { hostname, port, method, path, headers: { 'content-type': 'application/json', ...headers } },
    (incoming) => {
      const chunks: Buffer[] = []
      // A stream of events has no end.
      if (/^\/api\/events/.test(path) && incoming.statusCode === 200) {
        resolve({ status: 200, body: '' })
        outgoing.destroy()
      }
      incoming
        .on('data', (chunk: Buffer) => chunks.push(chunk))
        .on('end', () => resolve({ status: incoming.statusCode, body: Buffer.concat(chunks).toString() }))
    },
  )
  outgoing.on('error', reject).end(['POST'].includes(method) ? body : undefined)
  return promise
}

/** A server with two tenants, each with its own key, and one of every resource for one of them. */
async function startTenants() {
  const credentials = new Credentials(join(folder, `${crypto.randomUUID()}.json`))
  const { key: acme } = await credentials.create({ scopes: ['acme'] }, 0)
  const { key: other } = await credentials.create({ scopes: ['other'] }, 0)
  const { key: operator } = await credentials.create({ scopes: ['*'], rights: 'admin' }, 0)
  const server = await startServer({ credentials })
  const as = (key: string) => ({ authorization: `Bearer ${key}` })
  const ask = async (line: string, body: unknown): Promise<Record<string, string>> =>
    (await server.requestJson(line, body, as(acme))).body as Record<string, string>
  for (const content of ['My cat is called Miso.', 'What is my cat called?'])
    await server.postChat('acme:ann', { messages: [user(content)] }, as(acme))
  const response = await server.postChat('acme:ann', { messages: [user('What is it called?')] }, as(acme))
  const { id: conversation = '' } = await ask('POST /v1/acme/conversations', {
    items: [{ role: 'user', content: 'Hello' }],
  })
  const { id: storedResponse = '' } = await ask('POST /v1/acme:ann/responses', { model: 'any', input: 'Hello' })
  const { id: knowledge = '' } = await ask('POST /api/scopes/acme/knowledge', {
    category: 'domain',
    key: 'hours',
    value: '9 to 5',
  })
  const uploaded = await fetch(`${server.url}/api/scopes/acme/files`, {
    method: 'POST',
    headers: { ...as(acme), 'x-filename': 'a.txt' },
    body: 'Hello',
  })
  const { id: file = '' } = (await uploaded.json()) as Record<string, string>
  const receipt = response.headers.get('x-threadkeep-receipt') ?? ''
  return {
    server,
    as,
    acme,
    other,
    operator,
    names: {
      key: 'acme:ann',
      scope: 'acme',
      conversation,
      knowledge,
      file,
      receipt,
      response: storedResponse,
      item: 'msg_1',
      branch: '1',
      model: 'threadkeep-offline',
    },
  }
}

/** Body and query that each route needs. */
const bodies: Readonly<Record<string, unknown>> = {
  'POST /api/sessions': { key: 'acme:new' },
  'POST /api/sessions/{key}/transfer': { to: 'acme:moved' },
  'POST /api/forget': { key: 'acme:ann' },
  'POST /api/forget/preview': { key: 'acme:ann' },
}
const spoken = { model: 'any', messages: [user('Hello')], input: 'Hello', items: [], metadata: {}, max_tokens: 5 }
const queries: Readonly<Record<string, string>> = {
  'GET /api/sessions': '?scope=acme',
  'GET /api/scopes/{scope}/search': '?q=cat',
  'GET /api/events': '?scope=acme',
  'GET /api/usage': '?scope=acme',
  'GET /api/sessions/{key}/replay': '?profile=summary',
  'GET /learning/optimizer/status': '?key=acme:ann',
}
/** Routes without tenant data. */
const common: ReadonlySet<string> = new Set([
  'GET /',
  'GET /assets/{asset}',
  'GET /api/access',
  'GET /v1',
  'GET /healthz',
  'GET /readyz',
  'GET /openapi.json',
  'GET /docs',
])
/** Names its workspace in the message and uses another protocol: see mcp/http.test.ts. */
const another = 'POST /mcp'
const routes = Object.keys({ ...modelRoutes, ...apiRoutes }).filter((route) => !common.has(route) && route !== another)

function requestTo(route: string, names: Readonly<Record<string, string>>): Request {
  const [method = '', template = ''] = route.split(' ')
  const path = `${template.replace(/\{(\w+)\}/g, (_, name: string) => names[name] ?? 'missing')}${queries[route] ?? ''}`
  const headers =
    template.startsWith('/v1/') && !template.includes('{key}') ? { 'x-threadkeep-key': names.key ?? '' } : {}
  return { method, path, body: JSON.stringify(bodies[route] ?? (template.startsWith('/v1/') ? spoken : {})), headers }
}

describe('tenant isolation', () => {
  it('a foreign key on any route › gets the same bytes as for a missing resource', async () => {
    const { server, as, other, names } = await startTenants()
    await using _ = server
    const nowhere = {
      ...names,
      key: 'nobody:ann',
      scope: 'nobody',
      receipt: names.receipt.replace(/[0-9a-f]{16}$/, '0'.repeat(16)),
    }
    const plain =
      '{"error":{"message":"Not found, or not visible with this key.","type":"not_found_error","param":null,"code":"not_found"}}'
    const anthropic =
      '{"type":"error","error":{"type":"not_found_error","message":"Not found, or not visible with this key."}}'
    for (const route of routes) {
      const foreign = requestTo(route, names)
      const absent = requestTo(route, nowhere)
      const [one, two] = [
        await sendRaw(server, { ...foreign, headers: { ...foreign.headers, ...as(other) } }),
        await sendRaw(server, { ...absent, headers: { ...absent.headers, ...as(other) } }),
      ]
      const body = /\/messages(?:\/count_tokens)?$/.test(route) && route.includes('/v1/') ? anthropic : plain
      expect([route, one]).toEqual([route, { status: 404, body }])
      expect([route, two]).toEqual([route, one])
    }
    expect(await server.transcriptLines('acme:ann')).toHaveLength(8)
  })

  it('an own key on the same routes › is answered', async () => {
    const { server, as, acme, operator, names } = await startTenants()
    await using _ = server
    const isLast = (route: string): boolean => route.startsWith('DELETE') || /forget|transfer/.test(route)
    const answered: (readonly [string, unknown])[] = []
    for (const route of routes.filter(
      (one) => !isLast(one) && !/branches\/|embeddings|count_tokens|cancel$|files$|import$/.test(one),
    )) {
      const asked = requestTo(route, names)
      const { status } = await sendRaw(server, {
        ...asked,
        headers: { ...asked.headers, ...as(['GET /metrics', 'GET /api/operations'].includes(route) ? operator : acme) },
      })
      answered.push([route, status === 201 ? 200 : status])
    }
    expect(answered).toEqual(
      answered.map(([route]) => [route, route === 'POST /api/scopes/{scope}/knowledge' ? 400 : 200]),
    )
  })

  it("listing sessions without a scope › lists the tenant's own only", async () => {
    const { server, as, acme, other, operator } = await startTenants()
    await using _ = server
    await server.memory.append('other:eve', [user('Hello')])
    const listed = async (key: string) =>
      (
        (await server.requestJson('GET /api/sessions', undefined, as(key))).body as { items: { key: string }[] }
      ).items.map((item) => item.key.replace(/conv_.*/, 'conv'))
    expect(await listed(acme)).toEqual(['acme:ann', 'acme:conv'])
    expect(await listed(other)).toEqual(['other:eve'])
    expect(await listed(operator)).toEqual(['acme:ann', 'acme:conv', 'other:eve'])
  })

  verifies('T-11', 'lookalike names › do not reach another tenant', async () => {
    const { server, as, other, names } = await startTenants()
    await using _ = server
    const hostile = [
      ...[
        '..',
        '.',
        '%2e%2e',
        '..%2facme',
        'other%2f..%2facme',
        'other/../acme',
        'acme%00',
        'other%00acme',
        '%61%63%6d%65',
        '%2561cme',
        'acme%20',
      ],
      ...[
        'other:ann:receipts',
        'other::files',
        ':files',
        'acme:ann:receipts',
        'acme::person:ann',
        '__proto__',
        'constructor',
        '*',
        '%2a',
        '%',
        '%zz',
        '%c0%ae',
      ],
      ...[
        'ACME',
        'acme.',
        'acme%E2%80%8B',
        '\u0061cme'.normalize('NFD'),
        "acme'--",
        'acme;other',
        'a'.repeat(10_000),
        `other:${'a'.repeat(10_000)}`,
      ],
    ]
    const found: unknown[] = []
    for (const name of hostile) {
      for (const path of [
        `/api/sessions/${name}/messages`,
        `/api/scopes/${name}/knowledge`,
        `/api/sessions?scope=${name}`,
        `/v1/${name}/conversations/${names.conversation}`,
      ]) {
        const { status, body } = await sendRaw(server, { method: 'GET', path, body: '', headers: as(other) })
        if ((status !== 400 && status !== 404) || /Miso|9 to 5|Hello/.test(body))
          found.push([path.slice(0, 80), status, body.slice(0, 200)])
      }
    }
    expect(found).toEqual([])
    expect(server.faults).toEqual([])
  })

  it('foreign ids under an own path › do not reach another tenant', async () => {
    const { server, as, other, names } = await startTenants()
    await using _ = server
    const own = { ...names, key: 'other:eve', scope: 'other' }
    await server.memory.append('other:eve', [user('Hello')])
    const routesWithIds = routes.filter((route) => /\{(?:conversation|knowledge|file|branch)\}/.test(route))
    for (const route of routesWithIds) {
      const asked = requestTo(route, own)
      expect([
        route,
        (await sendRaw(server, { ...asked, headers: { ...asked.headers, ...as(other) } })).status,
      ]).toEqual([route, 404])
    }
    for (const id of [
      '../acme/files/x',
      '..%2f..%2facme',
      '%00',
      'file:x',
      names.receipt.toUpperCase(),
      'rc__',
      `rc_${Buffer.from('acme::files').toString('base64url')}_${'0'.repeat(16)}`,
    ]) {
      for (const path of [
        `/api/scopes/other/files/${id}`,
        `/api/receipts/${id}`,
        `/api/scopes/other/knowledge/${id}`,
      ]) {
        const { status } = await sendRaw(server, {
          method: path.includes('knowledge') ? 'DELETE' : 'GET',
          path,
          body: '',
          headers: as(other),
        })
        expect([path, status]).toEqual([path, 404])
      }
    }
    expect(server.faults).toEqual([])
  })
})
