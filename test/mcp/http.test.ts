import type { Client } from '@modelcontextprotocol/client'
import { describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { startServer } from '../server/start.ts'
import { overHttp, type Served, startMcp, textOf } from './serverStage.ts'

const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }

async function post({ url }: Pick<Served, 'url'>, message: string, headers: Record<string, string> = json) {
  const response = await fetch(`${url}/mcp`, { method: 'POST', headers, body: message })
  const text = await response.text()
  // What is answered to older clients is a stream of one event.
  const body = JSON.parse(text.startsWith('{') ? text : '{}') as { error?: { code: number; message: string } }
  return { status: response.status, headers: response.headers, body }
}

const saved = async (client: Client, content: string, given: object = {}): Promise<string> => {
  const { structuredContent } = await client.callTool({
    name: 'save_session',
    arguments: { messages: [{ role: 'user', content }], ...given },
  })
  return (structuredContent as { sessionId: string }).sessionId
}

describe('/mcp', () => {
  it('takes POST and nothing else, and has an id for every request', async () => {
    await using server = await startMcp()
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

  it('says in the words of JSON-RPC what is no message', async () => {
    await using server = await startMcp()
    const told = async (body: string, headers?: Record<string, string>) => {
      const { status, body: answer } = await post(server, body, headers)
      return [status, answer.error?.code, answer.error?.message]
    }
    expect(await told('{"jsonrpc":')).toEqual([400, -32_700, 'The body is not valid JSON in UTF-8.'])
    expect((await told('[]')).slice(0, 2)).toEqual([400, -32_600])
    expect((await told(`{"a":${'['.repeat(100)}${']'.repeat(100)}}`)).slice(0, 2)).toEqual([400, -32_000])
    expect((await told(JSON.stringify(ping), { 'content-type': 'text/plain' })).slice(0, 2)).toEqual([415, -32_000])
    expect((await told('{"hello":"world"}'))[0]).toBe(400)
  })

  verifies('S-04', 'refuses an argument of 100 MB, and goes on', async () => {
    await using server = await startMcp()
    const argument = { query: 'x'.repeat(100_000_000) }
    const large = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'search_nodes', arguments: argument } }
    const { status, body } = await post(server, JSON.stringify(large))
    expect([status, body.error?.message]).toEqual([413, 'The body is larger than 33554432 bytes.'])
    expect((await post(server, JSON.stringify(ping))).status).toBe(200)
  })

  it('is asked only under the names of the server, and by pages of its own', async () => {
    await using server = await startMcp()
    expect((await post(server, JSON.stringify(ping), { ...json, origin: 'https://evil.example' })).status).toBe(403)
  })

  it('is not there where a server was opened without it', async () => {
    await using server = await startServer()
    expect((await post(server, JSON.stringify(ping))).status).toBe(404)
  })
})

