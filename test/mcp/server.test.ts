import { fileURLToPath } from 'node:url'
import { Client, ProtocolError } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { InMemoryTransport } from '@modelcontextprotocol/server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { MemoryError } from '../../src/domain/error.ts'
import { openMemory } from '../../src/index.ts'
import { openHost } from '../../src/mcp/host.ts'
import { visitorOf } from '../../src/mcp/scope.ts'
import { mcpServer } from '../../src/mcp/server.ts'
import { type Call, tool } from '../../src/mcp/tool.ts'
import { offered, tools } from '../../src/mcp/tools.ts'
import { verifies } from '../requirements/verifies.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { type Connected, overHttp, overStdio, protocols, type Served, startMcp, textOf } from './serverStage.ts'

const fresh = freshFiles()
let server: Served
beforeAll(async () => {
  server = await startMcp()
})
afterAll(() => server[Symbol.asyncDispose]())

const messages = [
  { role: 'user', content: 'The login page of the shop must say Welcome back.' },
  { role: 'assistant', content: 'I changed login.html: the heading says Welcome back.' },
]
const nine = [
  'create_entities',
  'create_relations',
  'add_observations',
  'delete_entities',
  'delete_observations',
  'delete_relations',
  'read_graph',
  'search_nodes',
]

const ways = protocols.flatMap((protocol) => [
  [`stdio, ${protocol}`, (): Promise<Connected> => overStdio(protocol)] as const,
  [`HTTP, ${protocol}`, (): Promise<Connected> => overHttp(server.url, protocol)] as const,
])

