import type { Client } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { type ConnectedClient, connectHttp, connectStdio, startTestServer, type TestServer } from './harness.ts'

let server: TestServer
let connection: ConnectedClient
let client: Client
beforeAll(async () => {
  server = await startTestServer()
  connection = await connectHttp(server.url)
  client = connection.client
})
afterAll(async () => {
  await connection.close()
  await server[Symbol.asyncDispose]()
})

const secretWord = 'Heliotrope'
async function save(workspace: string, content = `The colour is ${secretWord}.`): Promise<string> {
  const messages = [{ role: 'user', content }]
  const { structuredContent } = await client.callTool({ name: 'save_session', arguments: { workspace, messages } })
  return (structuredContent as { sessionId: string }).sessionId
}

async function read(uri: string, by: Client = client): Promise<unknown> {
  const [content] = (await by.readResource({ uri })).contents
  expect(content).toMatchObject({ uri, mimeType: 'application/json' })
  return JSON.parse(content !== undefined && 'text' in content ? content.text : '')
}

describe('resources', () => {
  verifies('S-04', 'return sessions, transcripts, receipts and the graph', async () => {
    const id = await save('reading')
    expect(await read('threadkeep://sessions/reading')).toMatchObject({
      sessions: [{ sessionId: id, messageCount: 1 }],
      total: 1,
    })
    expect(await read(`threadkeep://sessions/reading/${id}`)).toMatchObject({
      sessionId: id,
      workspaceId: 'reading',
      chain: [{ sessionId: id }],
    })
    expect(await read(`threadkeep://sessions/reading/${id}/transcript`)).toMatchObject({
      session: id,
      messages: [{ id: 'm1', role: 'user', content: 'The colour is Heliotrope.' }],
    })
    expect(await read(`threadkeep://sessions/reading/${id}/receipts`)).toEqual({ session: id, receipts: [] })
    expect(await read('memory://knowledge-graph')).toEqual({ entities: [], relations: [] })
  })

  verifies('R-03', 'and read_graph with a graph of over a million characters › say what to read instead', async () => {
    const own = await connectHttp(server.url)
    const call = (name: string, args = {}) => own.client.callTool({ name, arguments: args })
    const entities = ['a', 'b'].map((name) => ({ name, entityType: 't', observations: [name.repeat(600_000)] }))
    await call('create_entities', { entities })
    const message = /more than 1000000 characters\. Use search_nodes with a longer query/
    await expect(read('memory://knowledge-graph', own.client)).rejects.toThrow(message)
    expect(await call('read_graph')).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(message) }],
    })
    expect(await call('open_nodes', { names: ['a'] })).not.toMatchObject({ isError: true })
    await call('delete_entities', { entityNames: ['a', 'b'] })
    await own.close()
  })

  verifies('R-03', 'graph tools with over 8 million characters › store nothing and say so', async () => {
    const own = await connectHttp(server.url)
    const call = (name: string, args = {}) => own.client.callTool({ name, arguments: args })
    const observations = ['x'.repeat(4_000_000), 'y'.repeat(4_000_000)]
    expect(
      await call('create_entities', { entities: [{ name: 'huge', entityType: 't', observations }] }),
    ).toMatchObject({
      isError: true,
      content: [{ text: 'The entities have more than 8000000 characters. Send them in several calls.' }],
    })
    expect((await call('open_nodes', { names: ['huge'] })).structuredContent).toEqual({ entities: [], relations: [] })
    await own.close()
  })

  verifies('S-04', 'return receipts with ids and numbers, and without message text', async () => {
    const id = await save('receipts')
    const body = JSON.stringify({ model: 'any', messages: [{ role: 'user', content: `Is it ${secretWord}?` }] })
    const response = await fetch(`${server.url}/v1/receipts:${id}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect(response.status).toBe(200)
    const { receipts } = (await read(`threadkeep://sessions/receipts/${id}/receipts`)) as { receipts: { id: string }[] }
    expect(receipts).toMatchObject([{ id: response.headers.get('x-threadkeep-receipt'), key: `receipts:${id}` }])
    expect(JSON.stringify(receipts)).not.toContain(secretWord)
  })

  verifies('H-09', 'that are missing, in another workspace or have an invalid URI are all not found', async () => {
    const id = await save('theirs')
    const wrong = [
      'threadkeep://sessions/mine/session_1',
      `threadkeep://sessions/mine/${id}`,
      'threadkeep://sessions/mine/a%2Fb',
      'threadkeep://sessions/a%20b',
    ]
    for (const uri of [
      ...wrong,
      `threadkeep://sessions/mine/../theirs:x/${id}`,
      'threadkeep://other',
      'file:///etc/passwd',
    ])
      await expect(read(uri)).rejects.toMatchObject({
        code: -32_602,
        message: expect.stringContaining('Resource not found'),
      })
  })

  verifies('S-04', 'are listed page by page', async () => {
    await using own = await startTestServer()
    await using paged = await connectHttp(own.url)
    const saveChat = (at: number) =>
      paged.client.callTool({
        name: 'save_session',
        arguments: { messages: [{ role: 'user', content: `Chat ${at}.` }] },
      })
    for (let at = 0; at < 51; at++) await saveChat(at)
    const first = await paged.client.listResources({ cursor: '' as string }).catch((error: unknown) => error)
    expect(first).toMatchObject({
      code: -32_602,
      message: 'The cursor does not belong to this list. List again without a cursor.',
    })
    const all = (await paged.client.listResources()).resources.map(({ uri }) => uri)
    expect(all.slice(0, 2)).toEqual(['memory://knowledge-graph', 'threadkeep://sessions/default'])
    expect(all).toHaveLength(2 + 2 * 51)
    expect(new Set(all).size).toBe(all.length)
  })

  verifies('S-04', 'have templates with completion of workspaces and ids', async () => {
    const id = await save('completing')
    const { resourceTemplates } = await client.listResourceTemplates()
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
      'threadkeep://sessions/{workspace}',
      'threadkeep://sessions/{workspace}/{id}',
      'threadkeep://sessions/{workspace}/{id}/transcript',
      'threadkeep://sessions/{workspace}/{id}/receipts',
    ])
    const ref = { type: 'ref/resource', uri: 'threadkeep://sessions/{workspace}/{id}' } as const
    const complete = async (argument: { name: string; value: string }, args: Record<string, string> = {}) =>
      (await client.complete({ ref, argument, context: { arguments: args } })).completion.values
    expect(await complete({ name: 'workspace', value: 'compl' })).toEqual(['completing'])
    expect(await complete({ name: 'id', value: 'session_' }, { workspace: 'completing' })).toEqual([id])
    expect(await complete({ name: 'id', value: '' }, { workspace: 'nobody' })).toEqual([])
  })
})

