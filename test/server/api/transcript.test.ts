import { describe, expect, it } from 'vitest'
import { parsePrices } from '../../../src/server/observability/prices.ts'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, startServer, type TestServer, user } from '../start.ts'
import { createTestStores } from './testStores.ts'

const testStores = createTestStores()
const startedAt = Date.UTC(2026, 2, 2, 9)
const start = (store: string): Promise<TestServer> => startServer({ memory: { store, clock: () => startedAt } })
type Page = { readonly items: readonly Readonly<Record<string, unknown>>[]; readonly next: string | null }
const getPage = async (server: TestServer, path: string): Promise<Page> =>
  (await server.requestJson(`GET ${path}`)).body as Page

describe.each(testStores)('transcript API with %s', (_, store) => {
  verifies('C-10', 'lists complete messages in pages', async () => {
    await using server = await start(store())
    const long = `Our address is 5 Long Street. ${'And so on. '.repeat(20_000)}`
    const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Paris"}' } }
    await server.memory.append('acme:ann', [
      user(long),
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: '12 °C' },
    ])
    const { items, next } = await getPage(server, '/api/sessions/acme:ann/messages')
    const [first, ...others] = items
    expect([first?.content, first?.sequence, first?.role, next]).toEqual([long, 1, 'user', null])
    expect(others).toEqual([
      {
        id: 'm2',
        sequence: 2,
        at: startedAt,
        role: 'assistant',
        content: '',
        toolCalls: [{ id: 'call_1', name: 'weather', arguments: '{"city":"Paris"}' }],
        tokens: expect.any(Number),
      },
      {
        id: 'm3',
        sequence: 3,
        at: startedAt,
        role: 'tool',
        content: '12 °C',
        toolCallId: 'call_1',
        tokens: expect.any(Number),
      },
    ])
    expect(await getPage(server, '/api/sessions/acme:ann/messages?limit=2&after=1')).toEqual({
      items: others,
      next: null,
    })
    expect((await getPage(server, '/api/sessions/acme:ann/messages?limit=2')).next).toBe('2')
  })

  it('returns the context a model would get', async () => {
    await using server = await start(store())
    await server.memory.append('acme:ann', [
      user('My cat is called Miso.'),
      assistant('Noted.'),
      user('What is my cat called?'),
    ])
    const { status, body } = await server.requestJson('GET /api/sessions/acme:ann/context?budget=500')
    expect([status, body]).toEqual([
      200,
      JSON.parse(JSON.stringify(await server.memory.context('acme:ann', { budget: 500 }))),
    ])
    expect(body).toMatchObject({
      messages: [user('My cat is called Miso.'), assistant('Noted.'), user('What is my cat called?')],
      ledger: { budget: 500 },
    })
    const other = await server.requestJson('GET /api/sessions/acme:ann/context?query=Who%20am%20I%3F')
    expect(other).toMatchObject({ status: 200, body: { messages: [{}, {}, {}] } })
    expect(await server.requestJson('GET /api/sessions/acme:ann/context?budget=x')).toMatchObject({
      status: 400,
      body: { error: { param: 'budget' } },
    })
  })

  it('lists messages that an edit cut off as a branch', async () => {
    await using server = await start(store())
    await server.postChat('acme:ann', { messages: [user('Hello')] })
    await server.postChat('acme:ann', { messages: [user('I live in Rome.')] })
    const [, hi, , nice] = await server.memory.transcript('acme:ann')
    await server.postChat('acme:ann', {
      messages: [user('Hello'), assistant(hi?.content ?? ''), user('I live in Oslo.')],
    })
    const { items } = await getPage(server, '/api/sessions/acme:ann/messages')
    expect(items.map(({ content }) => content).slice(0, 3)).toEqual(['Hello', hi?.content, 'I live in Oslo.'])
    expect(await server.requestJson('GET /api/sessions/acme:ann/branches')).toEqual({
      status: 200,
      body: { items: [{ branch: 3, messages: 2, cutAt: startedAt }], next: null },
    })
    const cut = await getPage(server, '/api/sessions/acme:ann/branches/3')
    expect(cut.items.map(({ sequence, content }) => [sequence, content])).toEqual([
      [3, 'I live in Rome.'],
      [4, nice?.content],
    ])
    expect(await getPage(server, '/api/sessions/acme:ann/branches/3?limit=1')).toEqual({
      items: [cut.items[0]],
      next: '3',
    })
    for (const branch of ['4', 'receipts', '03x'])
      expect([branch, (await server.requestJson(`GET /api/sessions/acme:ann/branches/${branch}`)).status]).toEqual([
        branch,
        404,
      ])
  })
})

