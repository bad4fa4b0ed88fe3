import { describe, expect, it } from 'vitest'
import { profiles } from '../../../src/index.ts'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, startServer, type TestServer, user } from '../start.ts'
import { createSqliteUrls, createTestStores } from './testStores.ts'

const newSqliteUrl = createSqliteUrls()
const testStores = createTestStores(newSqliteUrl)
const startedAt = Date.UTC(2026, 2, 2, 9)
const start = (store: string): Promise<TestServer> => startServer({ memory: { store, clock: () => startedAt } })
type SearchResponse = {
  readonly items: readonly {
    readonly key: string
    readonly from?: string
    readonly entry: Readonly<Record<string, unknown>>
  }[]
}
const search = async (server: TestServer, query: string): Promise<readonly unknown[]> =>
  ((await server.requestJson(`GET /api/scopes/acme/search?${query}`)).body as SearchResponse).items.map(
    ({ key, entry }) => [key, entry.content ?? entry.value],
  )

describe.each(testStores)('knowledge API with %s', (_, store) => {
  it('stores, lists and deletes knowledge', async () => {
    await using server = await start(store())
    const knowledge = { category: 'domain', key: 'hours', value: '9 to 5', confidence: 0.8, session: 'ann' }
    const stored = {
      id: 'k1',
      at: startedAt,
      category: 'domain',
      key: 'hours',
      value: '9 to 5',
      confidence: 0.8,
      usedAt: startedAt,
      statedBy: ['ann'],
      origin: 'learned',
      sources: [{ message: '', session: 'ann' }],
    }
    expect(await server.requestJson('POST /api/scopes/acme/knowledge', knowledge)).toEqual({
      status: 201,
      body: stored,
    })
    await server.requestJson('POST /api/scopes/acme/knowledge', {
      category: 'domain',
      key: 'phone',
      value: { home: 5551 },
    })
    const { body } = await server.requestJson('GET /api/scopes/acme/knowledge')
    expect(body).toMatchObject({ items: [stored, { id: 'k2', key: 'phone', value: { home: 5551 } }], next: null })
    expect(await server.requestJson('GET /api/scopes/acme/knowledge?limit=1')).toEqual({
      status: 200,
      body: { items: [stored], next: 'k1' },
    })
    expect(await server.requestJson('GET /api/scopes/acme/knowledge?after=k1')).toMatchObject({
      body: { items: [{ id: 'k2' }], next: null },
    })
    expect(await server.requestJson('DELETE /api/scopes/acme/knowledge/k1')).toEqual({ status: 204, body: undefined })
    expect(await server.requestJson('DELETE /api/scopes/acme/knowledge/k1')).toMatchObject({ status: 404 })
    expect(await server.requestJson('GET /api/scopes/acme/knowledge')).toMatchObject({
      body: { items: [{ id: 'k2' }] },
    })
  })

  it('pending knowledge › is approved › is shown to models, and an unknown id is not found', async () => {
    await using server = await startServer({ memory: { store: store() } })
    const claim = { category: 'domain', key: 'hours', value: '9 to 5' } as const
    await server.memory.remember('acme', { ...claim, by: 'assistant' })
    const list = async () => (await server.requestJson('GET /api/scopes/acme/knowledge')).body
    expect(await list()).toMatchObject({ items: [{ id: 'k1', pending: true }] })
    expect(await server.requestJson('POST /api/scopes/acme/knowledge/k9/approve')).toMatchObject({ status: 404 })
    const approved = await server.requestJson('POST /api/scopes/acme/knowledge/k1/approve')
    expect(approved).toMatchObject({ status: 200, body: { id: 'k1', value: '9 to 5' } })
    expect(approved.body).not.toHaveProperty('pending')
    expect((await list()) as object).not.toHaveProperty('items.0.pending')
  })

  it('search › of a long message › tells the passage that matches', async () => {
    await using server = await startServer({ memory: { store: store() } })
    const text = `${'We spoke about the weather for a while. '.repeat(40)}The walrus sleeps in the cellar.`
    await server.memory.append('acme:ann', [{ role: 'user', content: text }])
    const { body } = await server.requestJson('GET /api/scopes/acme/search?q=walrus')
    const [{ passage }] = (body as { items: [{ passage: [number, number] }] }).items
    expect(text.slice(...passage)).toContain('The walrus sleeps')
    expect(passage[1] - passage[0]).toBeLessThan(text.length)
  })

  verifies('K-01', 'lists archived knowledge on request, and restores it', async () => {
    let now = startedAt
    await using server = await startServer({ memory: { store: store(), clock: () => now } })
    const hours = { category: 'domain', key: 'hours', value: '9 to 5' }
    await server.requestJson('POST /api/scopes/acme/knowledge', { ...hours, origin: 'learned' })
    await server.requestJson('POST /api/scopes/acme/knowledge', { ...hours, key: 'phone' })
    now += 400 * 86_400_000
    await server.memory.sweep(now)
    const list = async (query: string) => {
      const { body } = await server.requestJson(`GET /api/scopes/acme/knowledge?${query}`)
      return (body as { items: { id: string; archived?: true }[] }).items.map(({ id, archived }) => [id, archived])
    }
    expect(await list('')).toEqual([['k2', undefined]])
    expect(await list('archived=true')).toEqual([
      ['k1', true],
      ['k2', undefined],
    ])
    expect(await server.requestJson('GET /api/scopes/acme/knowledge?archived=maybe')).toMatchObject({ status: 400 })
    expect(await server.requestJson('POST /api/scopes/acme/knowledge/k1/restore')).toMatchObject({
      status: 200,
      body: { id: 'k1', confidence: 0.5, usedAt: now },
    })
    expect(await server.requestJson('POST /api/scopes/acme/knowledge/k9/restore')).toMatchObject({ status: 404 })
    expect(await list('')).toEqual([
      ['k1', undefined],
      ['k2', undefined],
    ])
  })

  it('does not delete other kinds of entries', async () => {
    await using server = await start(store())
    await server.memory.append('acme', [user('Hello')])
    expect((await server.requestJson('DELETE /api/scopes/acme/knowledge/m1')).status).toBe(404)
    expect(await server.transcriptLines('acme')).toEqual(['user: Hello'])
  })

  verifies('S-09', 'shows the knowledge of a person in sessions of that person only, and in their ledger', async () => {
    const profile = { ...profiles.support, scopes: ['session', 'scope', 'person'] as const }
    await using server = await startServer({ memory: { profile, store: store() } })
    await server.requestJson('POST /api/scopes/acme/knowledge', {
      category: 'user_preference',
      key: 'language',
      value: 'Ann wants Italian',
      person: 'ann',
    })
    await server.requestJson('POST /api/sessions', { key: 'acme:web', person: 'ann' })
    for (const key of ['acme:web', 'acme:sms']) await server.memory.append(key, [user('Which language do I want?')])
    const readContext = async (key: string, headers = {}) => {
      const { body } = await server.requestJson(`GET /api/sessions/${key}/context`, undefined, headers)
      const { text, ledger } = body as { text: string; ledger: { lines: { from?: string }[] } }
      return [text.includes('Ann wants Italian'), ledger.lines.flatMap(({ from }) => from ?? [])]
    }
    expect(await readContext('acme:web')).toEqual([true, ['person']])
    expect(await readContext('acme:sms')).toEqual([false, []])
    expect(await readContext('acme:sms', { 'x-threadkeep-person': 'ann' })).toEqual([true, ['person']])
    expect(await readContext('acme:sms', { 'x-threadkeep-person': 'bob' })).toEqual([false, []])
    expect(await server.requestJson('GET /api/scopes/acme/knowledge')).toEqual({
      status: 200,
      body: { items: [], next: null },
    })
    const { body } = await server.requestJson('GET /api/scopes/acme/knowledge?person=ann')
    const [{ id }] = (body as { items: [{ id: string }] }).items
    expect((await server.requestJson(`DELETE /api/scopes/acme/knowledge/${id}?person=ann`)).status).toBe(204)
    expect(await readContext('acme:web')).toEqual([false, []])
  })
})

