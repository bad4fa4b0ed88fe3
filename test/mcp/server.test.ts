import { fileURLToPath } from 'node:url'
import { Client, ProtocolError } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { InMemoryTransport } from '@modelcontextprotocol/server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { MemoryError } from '../../src/domain/error.ts'
import { openMemory } from '../../src/index.ts'
import { createPrincipal } from '../../src/mcp/principal.ts'
import { createMcpServer } from '../../src/mcp/server.ts'
import { openMcpServices } from '../../src/mcp/services.ts'
import { prepareTool, registeredTools } from '../../src/mcp/tools/registry.ts'
import { defineTool, type ToolInvocation } from '../../src/mcp/tools/tool.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import {
  type ConnectedClient,
  connectHttp,
  connectStdio,
  protocols,
  startTestServer,
  type TestServer,
  textOf,
} from './harness.ts'

const fresh = createTempPaths()
let server: TestServer
beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const messages = [
  { role: 'user', content: 'The login page of the shop must say Welcome back.' },
  { role: 'assistant', content: 'I changed login.html: the heading says Welcome back.' },
]
const referenceToolNames = [
  'create_entities',
  'create_relations',
  'add_observations',
  'delete_entities',
  'delete_observations',
  'delete_relations',
  'read_graph',
  'search_nodes',
  'open_nodes',
]

const connections = protocols.flatMap((protocol) => [
  [`stdio, ${protocol}`, (): Promise<ConnectedClient> => connectStdio(protocol)] as const,
  [`HTTP, ${protocol}`, (): Promise<ConnectedClient> => connectHttp(server.url, protocol)] as const,
])

describe.each(connections)('client over %s', (name, connect) => {
  let connection: ConnectedClient
  beforeAll(async () => {
    connection = await connect()
  })
  afterAll(() => connection.close())

  verifies('S-04', 'saves a chat and restores it', async () => {
    const { client } = connection
    const steps: number[] = []
    const workspace = `w-${name.replaceAll(/\W/g, '')}`
    const saved = await client.callTool(
      { name: 'save_session', arguments: { workspace, messages } },
      { onprogress: ({ progress }) => steps.push(progress) },
    )
    expect(saved.structuredContent).toMatchObject({ workspaceId: workspace, messages: 2, added: 2 })
    // The client drops the last step if it arrives together with the result.
    expect([
      [1, 2, 3, 4],
      [1, 2, 3, 4, 5],
    ]).toContainEqual(steps)
    const { sessionId } = saved.structuredContent as { sessionId: string }
    const restored = await client.callTool({ name: 'restore_session', arguments: { workspace, tokenBudget: 2_000 } })
    expect(restored.structuredContent).toMatchObject({ continues: sessionId, budget: 2_000 })
    expect(textOf(restored)).toContain('Welcome back')
  })

  verifies('S-04', 'gets readable errors without internal details', async () => {
    const { client } = connection
    const missing = await client.callTool({ name: 'get_session', arguments: { sessionId: 'session_1' } })
    expect(missing).toMatchObject({ isError: true, _meta: { 'threadkeep/error': { code: 'bad-option' } } })
    expect(textOf(missing)).toBe(
      'There is no session "session_1" in this workspace. list_sessions tells which there are.',
    )
    const wrong = await client.callTool({ name: 'get_session', arguments: { sessionId: 7 } })
    expect(wrong.isError).toBe(true)
    expect(textOf(wrong)).toContain('Invalid arguments for tool get_session')
    const unknown = client.callTool({ name: 'drop_everything', arguments: {} })
    await expect(unknown).rejects.toMatchObject({ code: -32_602, message: 'Tool drop_everything not found' })
    await expect(unknown).rejects.toBeInstanceOf(ProtocolError)
  })
})

