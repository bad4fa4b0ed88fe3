import { describe, expect, it } from 'vitest'
import { profiles } from '../../../src/index.ts'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, startServer, type TestServer, user } from '../start.ts'
import { createSqliteUrls, createTestStores } from './testStores.ts'

const newSqliteUrl = createSqliteUrls()
const testStores = createTestStores(newSqliteUrl)
const now = Date.UTC(2026, 2, 2, 9)
const notFound = {
  status: 404,
  body: {
    error: {
      message: 'Not found, or not visible with this key.',
      type: 'not_found_error',
      param: null,
      code: 'not_found',
    },
  },
}
const badRequest = (code: string, param: string, message: string) => ({
  status: 400,
  body: { error: { message, type: 'invalid_request_error', param, code } },
})
const keysIn = ({ body }: { readonly body: unknown }) => {
  const { items, next } = body as { items: { key: string }[]; next: string | null }
  return [items.map(({ key }) => key), next]
}
/** Starts a server with a fixed clock. */
const start = (store: string, more: object = {}): Promise<TestServer> =>
  startServer({ memory: { store, clock: () => now, ...more } })

describe.each(testStores)('sessions API with %s', (_, store) => {
  verifies('T-17', 'creates a session with lifetimes and metadata, and refuses a second one', async () => {
    await using server = await start(store())
    const session = {
      key: 'acme:ann',
      idle: 3_600_000,
      age: 86_400_000,
      person: 'ann@example.com',
      metadata: { channel: 'sms' },
    }
    const view = {
      ...session,
      startedAt: now,
      touchedAt: now,
      expiresAt: now + 3_600_000,
      messages: 0,
      lastSequence: 0,
    }
    expect(await server.requestJson('POST /api/sessions', session)).toEqual({ status: 201, body: view })
    expect(await server.requestJson('GET /api/sessions/acme:ann')).toEqual({ status: 200, body: view })
    expect(await server.requestJson('POST /api/sessions', { key: 'acme:ann' })).toEqual({
      status: 409,
      body: {
        error: {
          message: 'Session acme:ann already exists. Choose another key.',
          type: 'conflict_error',
          param: 'key',
          code: 'conflict',
        },
      },
    })
  })

  it('with concurrent requests creates a session once', async () => {
    await using server = await start(store())
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => server.requestJson('POST /api/sessions', { key: 'acme:ann' })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409])
  })

  it('lists a session from its first message on, without expiry by default', async () => {
    await using server = await start(store())
    expect(await server.requestJson('GET /api/sessions/acme:ann')).toEqual(notFound)
    await server.memory.append('acme:ann', [user('My cat is called Miso.')])
    const times = { startedAt: now, touchedAt: now, expiresAt: null }
    const view = { key: 'acme:ann', ...times, messages: 1, lastSequence: 1, tokens: 11 }
    expect(await server.requestJson('GET /api/sessions/acme:ann')).toEqual({ status: 200, body: view })
    expect(await server.requestJson('GET /api/sessions')).toEqual({ status: 200, body: { items: [view], next: null } })
  })

  it('lists sessions in pages, without internal keys', async () => {
    await using server = await start(store())
    for (const key of ['acme:cid', 'acme:ann', 'other:dan', 'acme', 'acme:bob'])
      await server.memory.append(key, [user('Hello')])
    await server.memory.remember('quiet', { category: 'domain', key: 'hours', value: '9 to 5' })
    for (const content of ['A', 'B']) await server.postChat('acme:ann', { messages: [user(content)] })
    await server.requestJson('POST /api/scopes/acme/knowledge', {
      category: 'domain',
      key: 'pet',
      value: 'cat',
      person: 'ann',
    })
    expect(keysIn(await server.requestJson('GET /api/sessions'))).toEqual([
      ['acme', 'acme:ann', 'acme:bob', 'acme:cid', 'other:dan'],
      null,
    ])
    expect(keysIn(await server.requestJson('GET /api/sessions?scope=acme&limit=2'))).toEqual([
      ['acme', 'acme:ann'],
      'acme:ann',
    ])
    expect(keysIn(await server.requestJson('GET /api/sessions?scope=acme&limit=2&after=acme:ann'))).toEqual([
      ['acme:bob', 'acme:cid'],
      null,
    ])
    expect(keysIn(await server.requestJson('GET /api/sessions?scope=nobody'))).toEqual([[], null])
  })

  it('on DELETE sends the end event and deletes the session', async () => {
    const ends: unknown[] = []
    await using server = await start(store(), {
      onSessionEnd: (id: string, { messageCount }: { messageCount: number }) => void ends.push([id, messageCount]),
    })
    await server.postChat('acme:ann', { messages: [user('Hello')] })
    expect(await server.requestJson('DELETE /api/sessions/acme:ann')).toEqual({ status: 204, body: undefined })
    await server.memory.lifecycle.whenIdle()
    expect(ends).toEqual([['acme:ann', 2]])
    expect(await server.requestJson('GET /api/sessions/acme:ann')).toEqual(notFound)
    expect(await server.requestJson('DELETE /api/sessions/acme:ann')).toEqual(notFound)
    expect(await server.requestJson('GET /api/sessions')).toEqual({ status: 200, body: { items: [], next: null } })
    const again = await server.requestJson('POST /api/sessions', { key: 'acme:ann' })
    expect([
      again.status,
      ((await server.requestJson('GET /api/sessions/acme:ann/metrics')).body as { turns: number }).turns,
    ]).toEqual([201, 0])
  })

  verifies('T-17', 'transfers a session, and answers 410 for the old key', async () => {
    await using server = await start(store())
    await server.memory.append('acme:web-1', [user('My cat is called Miso.'), assistant('Noted.')])
    await server.memory.append('acme:taken', [user('Hello')])
    expect(await server.requestJson('POST /api/sessions/acme:web-1/transfer', { to: 'acme:taken' })).toMatchObject({
      status: 409,
      body: { error: { code: 'conflict' } },
    })
    expect(await server.requestJson('POST /api/sessions/acme:web-1/transfer', { to: 'other:ann' })).toEqual(
      badRequest('bad-option', 'to', 'to is "other:ann"; it must be another session of acme.'),
    )
    expect(await server.requestJson('POST /api/sessions/acme:web-1/transfer', { to: 'acme:+1555' })).toEqual({
      status: 200,
      body: { key: 'acme:+1555' },
    })
    expect(await server.transcriptLines('acme:+1555')).toEqual(['user: My cat is called Miso.', 'assistant: Noted.'])
    expect(await server.requestJson('GET /api/sessions/acme:web-1')).toEqual({
      status: 410,
      body: {
        error: {
          message: 'Session acme:web-1 was transferred to acme:+1555. Use that key.',
          type: 'moved_error',
          param: null,
          code: 'moved',
        },
      },
    })
    expect(keysIn(await server.requestJson('GET /api/sessions'))).toEqual([['acme:+1555', 'acme:taken'], null])
  })
})