describe('tenant API', () => {
  verifies('T-03', 'stores nothing of sessions in the tenant until it is posted', async () => {
    const { thread, support } = profiles
    await using server = await startServer({
      profiles: { scope: thread, session: support, templates: {} },
      memory: { store: newSqliteUrl() },
    })
    for (let turn = 0; turn < 8; turn++)
      await server.postChat('acme:ann', { messages: [user(`Number ${turn}: I prefer tea. Our gate code is Z-99.`)] })
    await server.memory.upkeep.whenIdle()
    expect(await server.requestJson('GET /api/scopes/acme/knowledge')).toEqual({
      status: 200,
      body: { items: [], next: null },
    })
    expect(await server.requestJson('GET /api/sessions/acme')).toMatchObject({ status: 404 })
    await server.requestJson('POST /api/scopes/acme/knowledge', {
      category: 'user_preference',
      key: 'drink',
      value: 'tea',
      session: 'ann',
    })
    await server.postChat('acme:bob', { messages: [user('What do people drink here?')] })
    expect(await server.requestJson('GET /api/sessions/acme:bob/context')).toMatchObject({
      body: { text: expect.stringContaining('tea') },
    })
  })

  it('searches the tenant and its sessions in all stores by words, kind, session and time', async () => {
    let now = Date.UTC(2026, 1, 27, 12)
    const { thread, support } = profiles
    const ways = { scope: thread, session: support, templates: {} }
    await using server = await startServer({ profiles: ways, memory: { store: newSqliteUrl(), clock: () => now } })
    await server.postChat('acme', { messages: [user('The parrot lives in the hall.')] })
    now = startedAt
    await server.memory.append('acme:ann', [user('A parrot is for sale.')])
    await server.memory.append('acme:bob', [user('My parrot talks.')])
    await server.memory.append('other:eve', [user('Her parrot is secret.')])
    await server.requestJson('POST /api/scopes/acme/knowledge', {
      category: 'domain',
      key: 'parrot',
      value: 'belongs to Kim',
    })
    const keys = async (query: string) =>
      [...new Set((await search(server, query)).map((result) => (result as string[])[0]))].sort()
    expect(await keys('q=parrot')).toEqual(['acme', 'acme:ann', 'acme:bob'])
    expect(await search(server, 'q=parrot&session=bob')).toEqual([['acme:bob', 'My parrot talks.']])
    expect(await search(server, 'q=parrot&kinds=knowledge')).toEqual([['acme', 'belongs to Kim']])
    const [earlier] = await search(server, 'q=parrot&kinds=message,summary&to=2026-02-28')
    expect([earlier, await keys('q=parrot&to=2026-02-28')]).toEqual([
      ['acme', 'The parrot lives in the hall.'],
      ['acme'],
    ])
    expect((await search(server, 'q=parrot&limit=2')).length).toBe(2)
    now += 8 * 86_400_000
    expect(await keys('q=parrot')).toEqual(['acme'])
  })

  verifies('T-14', 'searches the time that the query names, unless from or to is given', async () => {
    let now = Date.UTC(2026, 1, 10, 12)
    await using server = await startServer({ memory: { store: newSqliteUrl(), clock: () => now } })
    await server.memory.append('acme:ann', [user('The parrot was green.')])
    now = startedAt
    await server.memory.append('acme:ann', [user('The parrot was red.')])
    const contents = async (query: string) => (await search(server, query)).map((result) => (result as string[])[1])
    expect(await contents('q=parrot+in+February')).toEqual(['The parrot was green.'])
    expect(await contents('q=parrot+in+February&from=2026-03-01')).toEqual(['The parrot was red.'])
    expect(await contents('q=parrot+in+1999')).toHaveLength(2)
  })

  it('refuses invalid search parameters', async () => {
    await using server = await start('ram:')
    const invalid = [
      ['', 'q is ""; it must be the text to search for.'],
      ['q=a&kinds=notes', 'kinds is "notes"; it must be some of message,summary,fact,knowledge,item.'],
      [
        'q=a&from=yesterday',
        'from is "yesterday"; it must be milliseconds since 1970, or a date such as 2026-03-01 or 2026-03-01T12:00:00Z.',
      ],
      ['q=a&page=2', 'Unknown query parameter "page". Use one of: q, limit, from, to, kinds, session.'],
    ] as const
    for (const [query, message] of invalid)
      expect(await server.requestJson(`GET /api/scopes/acme/search?${query}`)).toMatchObject({
        status: 400,
        body: { error: { message } },
      })
    expect(await server.requestJson('GET /api/scopes/acme/search?q=a&session=x%3Areceipts')).toMatchObject({
      status: 400,
      body: { error: { code: 'bad-key' } },
    })
  })

  it('refuses invalid knowledge', async () => {
    await using server = await start('ram:')
    const invalid = [
      [
        { key: 'a', value: 1 },
        'category must be one of domain, execution_pattern, user_preference, website_knowledge, error_pattern.',
      ],
      [{ category: 'domain', key: '', value: 1 }, 'key must not be empty.'],
      [{ category: 'domain', key: 'a' }, 'value is missing: it must be text or JSON.'],
      [{ category: 'domain', key: 'a', value: 1, confidence: 2 }, 'confidence is 2; it must be a number from 0 to 1.'],
      [
        { category: 'domain', key: 'a', value: 1, by: 'tool' },
        'Unknown field "by". Use one of: category, key, value, confidence, session, origin, person.',
      ],
    ] as const
    for (const [body, message] of invalid)
      expect(await server.requestJson('POST /api/scopes/acme/knowledge', body)).toMatchObject({
        status: 400,
        body: { error: { message } },
      })
    for (const more of [{ session: 'a:b' }, { person: 'a:b' }])
      expect(
        await server.requestJson('POST /api/scopes/acme/knowledge', {
          category: 'domain',
          key: 'a',
          value: 1,
          ...more,
        }),
      ).toMatchObject({
        status: 400,
        body: { error: { code: 'bad-key' } },
      })
  })
})

