import type { Client } from '@modelcontextprotocol/client'
import { describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { startServer } from '../server/start.ts'
import { connectHttp, startTestServer, type TestServer, textOf } from './harness.ts'

const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }

async function post({ url }: Pick<TestServer, 'url'>, message: string, headers: Record<string, string> = json) {
  const response = await fetch(`${url}/mcp`, { method: 'POST', headers, body: message })
  const text = await response.text()
  // Older clients get a stream with one event instead of JSON.
  const body = JSON.parse(text.startsWith('{') ? text : '{}') as { error?: { code: number; message: string } }
  return { status: response.status, headers: response.headers, body }
}

const saveSession = async (client: Client, content: string, args: object = {}): Promise<string> => {
  const { structuredContent } = await client.callTool({
    name: 'save_session',
    arguments: { messages: [{ role: 'user', content }], ...args },
  })
  return (structuredContent as { sessionId: string }).sessionId
}

describe('/mcp', () => {
  it('accepts only POST, and echoes the request id', async () => {
    await using server = await startTestServer()
    for (const method of ['GET', 'DELETE']) {
      const response = await fetch(`${server.url}/mcp`, { method })
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
      expect(await response.json()).toEqual({
        ...{ jsonrpc: '2.0', id: null },
        error: { code: -32_000, message: `/mcp takes POST, not ${method}.`, data: { code: 'method_not_allowed' } },
      })
    }
    const { status, headers } = await post(server, JSON.stringify(ping), { ...json, 'x-request-id': 'my-request' })
    expect([status, headers.get('x-request-id')]).toEqual([200, 'my-request'])
  })

  it('answers an invalid message with a JSON-RPC error', async () => {
    await using server = await startTestServer()
    const postError = async (body: string, headers?: Record<string, string>) => {
      const { status, body: answer } = await post(server, body, headers)
      return [status, answer.error?.code, answer.error?.message]
    }
    expect(await postError('{"jsonrpc":')).toEqual([400, -32_700, 'The body is not valid JSON in UTF-8.'])
    expect((await postError('[]')).slice(0, 2)).toEqual([400, -32_600])
    expect((await postError(`{"a":${'['.repeat(100)}${']'.repeat(100)}}`)).slice(0, 2)).toEqual([400, -32_000])
    expect((await postError(JSON.stringify(ping), { 'content-type': 'text/plain' })).slice(0, 2)).toEqual([
      415, -32_000,
    ])
    expect((await postError('{"hello":"world"}'))[0]).toBe(400)
  })

  verifies('S-04', 'rejects an argument of 100 MB and keeps working', async () => {
    await using server = await startTestServer()
    const argument = { query: 'x'.repeat(100_000_000) }
    const large = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'search_nodes', arguments: argument } }
    const { status, body } = await post(server, JSON.stringify(large))
    expect([status, body.error?.message]).toEqual([413, 'The body is larger than 33554432 bytes.'])
    expect((await post(server, JSON.stringify(ping))).status).toBe(200)
  })

  it('rejects a foreign origin', async () => {
    await using server = await startTestServer()
    expect((await post(server, JSON.stringify(ping), { ...json, origin: 'https://evil.example' })).status).toBe(403)
  })

  it('is 404 if the server has no MCP endpoint', async () => {
    await using server = await startServer()
    expect((await post(server, JSON.stringify(ping))).status).toBe(404)
  })
})