describe('a client', () => {
  for (const [name, connect] of ways) {
    verifies('S-04', `saves a chat and goes on with it: ${name}`, async () => {
      await using connection = await connect()
      const { client } = connection
      const told: number[] = []
      const workspace = `w-${name.replaceAll(/\W/g, '')}`
      const saved = await client.callTool(
        { name: 'save_session', arguments: { workspace, messages } },
        { onprogress: ({ progress }) => told.push(progress) },
      )
      expect(saved.structuredContent).toMatchObject({ workspaceId: workspace, messages: 2, added: 2 })
      expect(told).toEqual([1, 2, 3, 4, 5])
      const { sessionId } = saved.structuredContent as { sessionId: string }
      const restored = await client.callTool({ name: 'restore_session', arguments: { workspace, tokenBudget: 2_000 } })
      expect(restored.structuredContent).toMatchObject({ continues: sessionId, budget: 2_000 })
      expect(textOf(restored)).toContain('Welcome back')
    })

    verifies('S-04', `is told what is wrong in words, and nothing of what is inside: ${name}`, async () => {
      await using connection = await connect()
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
  }

  it('is told how to use the server, and by which version', async () => {
    await using connection = await overStdio()
    expect(connection.client.getServerVersion()).toMatchObject({ name: 'threadkeep', title: 'Threadkeep' })
    expect(connection.client.getInstructions()).toContain('restore_session')
  })

  verifies('S-04', 'finds with every tool a title, hints, and what it takes and gives', async () => {
    await using connection = await overStdio()
    const listed = (await connection.client.listTools()).tools
    expect(listed.map(({ name }) => name)).toEqual(tools.map(({ name }) => name))
    for (const { name, title, description, annotations, inputSchema, outputSchema } of listed) {
      expect([name, typeof title, (description ?? '').length > 20]).toEqual([name, 'string', true])
      expect(Object.keys(annotations ?? {}).sort()).toEqual([
        'destructiveHint',
        'idempotentHint',
        'openWorldHint',
        'readOnlyHint',
      ])
      expect([inputSchema.type, outputSchema?.type]).toEqual(['object', 'object'])
      expect(Object.hasOwn(inputSchema.properties ?? {}, 'workspace')).toBe(![...nine, 'open_nodes'].includes(name))
    }
  })

  verifies(
    'S-04',
    'finds the nine tools of the reference server described as they are there, to the letter',
    async () => {
      const described = async (client: Client): Promise<readonly unknown[]> =>
        (await client.listTools()).tools
          .filter(({ name }) => [...nine, 'open_nodes'].includes(name))
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
        await using connection = await overStdio('2025-11-25')
        expect(await described(connection.client)).toEqual(await described(reference))
      } finally {
        await reference.close()
      }
    },
  )
})

describe('a tool', () => {
  const harmless = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
  const speaking = (run: (call: Call) => Promise<string>) =>
    offered(
      tool({
        ...{ name: 'probe', title: 'Probe', description: 'Does what a test wants.', annotations: harmless },
        ...{ input: z.object({}), output: z.object({ said: z.string() }) },
        run: async (_, call) => {
          const said = await run(call)
          return { text: said, structured: { said } }
        },
      }),
    )

  /** A client of a server that has this tool and no other. */
  async function withTool(
    run: (call: Call) => Promise<string>,
    use: (client: Client, faults: readonly unknown[]) => Promise<void>,
  ): Promise<void> {
    await using memory = await openMemory({ profile: 'handoff' })
    const faults: unknown[] = []
    const settings = { audit: fresh('.jsonl') }
    const onFault = (error: unknown): void => void faults.push(error)
    await using host = await openHost({
      memory,
      store: 'ram:',
      settings,
      workspaces: [],
      receipts: async () => [],
      onFault,
    })
    const [near, far] = InMemoryTransport.createLinkedPair()
    const client = new Client({ name: 'a-client', version: '1.0.0' })
    await mcpServer(host.desk, {
      ...host,
      visitor: visitorOf({ only: ['mine'] }),
      tools: [speaking(run)],
      subscribes: false,
    }).connect(far)
    await client.connect(near)
    await use(client, faults)
    await client.close()
  }

  it('knows who asks, and in which workspace', () =>
    withTool(
      async ({ client, workspace }) => `${client} in ${workspace}`,
      async (client) => expect(textOf(await client.callTool({ name: 'probe' }))).toBe('a-client in mine'),
    ))

  it('is not run for a workspace that is not open', () =>
    withTool(
      async () => 'it ran',
      async (client) => {
        const refused = await client.callTool({ name: 'probe', arguments: { workspace: 'other' } })
        expect([refused.isError, textOf(refused)]).toEqual([
          true,
          'Workspace other was not found. Leave out workspace, or name one that is open to you.',
        ])
      },
    ))

  it('that breaks is told without what broke, which goes to whoever runs the server', () =>
    withTool(
      () => Promise.reject(new TypeError("Cannot read '/home/ann/.ssh/id_rsa'")),
      async (client, faults) => {
        const broken = await client.callTool({ name: 'probe' })
        const message =
          'Something went wrong inside Threadkeep (internal). What it writes to its standard error or log tells more; try again.'
        expect(broken).toMatchObject({
          isError: true,
          content: [{ text: message }],
          _meta: { 'threadkeep/error': { code: 'internal' } },
        })
        expect(faults).toHaveLength(1)
      },
    ))

  it('that finds the store damaged does not tell where it is', () =>
    withTool(
      () => Promise.reject(new MemoryError('corrupt', '/var/lib/threadkeep.db is damaged.')),
      async (client) => expect(textOf(await client.callTool({ name: 'probe' }))).not.toContain('/var/lib'),
    ))

  for (const code of ['busy', 'full', 'not-durable'] as const)
    it(`that cannot use the store (${code}) does not tell where it is, and whoever runs the server hears of it`, () =>
      withTool(
        () =>
          Promise.reject(
            new MemoryError(code, 'There is no room left for /var/lib/threadkeep.db.', {
              cause: new Error('SQLITE_FULL'),
            }),
          ),
        async (client, faults) => {
          const message = `The store failed (${code}); nothing is known to be stored. Try again in a moment.`
          expect([textOf(await client.callTool({ name: 'probe' })), faults.length]).toEqual([message, 1])
        },
      ))

  it('that is refused for a limit is told which', () =>
    withTool(
      () =>
        Promise.reject(new MemoryError('full', 'A session holds at most 5 messages.', { param: 'lifetime.messages' })),
      async (client) =>
        expect(textOf(await client.callTool({ name: 'probe' }))).toBe('A session holds at most 5 messages.'),
    ))

  verifies('S-04', 'hears that its client has given up', async () => {
    const heard = Promise.withResolvers<string>()
    const begun = Promise.withResolvers<void>()
    const wait = ({ signal }: Call): Promise<string> => {
      begun.resolve()
      return new Promise((_, reject) =>
        signal.addEventListener('abort', () => {
          heard.resolve('given up')
          reject(signal.reason)
        }),
      )
    }
    await withTool(wait, async (client, faults) => {
      const giveUp = new AbortController()
      const calling = client.callTool({ name: 'probe' }, { signal: giveUp.signal })
      await begun.promise
      giveUp.abort()
      await expect(calling).rejects.toThrow()
      expect(await heard.promise).toBe('given up')
      expect(faults).toEqual([])
    })
  })

  verifies(
    'S-04',
    'speaks while it runs: how far it has come, once for each step, and what its client wants to hear',
    () =>
      withTool(
        async (call) => {
          for (const done of [1, 2, 2, 1, 3]) call.progress(done, 3, `step ${done}`)
          call.log('debug', 'of no interest')
          call.log('warning', 'the chat is nearly full')
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