describe('record API', () => {
  verifies('C-04', 'reads, updates and clears the record of a session', async () => {
    await using server = await startServer({ memory: { profile: 'summary' } })
    await server.memory.append('acme:ann', [{ role: 'user', content: 'Hello.' }])
    const path = '/api/sessions/acme:ann/record'
    const empty = await server.requestJson(`GET ${path}`)
    expect(empty).toMatchObject({ status: 200, body: { conversation_summary: '', summary_version: 0 } })
    const updated = await server.requestJson(`POST ${path}`, {
      important_data: { user_preferences: { theme: 'dark' }, key_decisions: ['Use oak.'] },
      conversation_summary: 'Ann plans a house.',
    })
    expect(updated).toMatchObject({
      status: 200,
      body: {
        important_data: { user_preferences: { theme: 'dark' }, key_decisions: ['Use oak.'] },
        conversation_summary: 'Ann plans a house.',
        summary_version: 1,
      },
    })
    expect(await server.requestJson(`GET ${path}`)).toEqual(updated)
    expect(await server.requestJson(`GET ${path}?as_of=2020-01-01`)).toEqual(empty)
    expect(await server.requestJson(`DELETE ${path}`)).toEqual({ status: 204, body: undefined })
    expect(await server.requestJson(`GET ${path}`)).toEqual(empty)
    expect(await server.transcriptLines('acme:ann')).toEqual(['user: Hello.'])
  })

  verifies('C-04', 'refuses an invalid update and an unknown session', async () => {
    await using server = await startServer()
    await server.memory.append('acme:ann', [{ role: 'user', content: 'Hello.' }])
    const send = (body: unknown, key = 'acme:ann') => server.requestJson(`POST /api/sessions/${key}/record`, body)
    for (const [body, param] of [
      [{ summary: 'A talk.' }, 'summary'],
      [{ important_data: { mood: ['good'] } }, 'important_data.mood'],
      [{ important_data: 'dark' }, 'important_data'],
      [{ summary_version: 3 }, 'summary_version'],
    ] as const)
      expect(await send(body)).toMatchObject({ status: 400, body: { error: { param } } })
    expect((await send({ conversation_summary: 'A talk.' }, 'acme:bob')).status).toBe(404)
    expect((await server.requestJson('GET /api/sessions/acme:bob/record')).status).toBe(404)
  })
})

describe('summaries and facts API', () => {
  it('lists summaries and facts, now or as of a time', async () => {
    let now = startedAt
    await using server = await startServer({ memory: { profile: 'summary', clock: () => now } })
    await server.memory.append('acme:ann', [user('My name is Ann. I live in Rome.')])
    now += 60_000
    const filler = 'We talked about the weather, the garden and the neighbours at some length today. '.repeat(60)
    for (let turn = 0; turn < 8; turn++) {
      await server.memory.append('acme:ann', [user(`${turn}: ${filler}`), assistant('I see.')])
      await server.memory.upkeep.whenIdle()
    }
    const summaries = await getPage(server, '/api/sessions/acme:ann/summaries')
    expect(summaries.items.map(({ id }) => id)).toEqual(
      (await server.memory.upkeep.summaries('acme:ann')).map(({ id }) => id),
    )
    expect(summaries.items[0]).toMatchObject({
      by: 'builtin',
      version: 3,
      covers: [1, expect.any(Number)],
      text: expect.stringContaining('Rome'),
    })
    const facts = await getPage(server, '/api/sessions/acme:ann/facts')
    expect(facts.items.some(({ value }) => JSON.stringify(value).includes('Rome'))).toBe(true)
    expect(await getPage(server, `/api/sessions/acme:ann/facts?as_of=${startedAt - 1}`)).toEqual({
      items: [],
      next: null,
    })
    expect(await getPage(server, '/api/sessions/acme:ann/facts?as_of=2026-03-03')).toEqual(facts)
    const first = await getPage(server, '/api/sessions/acme:ann/facts?limit=1')
    expect([first.items, first.next]).toEqual([[facts.items[0]], facts.items.length > 1 ? facts.items[0]?.id : null])
    expect(await server.requestJson('GET /api/sessions/acme:ann/facts?as_of=soon')).toMatchObject({
      status: 400,
      body: { error: { param: 'as_of' } },
    })
    expect(await server.requestJson('GET /api/sessions/acme:ann/facts?after=nothing')).toMatchObject({
      status: 400,
      body: { error: { param: 'after' } },
    })
  })
})