describe('sessions API', () => {
  it('refuses invalid requests', async () => {
    await using server = await start('ram:')
    const invalid = [
      [
        'GET /api/sessions?limt=5',
        undefined,
        badRequest(
          'unknown_parameter',
          'limt',
          'Unknown query parameter "limt". Did you mean limit? Use one of: scope, after, limit, q, template.',
        ),
      ],
      [
        'GET /api/sessions?limit=0',
        undefined,
        badRequest('bad_option', 'limit', 'limit is "0"; it must be a whole number from 1 to 500.'),
      ],
      [
        'GET /api/sessions?scope=a:b',
        undefined,
        badRequest('bad-key', 'scope', 'a:b is a session, not a tenant. Use a.'),
      ],
      ['POST /api/sessions', {}, badRequest('bad_option', 'key', 'key must be text.')],
      [
        'POST /api/sessions',
        { key: 'acme' },
        badRequest('no_session', 'key', 'acme is a tenant, which needs no creation. Use acme:session.'),
      ],
      [
        'POST /api/sessions',
        { key: 'a:b', idle: 0 },
        badRequest('bad_option', 'idle', 'idle must be a whole number of milliseconds, 1 or more.'),
      ],
      [
        'POST /api/sessions',
        { key: 'a:b', ttl: 5 },
        badRequest(
          'unknown_field',
          'ttl',
          'Unknown field "ttl". Use one of: key, template, idle, age, person, metadata.',
        ),
      ],
      [
        'POST /api/sessions',
        { key: 'a:b', template: 'vip' },
        badRequest(
          'bad-option',
          'template',
          'Unknown template "vip". None are configured; add templates to the configuration file.',
        ),
      ],
    ] as const
    for (const [request, body, response] of invalid)
      expect([request, await server.requestJson(request, body)]).toEqual([request, response])
    await server.memory.append('acme', [user('Hello')])
    expect(await server.requestJson('DELETE /api/sessions/acme')).toEqual(
      badRequest(
        'no_session',
        'key',
        'acme is a tenant and cannot be ended. To delete its data, POST { "scope": "acme" } to /api/forget.',
      ),
    )
  })

  verifies('T-17', 'creates a session from a template, and lists sessions of all stores', async () => {
    const { thread, support } = profiles
    const ways = { scope: thread, session: thread, templates: { hotline: { profile: support, idle: 60_000 } } }
    await using server = await startServer({ profiles: ways, memory: { store: newSqliteUrl(), clock: () => now } })
    expect(await server.requestJson('GET /api/sessions/acme:ann')).toEqual(notFound)
    expect(await server.requestJson('POST /api/sessions', { key: 'acme:ann', template: 'hotline' })).toMatchObject({
      status: 201,
      body: { template: 'hotline', idle: 60_000 },
    })
    const response = await server.postChat('acme:ann', { messages: [user('Hello')] })
    expect(response.headers.get('x-threadkeep-profile')).toBe('support')
    await server.postChat('acme:bob', { messages: [user('Hello')] })
    expect(keysIn(await server.requestJson('GET /api/sessions'))).toEqual([['acme:ann', 'acme:bob'], null])
    expect(await server.requestJson('GET /api/sessions/acme:ann/messages')).toMatchObject({
      status: 200,
      body: { items: [{ content: 'Hello' }, {}] },
    })
  })

  verifies('T-17', 'begins an expired session from its template again', async () => {
    const clock = { now: now }
    const ways = {
      scope: profiles.thread,
      session: profiles.thread,
      templates: { kiosk: { profile: profiles.support, idle: 60_000 } },
    }
    await using server = await startServer({
      profiles: ways,
      memory: { clock: () => clock.now },
      clock: () => clock.now,
    })
    const say = (headers: Readonly<Record<string, string>>) =>
      server.postChat('acme:ann', { messages: [user('Hello')] }, headers)
    for (const at of [now, now + 120_000, now + 240_000]) {
      clock.now = at
      await say({ 'x-threadkeep-template': 'kiosk' })
      expect(await server.requestJson('GET /api/sessions/acme:ann')).toMatchObject({
        body: { template: 'kiosk', idle: 60_000, startedAt: at, expiresAt: at + 60_000, messages: 2 },
      })
    }
    // The template of an expired session does not apply to the next one with its key.
    clock.now += 120_000
    const plain = await say({})
    expect(plain.headers.get('x-threadkeep-profile')).toBe('thread')
    expect((await server.requestJson('GET /api/sessions/acme:ann')).body).not.toHaveProperty('template')
  })

  verifies('T-16', 'with sessions off refuses to create one', async () => {
    await using server = await startServer({ profiles: { scope: profiles.thread, session: undefined, templates: {} } })
    expect(await server.requestJson('POST /api/sessions', { key: 'acme:ann' })).toEqual(
      badRequest('no_sessions', 'key', 'Session memory is off on this server. Use a key without a session.'),
    )
    await server.postChat('acme:ann', { messages: [user('My cat is called Miso.')] })
    await server.postChat('acme', { messages: [user('My dog is called Rex.')] })
    expect(keysIn(await server.requestJson('GET /api/sessions'))).toEqual([['acme'], null])
  })

  verifies('T-16', 'do not change the memory of their tenant', async () => {
    const { thread, support } = profiles
    const ways = { scope: thread, session: support, templates: {} }
    const readTenant = async (server: TestServer): Promise<readonly unknown[]> => {
      await server.postChat('acme', { messages: [user('Our shop opens at 9.')] })
      await server.postChat('acme', { messages: [user('When does our shop open?')] })
      return Promise.all(
        ['', '/messages', '/context', '/summaries', '/facts', '/record'].map((path) =>
          server.requestJson(`GET /api/sessions/acme${path}`),
        ),
      )
    }
    await using alone = await startServer({ profiles: ways, memory: { store: newSqliteUrl(), clock: () => now } })
    await using busy = await startServer({ profiles: ways, memory: { store: newSqliteUrl(), clock: () => now } })
    for (const name of ['ann', 'bob'])
      await busy.postChat(`acme:${name}`, { messages: [user('When does our shop open? It opens at 11.')] })
    const [before, after] = [await readTenant(alone), await readTenant(busy)]
    expect(after).toEqual(before)
    expect(JSON.stringify(before)).toContain('opens at 9')
  })
})