describe('API key over MCP', () => {
  verifies(['H-09', 'S-04'], 'is required and gives access to its own workspace only', async () => {
    await using server = await startTestServer([['acme'], ['globex']])
    const [acme, globex] = server.keys
    expect((await post(server, JSON.stringify(ping))).status).toBe(401)
    await using first = await connectHttp(server.url, '2026-07-28', acme)
    await using second = await connectHttp(server.url, '2025-06-18', globex)
    const id = await saveSession(first.client, 'The code of the safe is 4711.')
    expect((await first.client.callTool({ name: 'list_sessions' })).structuredContent).toMatchObject({
      total: 1,
      sessions: [{ workspaceId: 'acme' }],
    })
    expect((await second.client.callTool({ name: 'list_sessions' })).structuredContent).toEqual({
      sessions: [],
      total: 0,
    })
    const getSession = async (args: object) =>
      textOf(await second.client.callTool({ name: 'get_session', arguments: { ...args } }))
    expect(await getSession({ sessionId: id })).toBe(
      (await getSession({ sessionId: 'session_1' })).replace('session_1', id),
    )
    expect(await getSession({ sessionId: id, workspace: 'acme' })).toBe(
      (await getSession({ sessionId: id, workspace: 'nowhere' })).replace('nowhere', 'acme'),
    )
    expect(await getSession({ sessionId: id, workspaceId: 'acme' })).toContain('Workspace acme was not found.')
    await expect(second.client.readResource({ uri: `threadkeep://sessions/acme/${id}/transcript` })).rejects.toThrow(
      'Resource not found',
    )
  })

  it('has its own graph behind the reference tools', async () => {
    await using server = await startTestServer([['acme'], ['globex']])
    const [acme, globex] = server.keys
    await using first = await connectHttp(server.url, '2026-07-28', acme)
    await using second = await connectHttp(server.url, '2026-07-28', globex)
    await first.client.callTool({
      name: 'create_entities',
      arguments: { entities: [{ name: 'Ann', entityType: 'person', observations: [] }] },
    })
    expect((await second.client.callTool({ name: 'read_graph' })).structuredContent).toEqual({
      entities: [],
      relations: [],
    })
  })

  verifies('H-09', 'gets no change notifications of other workspaces', async () => {
    await using server = await startTestServer([['acme'], ['globex']])
    const [acme, globex] = server.keys
    await using first = await connectHttp(server.url, '2026-07-28', acme)
    await using second = await connectHttp(server.url, '2026-07-28', globex)
    const notified = new Promise<string>((resolve) =>
      second.client.setNotificationHandler('notifications/resources/updated', ({ params }) => resolve(params.uri)),
    )
    await second.client.listen({
      resourceSubscriptions: ['threadkeep://sessions/acme', 'threadkeep://sessions/globex'],
    })
    await saveSession(first.client, 'Hello.')
    await saveSession(second.client, 'Hello.')
    expect(await notified).toBe('threadkeep://sessions/globex')
  })

  verifies(
    'H-09',
    'without an allowed workspace finds nothing through tools, resources, prompts or completions',
    async () => {
      await using server = await startTestServer([['acme'], ['globex']], { only: ['acme'] })
      const [acme, globex] = server.keys
      await using first = await connectHttp(server.url, '2026-07-28', acme)
      await using second = await connectHttp(server.url, '2026-07-28', globex)
      await first.client.callTool({
        name: 'create_entities',
        arguments: { entities: [{ name: 'Ann', entityType: 'person', observations: [] }] },
      })
      await saveSession(first.client, 'Hello.')
      const { client } = second
      for (const name of ['read_graph', 'list_sessions', 'query_entities'])
        expect(textOf(await client.callTool({ name }))).toBe(
          'Workspace acme was not found. Leave out workspace, or name one you may use.',
        )
      for (const uri of ['memory://knowledge-graph', 'threadkeep://sessions/acme', 'threadkeep://sessions/globex'])
        await expect(client.readResource({ uri })).rejects.toThrow(`Resource not found: ${uri}`)
      expect((await client.listResources()).resources).toEqual([])
      await expect(client.getPrompt({ name: 'continue-session' })).rejects.toThrow('Workspace acme was not found.')
      const argument = { name: 'workspace', value: '' }
      expect(
        (await client.complete({ ref: { type: 'ref/prompt', name: 'continue-session' }, argument })).completion.values,
      ).toEqual([])
    },
  )

  verifies('H-09', 'that is revoked ends its open streams', async () => {
    await using server = await startTestServer([['acme'], ['acme']])
    const [revoked, other] = server.keys
    await using first = await connectHttp(server.url, '2026-07-28', revoked)
    await using second = await connectHttp(server.url, '2026-07-28', other)
    const subscription = await first.client.listen({ resourceSubscriptions: ['threadkeep://sessions/acme'] })
    await server.revoke(revoked)
    let closed: unknown
    void subscription.closed.then((reason) => (closed = reason))
    // Keys are reloaded once a second; the next change then ends the stream.
    while (closed === undefined) await saveSession(second.client, 'Hello.')
    expect(closed).toBeTypeOf('string')
  })

  it('with several workspaces uses the one that a call names', async () => {
    await using server = await startTestServer([['acme', 'globex']])
    await using both = await connectHttp(server.url, '2026-07-28', server.keys[0])
    await saveSession(both.client, 'Hello.', { workspace: 'globex' })
    const listSessions = async (args: object) =>
      (await both.client.callTool({ name: 'list_sessions', arguments: { ...args } })).structuredContent
    expect([await listSessions({}), await listSessions({ workspace: 'globex' })]).toMatchObject([
      { total: 0 },
      { total: 1 },
    ])
    expect((await both.client.listResources()).resources.map(({ uri }) => uri)).toEqual(
      expect.arrayContaining(['threadkeep://sessions/acme', 'threadkeep://sessions/globex']),
    )
  })
})

describe('server shutdown', () => {
  it('does not wait for subscription streams', async () => {
    const server = await startTestServer()
    const own = await connectHttp(server.url)
    const subscription = await own.client.listen({ resourceSubscriptions: ['threadkeep://sessions/default'] })
    await server[Symbol.asyncDispose]()
    expect(await subscription.closed).toBeTypeOf('string')
    await own.close()
  })
})