describe('receipts API', () => {
  verifies('S-10', 'reports cost and savings by a custom price table', async () => {
    const prices = parsePrices({ asOf: '2026-11-01', models: { mine: { input: 1_000_000, output: 2_000_000 } } })
    await using server = await startServer({ prices })
    const response = await server.postChat('acme:ann', { model: 'mine', messages: [user('My cat is called Miso.')] })
    const id = response.headers.get('x-threadkeep-receipt') ?? ''
    const { usage } = (await response.json()) as { usage: { prompt_tokens: number; completion_tokens: number } }
    const { status, body } = await server.requestJson(`GET /api/receipts/${id}`)
    expect([status, body]).toMatchObject([
      200,
      {
        id,
        key: 'acme:ann',
        model: 'mine',
        sequence: 2,
        tokens: {
          shown: usage.prompt_tokens,
          saved: 0,
          cacheable: expect.any(Number),
          prompt: usage.prompt_tokens,
          completion: usage.completion_tokens,
        },
        cost: {
          input: usage.prompt_tokens,
          output: 2 * usage.completion_tokens,
          total: usage.prompt_tokens + 2 * usage.completion_tokens,
          currency: 'USD',
          isEstimated: false,
        },
      },
    ])
    expect(JSON.stringify(body)).not.toContain('Miso')
  })

  it('lists receipts newest first, and deletes them with their session', async () => {
    await using server = await startServer()
    const ids: string[] = []
    for (const content of ['One', 'Two', 'Three']) {
      const response = await server.postChat('acme:ann', { messages: [user(content)] })
      ids.unshift(response.headers.get('x-threadkeep-receipt') ?? '')
    }
    const idsAt = async (query: string) => {
      const { items, next } = await getPage(server, `/api/sessions/acme:ann/receipts${query}`)
      return { ids: items.map(({ id }) => id), next }
    }
    expect(await idsAt('')).toEqual({ ids, next: null })
    expect(await idsAt('?limit=3')).toEqual({ ids, next: null })
    expect(await idsAt('?limit=2')).toEqual({ ids: ids.slice(0, 2), next: '2' })
    expect(await idsAt('?limit=2&after=2')).toEqual({ ids: ids.slice(2), next: null })
    await server.requestJson('POST /api/forget', { key: 'acme:ann' })
    expect((await server.requestJson(`GET /api/receipts/${ids[0]}`)).status).toBe(404)
  })
})

describe('usage API', () => {
  verifies('T-17', 'reports the usage of a session and of a tenant', async () => {
    await using server = await startServer()
    for (const key of ['acme:ann', 'acme:ann', 'acme:bob']) await server.postChat(key, { messages: [user('Hello')] })
    const getUsage = async (path: string) =>
      (await server.requestJson(`GET ${path}/metrics`)).body as {
        turns: number
        tokens: { shown: number }
        compression: number
      }
    const [ann, bob, acme] = [
      await getUsage('/api/sessions/acme:ann'),
      await getUsage('/api/sessions/acme:bob'),
      await getUsage('/api/scopes/acme'),
    ]
    expect([ann.turns, bob.turns, acme.turns]).toEqual([2, 1, 3])
    expect(ann.tokens.shown).toBeGreaterThan(bob.tokens.shown)
    expect(acme.tokens.shown).toBe(ann.tokens.shown + bob.tokens.shown)
    expect((await server.requestJson('GET /api/sessions/acme:eve/metrics')).status).toBe(404)
  })
})