describe('forget API', () => {
  verifies(
    'X-05',
    'deletes a message, a session, a text or a tenant with derived entries, and reports them',
    async () => {
      await using server = await start(newSqliteUrl())
      const forget = async (target: object) => (await server.requestJson('POST /api/forget', target)).body
      await server.memory.append('acme:ann', [user('My cat is called Miso.'), assistant('Noted.')])
      await server.memory.append('acme:bob', [user('My PIN is on the desk.'), assistant('I see.')])
      await server.memory.append('acme:cid', [user('Hello')])
      await server.memory.append('other:eve', [user('My cat is called Miso.')])
      expect(await forget({ key: 'acme:ann', messageId: 'm1' })).toEqual({
        at: startedAt,
        sessions: [{ key: 'acme:ann', entries: ['m1'] }],
      })
      expect(await server.transcriptLines('acme:ann')).toEqual(['assistant: Noted.'])
      expect(await forget({ scope: 'acme', text: 'on the desk' })).toEqual({
        at: startedAt,
        sessions: [{ key: 'acme:bob', entries: ['m1'] }],
      })
      expect(await forget({ key: 'acme:cid' })).toEqual({
        at: startedAt,
        sessions: [{ key: 'acme:cid', entries: ['m1'] }],
      })
      expect((await server.requestJson('GET /api/sessions/acme:cid')).status).toBe(404)
      expect(await forget({ key: 'acme:cid' })).toEqual({ at: startedAt, sessions: [] })
      expect(await forget({ scope: 'acme' })).toEqual({
        at: startedAt,
        sessions: [
          { key: 'acme:ann', entries: ['m2'] },
          { key: 'acme:bob', entries: ['m2'] },
        ],
      })
      expect(await server.transcriptLines('other:eve')).toEqual(['user: My cat is called Miso.'])
    },
  )

  verifies('X-05', 'deletes from all memories, auxiliary records and usage statistics', async () => {
    const { thread, support } = profiles
    const ways = { scope: thread, session: support, templates: {} }
    await using server = await startServer({ profiles: ways, memory: { store: newSqliteUrl() } })
    for (const key of ['acme', 'acme:ann']) await server.postChat(key, { messages: [user('The code is tulip.')] })
    await server.requestJson('POST /api/scopes/acme/knowledge', {
      category: 'domain',
      key: 'flower',
      value: 'tulip',
      person: 'ann',
    })
    const { body } = await server.requestJson('POST /api/forget', { scope: 'acme' })
    const { sessions } = body as { sessions: { key: string }[] }
    expect(sessions.map(({ key }) => key).sort()).toEqual(['acme', 'acme::person:ann', 'acme:ann'])
    expect(await search(server, 'q=tulip')).toEqual([])
    expect(await server.requestJson('GET /api/scopes/acme/metrics')).toMatchObject({ body: { turns: 0 } })
    expect(await server.requestJson('GET /api/sessions')).toEqual({ status: 200, body: { items: [], next: null } })
  })

  it('refuses an ambiguous target', async () => {
    await using server = await start('ram:')
    const message = 'The target is invalid. Send { key }, { key, messageId }, { scope } or { scope, text }.'
    for (const target of [
      {},
      { messageId: 'm1' },
      { text: 'a' },
      { key: 'a:b', scope: 'a' },
      { key: 'a:b', text: 'c' },
      { scope: 'a', messageId: 'm1' },
    ])
      expect(await server.requestJson('POST /api/forget', target)).toMatchObject({
        status: 400,
        body: { error: { message } },
      })
    expect(await server.requestJson('POST /api/forget', { scope: 'a:b' })).toMatchObject({
      status: 400,
      body: { error: { code: 'bad-key' } },
    })
    expect(await server.requestJson('POST /api/forget', { key: 'a:b', all: true })).toMatchObject({
      status: 400,
      body: { error: { code: 'unknown_field', param: 'all' } },
    })
  })
})
