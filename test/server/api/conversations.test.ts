import { OpenAIConversationsSession } from '@openai/agents'
import OpenAI, { APIError } from 'openai'
import { describe, expect, it } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { collectAll, startServer, type TestServer } from '../start.ts'
import { createSqliteUrls, createTestStores } from './testStores.ts'

const newSqliteUrl = createSqliteUrls()
const testStores = createTestStores(newSqliteUrl)
const startedAt = Date.UTC(2026, 2, 2, 9)
const start = (store: string): Promise<TestServer> => startServer({ memory: { store, clock: () => startedAt } })
const userItem = (text: string) => ({ type: 'message', role: 'user', content: text }) as const
const call = { type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{"city":"Paris"}' } as const
const result = { type: 'function_call_output', call_id: 'call_1', output: '12 °C' } as const
const messageItem = (id: string, role: string, text: string) => ({
  id,
  type: 'message',
  status: 'completed',
  role,
  content: [
    role === 'assistant' ? { type: 'output_text', text, annotations: [], logprobs: [] } : { type: 'input_text', text },
  ],
})
const statusOf = (work: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(work).then(
    () => 200,
    (error: unknown) => (error instanceof APIError ? error.status : error),
  )

describe.each(testStores)('conversations API with %s', (_, store) => {
  verifies('S-03', 'creates, updates, reads and deletes conversations with the OpenAI SDK', async () => {
    await using server = await start(store())
    const { conversations } = server.client('acme')
    const created = await conversations.create({
      metadata: { topic: 'cats' },
      items: [userItem('My cat is called Miso.')],
    })
    expect(created).toEqual({
      id: expect.stringMatching(/^conv_[0-9a-f]{32}$/),
      object: 'conversation',
      created_at: startedAt / 1_000,
      metadata: { topic: 'cats' },
    })
    expect(await conversations.retrieve(created.id)).toEqual(created)
    expect(await server.transcriptLines(`acme:${created.id}`)).toEqual(['user: My cat is called Miso.'])
    expect(await conversations.update(created.id, { metadata: { topic: 'dogs' } })).toEqual({
      ...created,
      metadata: { topic: 'dogs' },
    })
    expect((await conversations.retrieve(created.id)).metadata).toEqual({ topic: 'dogs' })
    expect(await conversations.delete(created.id)).toEqual({
      id: created.id,
      object: 'conversation.deleted',
      deleted: true,
    })
    expect([
      await statusOf(conversations.retrieve(created.id)),
      await statusOf(conversations.delete(created.id)),
    ]).toEqual([404, 404])
    expect(await server.transcriptLines(`acme:${created.id}`)).toEqual([])
  })

  verifies('S-03', 'adds, lists and reads items, including calls and their results', async () => {
    await using server = await start(store())
    const { conversations } = server.client('acme')
    const { id } = await conversations.create()
    const added = await conversations.items.create(id, {
      items: [userItem('Is it warm in Paris?'), { role: 'assistant', content: 'I will look.' }, call, result],
    })
    const items = [
      messageItem('msg_1', 'user', 'Is it warm in Paris?'),
      messageItem('msg_2', 'assistant', 'I will look.'),
      { ...call, id: 'fc_2_1', status: 'completed' },
      { ...result, id: 'fco_3', status: 'completed' },
    ]
    expect(added).toEqual({ object: 'list', data: items, first_id: 'msg_1', last_id: 'fco_3', has_more: false })
    expect(await collectAll(conversations.items.list(id))).toEqual(items.toReversed())
    for (const limit of [1, 2, 3])
      expect(await collectAll(conversations.items.list(id, { limit }))).toEqual(items.toReversed())
    for (const limit of [1, 2, 3])
      expect(await collectAll(conversations.items.list(id, { limit, order: 'asc' }))).toEqual(items)
    for (const item of items) expect(await conversations.items.retrieve(item.id, { conversation_id: id })).toEqual(item)
    for (const item of ['msg_4', 'msg_3', 'fc_2_2', 'm1', 'msg_0'])
      expect([item, await statusOf(conversations.items.retrieve(item, { conversation_id: id }))]).toEqual([item, 404])
  })

  it('deletes an item together with its message', async () => {
    await using server = await start(store())
    const { conversations } = server.client('acme')
    const { id } = await conversations.create({
      items: [userItem('Hello'), { role: 'assistant', content: 'I will look.' }, call, result],
    })
    const conversation = await conversations.items.delete('fc_2_1', { conversation_id: id })
    expect(conversation).toEqual({ id, object: 'conversation', created_at: startedAt / 1_000, metadata: {} })
    expect((await collectAll(conversations.items.list(id, { order: 'asc' }))).map((item) => item.id)).toEqual([
      'msg_1',
      'fco_3',
    ])
    expect(await statusOf(conversations.items.delete('fc_2_1', { conversation_id: id }))).toBe(404)
  })

  verifies('S-03', 'works as the session of the Agents SDK', async () => {
    await using server = await start(store())
    const session = new OpenAIConversationsSession({ client: server.client('acme') as never })
    await session.addItems([
      { type: 'message', role: 'user', content: 'Is it warm in Paris?' },
      { type: 'function_call', callId: 'call_1', name: 'weather', arguments: '{"city":"Paris"}', status: 'completed' },
      {
        type: 'function_call_result',
        callId: 'call_1',
        name: 'weather',
        status: 'completed',
        output: { type: 'text', text: '12 °C' },
      },
      {
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'Rather cool.' }],
      },
    ])
    const kinds = (await session.getItems()).map((item) => ('role' in item ? item.role : item.type))
    expect(kinds).toEqual(['user', 'function_call', 'function_call_result', 'assistant'])
    expect(await session.getItems(1)).toMatchObject([
      { role: 'assistant', content: [{ type: 'output_text', text: 'Rather cool.' }] },
    ])
    expect(await session.popItem()).toMatchObject({ role: 'assistant' })
    expect(await server.transcriptLines(`acme:${await session.getSessionId()}`)).toEqual([
      'user: Is it warm in Paris?',
      'assistant: ',
      'tool: 12 °C',
    ])
    const id = await session.getSessionId()
    await session.clearSession()
    expect(await server.transcriptLines(`acme:${id}`)).toEqual([])
  })
})