describe('client', () => {
  it('gets instructions and the server version', async () => {
    await using connection = await connectHttp(server.url)
    expect(connection.client.getServerVersion()).toMatchObject({ name: 'threadkeep', title: 'Threadkeep' })
    expect(connection.client.getInstructions()).toContain('restore_session')
  })

  verifies('S-04', 'gets a title, a description, hints and schemas for every tool', async () => {
    await using connection = await connectHttp(server.url)
    const listed = (await connection.client.listTools()).tools
    expect(listed.map(({ name }) => name)).toEqual(registeredTools.map(({ name }) => name))
    for (const { name, title, description, annotations, inputSchema, outputSchema } of listed) {
      expect([name, typeof title, (description ?? '').length > 20]).toEqual([name, 'string', true])
      expect(Object.keys(annotations ?? {}).sort()).toEqual([
        'destructiveHint',
        'idempotentHint',
        'openWorldHint',
        'readOnlyHint',
      ])
      expect([inputSchema.type, outputSchema?.type]).toEqual(['object', 'object'])
      expect(Object.hasOwn(inputSchema.properties ?? {}, 'workspace')).toBe(!referenceToolNames.includes(name))
    }
  })

  verifies('S-04', 'gets the nine tools of the reference server with identical descriptions and schemas', async () => {
    const describeTools = async (client: Client): Promise<readonly unknown[]> =>
      (await client.listTools()).tools
        .filter(({ name }) => referenceToolNames.includes(name))
        .map(({ name, title, description, inputSchema, outputSchema, annotations }) => ({
          name,
          title,
          description,
          inputSchema,
          outputSchema,
          annotations,
        }))
    const reference = new Client({ name: 'a-client', version: '1.0.0' })
    const program = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-memory/dist/index.js'))
    await reference.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [program],
        env: { MEMORY_FILE_PATH: fresh('.jsonl') },
        stderr: 'ignore',
      }),
    )
    try {
      await using connection = await connectHttp(server.url, '2025-11-25')
      expect(await describeTools(connection.client)).toEqual(await describeTools(reference))
    } finally {
      await reference.close()
    }
  })
})

