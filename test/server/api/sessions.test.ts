import { describe, expect, it } from 'vitest'
import { profiles } from '../../../src/index.ts'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, type Started, startServer, user } from '../start.ts'
import { freshFile, places } from './places.ts'

const began = Date.UTC(2026, 2, 2, 9)
const absent = {
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
const refused = (code: string, param: string, message: string) => ({
  status: 400,
  body: { error: { message, type: 'invalid_request_error', param, code } },
})
const keysIn = ({ body }: { readonly body: unknown }) => {
  const { items, next } = body as { items: { key: string }[]; next: string | null }
  return [items.map(({ key }) => key), next]
}
/** A server whose time stands still. */
const start = (store: string, more: object = {}): Promise<Started> =>
  startServer({ memory: { store, clock: () => began, ...more } })

describe.each(places)('sessions over HTTP, kept in %s', (_, store) => {
  verifies('T-17', 'begin with a lifetime and notes of their own, once', async () => {
    await using server = await start(store())
    const begun = {
      key: 'acme:ann',
      idle: 3_600_000,
      age: 86_400_000,
      person: 'ann@example.com',
      metadata: { channel: 'sms' },
    }
    const shown = { ...begun, startedAt: began, touchedAt: began, expiresAt: began + 3_600_000, messages: 0 }
    expect(await server.ask('POST /api/sessions', begun)).toEqual({ status: 201, body: shown })
    expect(await server.ask('GET /api/sessions/acme:ann')).toEqual({ status: 200, body: shown })
    expect(await server.ask('POST /api/sessions', { key: 'acme:ann' })).toEqual({
      status: 409,
      body: {
        error: {
          message: 'Session acme:ann has begun already. Choose another key.',
          type: 'conflict_error',
          param: 'key',
          code: 'conflict',
        },
      },
    })
  })

  it('begin once, whoever else begins them at the same time', async () => {
    await using server = await start(store())
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => server.ask('POST /api/sessions', { key: 'acme:ann' })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409])
  })

  it('are there from their first message on, and have no end unless one is set', async () => {
    await using server = await start(store())
    expect(await server.ask('GET /api/sessions/acme:ann')).toEqual(absent)
    await server.memory.append('acme:ann', [user('My cat is called Miso.')])
    const shown = { key: 'acme:ann', startedAt: began, touchedAt: began, expiresAt: null, messages: 1 }
    expect(await server.ask('GET /api/sessions/acme:ann')).toEqual({ status: 200, body: shown })
    expect(await server.ask('GET /api/sessions')).toEqual({ status: 200, body: { items: [shown], next: null } })
  })

  it('are listed page by page, without what the engine keeps for itself', async () => {
    await using server = await start(store())
    for (const key of ['acme:cid', 'acme:ann', 'other:dan', 'acme', 'acme:bob'])
      await server.memory.append(key, [user('Hello')])
    await server.memory.remember('quiet', { category: 'domain', key: 'hours', value: '9 to 5' })
    for (const content of ['A', 'B']) await server.post('acme:ann', { messages: [user(content)] })
    await server.ask('POST /api/scopes/acme/knowledge', { category: 'domain', key: 'pet', value: 'cat', person: 'ann' })
    expect(keysIn(await server.ask('GET /api/sessions'))).toEqual([
      ['acme', 'acme:ann', 'acme:bob', 'acme:cid', 'other:dan'],
      null,
    ])
    expect(keysIn(await server.ask('GET /api/sessions?scope=acme&limit=2'))).toEqual([['acme', 'acme:ann'], 'acme:ann'])
    expect(keysIn(await server.ask('GET /api/sessions?scope=acme&limit=2&after=acme:ann'))).toEqual([
      ['acme:bob', 'acme:cid'],
      null,
    ])
    expect(keysIn(await server.ask('GET /api/sessions?scope=nobody'))).toEqual([[], null])
  })

  it('end when they are deleted: whoever wants to know hears of it, then they are gone', async () => {
    const ends: unknown[] = []
    await using server = await start(store(), {
      onSessionEnd: (id: string, { messageCount }: { messageCount: number }) => void ends.push([id, messageCount]),
    })
    await server.post('acme:ann', { messages: [user('Hello')] })
    expect(await server.ask('DELETE /api/sessions/acme:ann')).toEqual({ status: 204, body: undefined })
    await server.memory.lifecycle.settled()
    expect(ends).toEqual([['acme:ann', 2]])
    expect(await server.ask('GET /api/sessions/acme:ann')).toEqual(absent)
    expect(await server.ask('DELETE /api/sessions/acme:ann')).toEqual(absent)
    expect(await server.ask('GET /api/sessions')).toEqual({ status: 200, body: { items: [], next: null } })
    const again = await server.ask('POST /api/sessions', { key: 'acme:ann' })
    expect([
      again.status,
      ((await server.ask('GET /api/sessions/acme:ann/metrics')).body as { turns: number }).turns,
    ]).toEqual([201, 0])
  })

  verifies('T-17', 'go on under another key, and answer 410 under the old one', async () => {
    await using server = await start(store())
    await server.memory.append('acme:web-1', [user('My cat is called Miso.'), assistant('Noted.')])
    await server.memory.append('acme:taken', [user('Hello')])
    expect(await server.ask('POST /api/sessions/acme:web-1/transfer', { to: 'acme:taken' })).toMatchObject({
      status: 409,
      body: { error: { code: 'conflict' } },
    })
    expect(await server.ask('POST /api/sessions/acme:web-1/transfer', { to: 'other:ann' })).toEqual(
      refused('bad-option', 'to', 'to is "other:ann"; it must be another session of acme.'),
    )
    expect(await server.ask('POST /api/sessions/acme:web-1/transfer', { to: 'acme:+1555' })).toEqual({
      status: 200,
      body: { key: 'acme:+1555' },
    })
    expect(await server.said('acme:+1555')).toEqual(['user: My cat is called Miso.', 'assistant: Noted.'])
    expect(await server.ask('GET /api/sessions/acme:web-1')).toEqual({
      status: 410,
      body: {
        error: {
          message: 'Session acme:web-1 goes on as acme:+1555. Ask for that one.',
          type: 'moved_error',
          param: null,
          code: 'moved',
        },
      },
    })
    expect(keysIn(await server.ask('GET /api/sessions'))).toEqual([['acme:+1555', 'acme:taken'], null])
  })
})