describe('conversations API', () => {
  verifies('S-03', 'continues a conversation with responses', async () => {
    await using server = await start(newSqliteUrl())
    const client = server.client('acme')
    const { id } = await client.conversations.create({ items: [userItem('My cat is called Miso.')] })
    const reply = await client.responses.create({ model: 'any', conversation: id, input: 'What is my cat called?' })
    expect(reply.output_text).toContain('Miso')
    const items = await collectAll(client.conversations.items.list(id, { order: 'asc' }))
    expect(items.map((item) => ('role' in item ? item.role : item.type))).toEqual(['user', 'user', 'assistant'])
    // Number 2 is left to a reply to the first message, which another server may be waiting for.
    expect(items[2]).toEqual(messageItem('msg_4', 'assistant', reply.output_text))
  })

  it('takes the tenant from the path or a header, and hides conversations from others', async () => {
    await using server = await start('ram:')
    const byHeader = new OpenAI({
      baseURL: `${server.url}/v1`,
      apiKey: 'sk-client',
      maxRetries: 0,
      defaultHeaders: { 'x-threadkeep-key': 'acme' },
    })
    const { id } = await byHeader.conversations.create({ metadata: { topic: 'cats' } })
    expect((await server.client('acme').conversations.retrieve(id)).id).toBe(id)
    expect((await server.client('acme:ann').conversations.retrieve(id)).id).toBe(id)
    expect(await statusOf(server.client('other').conversations.retrieve(id))).toBe(404)
    expect(await server.requestJson('POST /v1/conversations', {})).toMatchObject({
      status: 400,
      body: { error: { code: 'missing_key', param: 'x-threadkeep-key' } },
    })
  })

  const file = {
    role: 'user' as const,
    content: [
      { type: 'input_file' as const, filename: 'a.txt', file_data: 'data:text/plain;base64,SGVsbG8=' },
      { type: 'input_text' as const, text: 'What is this?' },
    ],
  }

  verifies('T-09', 'with files in items stores placeholders', async () => {
    await using server = await start('ram:')
    const { conversations } = server.client('acme')
    const { id } = await conversations.create({ items: [file] })
    await conversations.items.create(id, { items: [file] })
    const line = 'user: [file a.txt, text/plain, 5 bytes, sha256 185f8db32271fe25]\nWhat is this?'
    expect(await server.transcriptLines(`acme:${id}`)).toEqual([line, line])
  })

  verifies('T-09', 'with files in items and a profile that refuses them responds with 400', async () => {
    await using server = await startServer({ memory: { profile: 'support' } })
    const refused = { status: 400, error: { code: 'files_not_allowed' } }
    const { conversations } = server.client('acme')
    await expect(conversations.create({ items: [file] })).rejects.toMatchObject(refused)
    expect(await server.requestJson('GET /api/sessions')).toEqual({ status: 200, body: { items: [], next: null } })
    const { id } = await conversations.create()
    await expect(conversations.items.create(id, { items: [file] })).rejects.toMatchObject(refused)
    expect(await server.transcriptLines(`acme:${id}`)).toEqual([])
  })

  it('refuses invalid requests and stores nothing', async () => {
    await using server = await start('ram:')
    const invalid = [
      [{ metadata: { a: 1 } }, 'metadata.a must be text.'],
      [
        { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`n${at}`, ''])) },
        'metadata has more than 16 entries.',
      ],
      [{ metadata: { ['n'.repeat(65)]: '' } }, 'metadata has a name of more than 64 characters.'],
      [{ items: 'Hello' }, 'items must be a list of items.'],
      [
        { items: [{ type: 'item_reference', id: 'msg_1' }] },
        'items[0] refers to an item by its id. Send the item itself.',
      ],
    ] as const
    for (const [body, message] of invalid)
      expect(await server.requestJson('POST /v1/acme/conversations', body)).toMatchObject({
        status: 400,
        body: { error: { message } },
      })
    expect(await server.requestJson('GET /api/sessions')).toEqual({ status: 200, body: { items: [], next: null } })
    const { id } = await server.client('acme').conversations.create()
    for (const [query, param] of [
      ['order=up', 'order'],
      ['limit=0', 'limit'],
      ['after=m1', 'after'],
    ])
      expect(await server.requestJson(`GET /v1/acme/conversations/${id}/items?${query}`)).toMatchObject({
        status: 400,
        body: { error: { param } },
      })
    expect(await server.requestJson('GET /v1/acme/conversations/ann')).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_conversation' } },
    })
  })
})