describe('tool', () => {
  const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
  const createProbe = (run: (invocation: ToolInvocation) => Promise<string>) =>
    prepareTool(
      defineTool({
        ...{ name: 'probe', title: 'Probe', description: 'Does what a test wants.', annotations },
        ...{ input: z.object({}), output: z.object({ result: z.string() }) },
        run: async (_, invocation) => {
          const result = await run(invocation)
          return { text: result, structured: { result } }
        },
      }),
    )

  /** Connects a client to a server whose only tool is a probe. */
  async function withProbe(
    run: (invocation: ToolInvocation) => Promise<string>,
    use: (client: Client, faults: readonly unknown[]) => Promise<void>,
  ): Promise<void> {
    await using memory = await openMemory({ profile: 'handoff' })
    const faults: unknown[] = []
    const settings = { audit: fresh('.jsonl') }
    const onFault = (error: unknown): void => void faults.push(error)
    await using host = await openMcpServices({
      memory,
      store: 'ram:',
      settings,
      workspaces: [],
      listReceipts: async () => [],
      onError: onFault,
    })
    const [clientTransport, serverTransport] = InMemoryTransport.createLinkedPair()
    const client = new Client({ name: 'a-client', version: '1.0.0' })
    await createMcpServer(host.toolContext, {
      ...host,
      principal: createPrincipal({ only: ['mine'] }),
      tools: [createProbe(run)],
      supportsSubscriptions: false,
    }).connect(serverTransport)
    await client.connect(clientTransport)
    await use(client, faults)
    await client.close()
  }

  it('gets the client name and the workspace', () =>
    withProbe(
      async ({ client, workspace }) => `${client} in ${workspace}`,
      async (client) => expect(textOf(await client.callTool({ name: 'probe' }))).toBe('a-client in mine'),
    ))

  it('is not run for a workspace that is not allowed', () =>
    withProbe(
      async () => 'it ran',
      async (client) => {
        const result = await client.callTool({ name: 'probe', arguments: { workspace: 'other' } })
        expect([result.isError, textOf(result)]).toEqual([
          true,
          'Workspace other was not found. Leave out workspace, or name one you may use.',
        ])
      },
    ))

  it('with an unexpected error hides the details from the client and reports them to the operator', () =>
    withProbe(
      () => Promise.reject(new TypeError("Cannot read '/home/ann/.ssh/id_rsa'")),
      async (client, faults) => {
        const result = await client.callTool({ name: 'probe' })
        const message =
          "Internal error in Threadkeep (internal). Try again; the server's log or standard error has the details."
        expect(result).toMatchObject({
          isError: true,
          content: [{ text: message }],
          _meta: { 'threadkeep/error': { code: 'internal' } },
        })
        expect(faults).toHaveLength(1)
      },
    ))

  it('with a damaged store does not reveal its path', () =>
    withProbe(
      () => Promise.reject(new MemoryError('corrupt', '/var/lib/threadkeep.db is damaged.')),
      async (client) => expect(textOf(await client.callTool({ name: 'probe' }))).not.toContain('/var/lib'),
    ))

  for (const [code, message] of [
    ['busy', 'The store is busy'],
    ['disk-full', 'full'],
    ['not-durable', 'The store cannot be written to'],
  ] as const)
    it(`with a store failure (${code}) does not reveal its path and reports it to the operator`, () =>
      withProbe(
        () =>
          Promise.reject(
            new MemoryError(code, 'There is no room left for /var/lib/threadkeep.db.', {
              cause: new Error('SQLITE_FULL'),
            }),
          ),
        async (client, faults) => {
          const text = textOf(await client.callTool({ name: 'probe' }))
          expect(text).toContain(message)
          expect([text.includes('/var/lib'), faults.length]).toEqual([false, 1])
        },
      ))

  it('rejected by a profile limit names the limit', () =>
    withProbe(
      () =>
        Promise.reject(new MemoryError('full', 'A session holds at most 5 messages.', { param: 'lifetime.messages' })),
      async (client) =>
        expect(textOf(await client.callTool({ name: 'probe' }))).toBe('A session holds at most 5 messages.'),
    ))

  verifies('S-04', 'gets an abort signal when the client cancels', async () => {
    const aborted = Promise.withResolvers<string>()
    const started = Promise.withResolvers<void>()
    const wait = ({ signal }: ToolInvocation): Promise<string> => {
      started.resolve()
      return new Promise((_, reject) =>
        signal.addEventListener('abort', () => {
          aborted.resolve('aborted')
          reject(signal.reason)
        }),
      )
    }
    await withProbe(wait, async (client, faults) => {
      const cancel = new AbortController()
      const calling = client.callTool({ name: 'probe' }, { signal: cancel.signal })
      await started.promise
      cancel.abort()
      await expect(calling).rejects.toThrow()
      expect(await aborted.promise).toBe('aborted')
      expect(faults).toEqual([])
    })
  })

  verifies('S-04', 'sends increasing progress, and log messages of the requested level', () =>
    withProbe(
      async (invocation) => {
        for (const done of [1, 2, 2, 1, 3]) invocation.progress(done, 3, `step ${done}`)
        invocation.log('debug', 'of no interest')
        invocation.log('warning', 'the chat is nearly full')
        return 'done'
      },
      async (client) => {
        const [steps, logs]: [unknown[], unknown[]] = [[], []]
        client.setNotificationHandler('notifications/message', ({ params }) => void logs.push(params))
        await client.setLoggingLevel('warning')
        await client.callTool(
          { name: 'probe' },
          { onprogress: ({ progress, total, message }) => steps.push([progress, total, message]) },
        )
        expect(steps).toEqual([1, 2, 3].map((done) => [done, 3, `step ${done}`]))
        expect(logs).toEqual([{ level: 'warning', data: 'the chat is nearly full', logger: 'threadkeep' }])
      },
    ),
  )
})