describe('sessions over HTTP', () => {
  it('say what is wrong with a request', async () => {
    await using server = await start('ram:')
    const faults = [
      [
        'GET /api/sessions?limt=5',
        undefined,
        refused('unknown_parameter', 'limt', '"limt" is unknown here; this address takes scope, after, limit.'),
      ],
      [
        'GET /api/sessions?limit=0',
        undefined,
        refused('bad_option', 'limit', 'limit is "0"; it must be a whole number from 1 to 500.'),
      ],
      [
        'GET /api/sessions?scope=a:b',
        undefined,
        refused('bad-key', 'scope', 'a:b is a session, and this is about tenants. Write a.'),
      ],
      ['POST /api/sessions', {}, refused('bad_option', 'key', 'key must be text.')],
      [
        'POST /api/sessions',
        { key: 'acme' },
        refused('no_session', 'key', 'acme is a tenant, which is always there. Write acme:session.'),
      ],
      [
        'POST /api/sessions',
        { key: 'a:b', idle: 0 },
        refused('bad_option', 'idle', 'idle must be a whole number of milliseconds, 1 or more.'),
      ],
      [
        'POST /api/sessions',
        { key: 'a:b', ttl: 5 },
        refused(
          'unknown_field',
          'ttl',
          '"ttl" is unknown here; the body may have key, template, idle, age, person, metadata.',
        ),
      ],
      [
        'POST /api/sessions',
        { key: 'a:b', template: 'vip' },
        refused(
          'bad-option',
          'template',
          'Unknown template "vip". None are configured; add templates to the configuration file.',
        ),
      ],
    ] as const
    for (const [request, body, answer] of faults)
      expect([request, await server.ask(request, body)]).toEqual([request, answer])
    await server.memory.append('acme', [user('Hello')])
    expect(await server.ask('DELETE /api/sessions/acme')).toEqual(
      refused(
        'no_session',
        'key',
        'acme is a tenant and does not end. To forget it, POST { "scope": "acme" } to /api/forget.',
      ),
    )
  })

  verifies('T-17', 'begin from a template, and are listed wherever they live', async () => {
    const { thread, support } = profiles
    const ways = { scope: thread, session: thread, templates: { hotline: { profile: support, idle: 60_000 } } }
    await using server = await startServer({ ways, memory: { store: freshFile(), clock: () => began } })
    expect(await server.ask('GET /api/sessions/acme:ann')).toEqual(absent)
    expect(await server.ask('POST /api/sessions', { key: 'acme:ann', template: 'hotline' })).toMatchObject({
      status: 201,
      body: { template: 'hotline', idle: 60_000 },
    })
    const response = await server.post('acme:ann', { messages: [user('Hello')] })
    expect(response.headers.get('x-threadkeep-profile')).toBe('support')
    await server.post('acme:bob', { messages: [user('Hello')] })
    expect(keysIn(await server.ask('GET /api/sessions'))).toEqual([['acme:ann', 'acme:bob'], null])
    expect(await server.ask('GET /api/sessions/acme:ann/messages')).toMatchObject({
      status: 200,
      body: { items: [{ content: 'Hello' }, {}] },
    })
  })

  verifies('T-17', 'begin anew from their template once they are over, with its lifetime', async () => {
    const clock = { now: began }
    const ways = {
      scope: profiles.thread,
      session: profiles.thread,
      templates: { kiosk: { profile: profiles.support, idle: 60_000 } },
    }
    await using server = await startServer({ ways, memory: { clock: () => clock.now }, clock: () => clock.now })
    const say = (headers: Readonly<Record<string, string>>) =>
      server.post('acme:ann', { messages: [user('Hello')] }, headers)
    for (const at of [began, began + 120_000, began + 240_000]) {
      clock.now = at
      await say({ 'x-threadkeep-template': 'kiosk' })
      expect(await server.ask('GET /api/sessions/acme:ann')).toMatchObject({
        body: { template: 'kiosk', idle: 60_000, startedAt: at, expiresAt: at + 60_000, messages: 2 },
      })
    }
    // One that is over says nothing about the next of its name.
    clock.now += 120_000
    const plain = await say({})
    expect(plain.headers.get('x-threadkeep-profile')).toBe('thread')
    expect((await server.ask('GET /api/sessions/acme:ann')).body).not.toHaveProperty('template')
  })

  verifies('T-16', 'do not exist where they are turned off', async () => {
    await using server = await startServer({ ways: { scope: profiles.thread, session: undefined, templates: {} } })
    expect(await server.ask('POST /api/sessions', { key: 'acme:ann' })).toEqual(
      refused('no_sessions', 'key', 'This server does not remember sessions. Leave the session out of the key.'),
    )
    await server.post('acme:ann', { messages: [user('My cat is called Miso.')] })
    await server.post('acme', { messages: [user('My dog is called Rex.')] })
    expect(keysIn(await server.ask('GET /api/sessions'))).toEqual([['acme'], null])
  })

  verifies('T-16', 'change nothing for their tenant', async () => {
    const { thread, support } = profiles
    const ways = { scope: thread, session: support, templates: {} }
    const askedOf = async (server: Started): Promise<readonly unknown[]> => {
      await server.post('acme', { messages: [user('Our shop opens at 9.')] })
      await server.post('acme', { messages: [user('When does our shop open?')] })
      return Promise.all(
        ['', '/messages', '/context', '/summaries', '/facts'].map((path) =>
          server.ask(`GET /api/sessions/acme${path}`),
        ),
      )
    }
    await using alone = await startServer({ ways, memory: { store: freshFile(), clock: () => began } })
    await using busy = await startServer({ ways, memory: { store: freshFile(), clock: () => began } })
    for (const name of ['ann', 'bob'])
      await busy.post(`acme:${name}`, { messages: [user('When does our shop open? It opens at 11.')] })
    const [before, after] = [await askedOf(alone), await askedOf(busy)]
    expect(after).toEqual(before)
    expect(JSON.stringify(before)).toContain('opens at 9')
  })
})