describe('subscribed client', () => {
  const nextUpdate = (listener: Client): Promise<string> =>
    new Promise((resolve) =>
      listener.setNotificationHandler('notifications/resources/updated', ({ params }) => resolve(params.uri)),
    )
  const saveCall = { name: 'save_session', arguments: { messages: [{ role: 'user', content: 'Hello.' }] } }
  const uri = 'threadkeep://sessions/default'

  verifies('S-04', 'is notified when a session is written: stateless protocol over HTTP', async () => {
    await using own = await connectHttp(server.url)
    const updated = nextUpdate(own.client)
    await own.client.listen({ resourceSubscriptions: [uri] })
    await client.callTool(saveCall)
    expect(await updated).toBe(uri)
  })

  verifies('S-04', 'is notified when a session is written: stateless protocol over stdio', async () => {
    await using own = await connectStdio()
    const updated = nextUpdate(own.client)
    await own.client.listen({ resourceSubscriptions: [uri] })
    await own.client.callTool(saveCall)
    expect(await updated).toBe(uri)
  })

  verifies('S-04', 'is notified when a session is written: older protocol over stdio', async () => {
    await using own = await connectStdio('2025-06-18')
    const updated = nextUpdate(own.client)
    await expect(own.client.subscribeResource({ uri: 'threadkeep://nope' })).rejects.toMatchObject({
      message: expect.stringContaining('Resource not found'),
    })
    await own.client.subscribeResource({ uri })
    await own.client.callTool(saveCall)
    expect(await updated).toBe(uri)
    await own.client.unsubscribeResource({ uri })
  })

  it('is notified when the graph changes', async () => {
    await using own = await connectStdio()
    const updated = nextUpdate(own.client)
    await own.client.listen({ resourceSubscriptions: ['memory://knowledge-graph'] })
    await own.client.callTool({
      name: 'create_entities',
      arguments: { entities: [{ name: 'Ann', entityType: 'person', observations: [] }] },
    })
    expect(await updated).toBe('memory://knowledge-graph')
  })
})