describe('keys over MCP', () => {
  verifies(['H-09', 'S-04'], 'are asked for, and open their own workspace and no other', async () => {
    await using server = await startMcp([['acme'], ['globex']])
    const [acme, globex] = server.keys
    expect((await post(server, JSON.stringify(ping))).status).toBe(401)
    await using first = await overHttp(server.url, '2026-07-28', acme)
    await using second = await overHttp(server.url, '2025-06-18', globex)
    const id = await saved(first.client, 'The code of the safe is 4711.')
    expect((await first.client.callTool({ name: 'list_sessions' })).structuredContent).toMatchObject({
      total: 1,
      sessions: [{ workspaceId: 'acme' }],
    })
    expect((await second.client.callTool({ name: 'list_sessions' })).structuredContent).toEqual({
      sessions: [],
      total: 0,
    })
    const told = async (given: object) =>
      textOf(await second.client.callTool({ name: 'get_session', arguments: { ...given } }))
    expect(await told({ sessionId: id })).toBe((await told({ sessionId: 'session_1' })).replace('session_1', id))
    expect(await told({ sessionId: id, workspace: 'acme' })).toBe(
      (await told({ sessionId: id, workspace: 'nowhere' })).replace('nowhere', 'acme'),
    )
    expect(await told({ sessionId: id, workspaceId: 'acme' })).toContain('Workspace acme was not found.')
    await expect(second.client.readResource({ uri: `threadkeep://sessions/acme/${id}/transcript` })).rejects.toThrow(
      'Resource not found',
    )
  })

  it('have each a graph of their own behind the nine tools', async () => {
    await using server = await startMcp([['acme'], ['globex']])
    const [acme, globex] = server.keys
    await using first = await overHttp(server.url, '2026-07-28', acme)
    await using second = await overHttp(server.url, '2026-07-28', globex)
    await first.client.callTool({
      name: 'create_entities',
      arguments: { entities: [{ name: 'Ann', entityType: 'person', observations: [] }] },
    })
    expect((await second.client.callTool({ name: 'read_graph' })).structuredContent).toEqual({
      entities: [],
      relations: [],
    })
  })

  verifies('H-09', 'do not let anybody hear what changes in the workspace of another', async () => {
    await using server = await startMcp([['acme'], ['globex']])
    const [acme, globex] = server.keys
    await using first = await overHttp(server.url, '2026-07-28', acme)
    await using second = await overHttp(server.url, '2026-07-28', globex)
    const heard = new Promise<string>((resolve) =>
      second.client.setNotificationHandler('notifications/resources/updated', ({ params }) => resolve(params.uri)),
    )
    await second.client.listen({
      resourceSubscriptions: ['threadkeep://sessions/acme', 'threadkeep://sessions/globex'],
    })
    await saved(first.client, 'Hello.')
    await saved(second.client, 'Hello.')
    expect(await heard).toBe('threadkeep://sessions/globex')
  })

  verifies('H-09', 'that open nothing here find nothing here, by whatever way', async () => {
    await using server = await startMcp([['acme'], ['globex']], { only: ['acme'] })
    const [acme, globex] = server.keys
    await using first = await overHttp(server.url, '2026-07-28', acme)
    await using second = await overHttp(server.url, '2026-07-28', globex)
    await first.client.callTool({
      name: 'create_entities',
      arguments: { entities: [{ name: 'Ann', entityType: 'person', observations: [] }] },
    })
    await saved(first.client, 'Hello.')
    const { client } = second
    for (const name of ['read_graph', 'list_sessions', 'query_entities'])
      expect(textOf(await client.callTool({ name }))).toBe(
        'Workspace acme was not found. Leave out workspace, or name one that is open to you.',
      )
    for (const uri of ['memory://knowledge-graph', 'threadkeep://sessions/acme', 'threadkeep://sessions/globex'])
      await expect(client.readResource({ uri })).rejects.toThrow(`Resource not found: ${uri}`)
    expect((await client.listResources()).resources).toEqual([])
    await expect(client.getPrompt({ name: 'continue-session' })).rejects.toThrow('Workspace acme was not found.')
    const argument = { name: 'workspace', value: '' }
    expect(
      (await client.complete({ ref: { type: 'ref/prompt', name: 'continue-session' }, argument })).completion.values,
    ).toEqual([])
  })

  verifies('H-09', 'that are taken back end the streams they have opened', async () => {
    await using server = await startMcp([['acme'], ['acme']])
    const [former, other] = server.keys
    await using first = await overHttp(server.url, '2026-07-28', former)
    await using second = await overHttp(server.url, '2026-07-28', other)
    const subscription = await first.client.listen({ resourceSubscriptions: ['threadkeep://sessions/acme'] })
    await server.revoke(former)
    let closed: unknown
    void subscription.closed.then((why) => (closed = why))
    // Keys are looked at once a second, and the next change then ends the stream.
    while (closed === undefined) await saved(second.client, 'Hello.')
    expect(closed).toBeTypeOf('string')
  })

  it('may open several workspaces, of which calls name one', async () => {
    await using server = await startMcp([['acme', 'globex']])
    await using both = await overHttp(server.url, '2026-07-28', server.keys[0])
    await saved(both.client, 'Hello.', { workspace: 'globex' })
    const listed = async (given: object) =>
      (await both.client.callTool({ name: 'list_sessions', arguments: { ...given } })).structuredContent
    expect([await listed({}), await listed({ workspace: 'globex' })]).toMatchObject([{ total: 0 }, { total: 1 }])
    expect((await both.client.listResources()).resources.map(({ uri }) => uri)).toEqual(
      expect.arrayContaining(['threadkeep://sessions/acme', 'threadkeep://sessions/globex']),
    )
  })
})

describe('a server that stops', () => {
  it('does not wait for clients that listen for changes', async () => {
    const server = await startMcp()
    const own = await overHttp(server.url)
    const subscription = await own.client.listen({ resourceSubscriptions: ['threadkeep://sessions/default'] })
    await server[Symbol.asyncDispose]()
    expect(await subscription.closed).toBeTypeOf('string')
    await own.close()
  })
})
