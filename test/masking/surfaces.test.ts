import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { referenceTools } from '../../src/mcp/tools/reference.ts'
import { parseConfig } from '../../src/server/config/schema.ts'
import { resolveServerConfig } from '../../src/server/config/serverConfig.ts'
import { mergeSettings, toConfigSource } from '../../src/server/config/settings.ts'
import { openLog } from '../../src/server/observability/log.ts'
import { buildOpenApi } from '../../src/server/openapi/openapi.ts'
import { openServer } from '../../src/server/openServer.ts'
import { replyWith, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { user } from '../server/start.ts'
import { Canaries, generateInputs } from './canaries.ts'

/** Starts a receiver of webhooks, which keeps the payloads. */
async function startReceiver() {
  const payloads: string[] = []
  const server = createServer(async (request, response) => {
    payloads.push(await text(request))
    response.writeHead(204).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/ended`, payloads, close }
}

/** Starts a server with a store, an audit log, a log, webhooks and a model that repeats the secret it is sent. */
async function startMaskedServer() {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-masking-'))
  const [file, audit] = [join(folder, 'store.db'), join(folder, 'audit.jsonl')]
  const upstream = await startUpstream(({ text }) => replyWith(`It is ${text.match(/sk-ant-api03-\w+/g)?.at(-1)}.`))
  const receiver = await startReceiver()
  const config = {
    listen: { port: 0 },
    store: `sqlite:${file}`,
    upstreams: [{ base: upstream.url }],
    webhook: { url: receiver.url, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },
    mcp: { audit, allow: [tmpdir()], write: false },
  }
  const source = toConfigSource(parseConfig(config), 'file')
  const logLines: string[] = []
  const log = openLog({ level: 'debug', destination: { write: (line) => void logLines.push(line) } })
  const server = await openServer(resolveServerConfig(mergeSettings([source], undefined), {}), { log })
  const send = async (method: string, path: string, body?: unknown): Promise<Readonly<Record<string, unknown>>> => {
    const json =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    const response = await fetch(`${server.url}${path}`, { method, ...json })
    return response.status === 204 ? {} : ((await response.json()) as Readonly<Record<string, unknown>>)
  }
  const close = async (): Promise<void> => {
    await server.close(1_000)
    await upstream[Symbol.asyncDispose]()
    await receiver.close()
  }
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  return { url: server.url, file, audit, payloads: receiver.payloads, logLines, send, close, remove }
}

/** Arguments without which a tool does nothing, though its schema does not require them. */
const requiredArguments: Readonly<Record<string, object>> = {
  save_session: { messages: [user('Hello.')] },
  mark_important: { sessionId: 'known', messageIds: ['m1'] },
}
/** Tools of the reference server take no workspace. */
const isReferenceTool = (name: string): boolean => referenceTools.some((tool) => tool.name === name)
/** Tools that refuse all generated arguments: they read, or write a file of the user, who has not allowed it here. */
const refusedTools: readonly string[] = [
  'get_session',
  'delete_session',
  'session_analytics',
  'read_file',
  'write_file',
]
/**
 * Operations without a success: the model server of these tests does not speak Responses (the question is stored
 * nevertheless), sessions take no files, and no knowledge is archived or pending. MCP messages are tested as tools,
 * bundles as those of the library.
 */
const refusedOperations: readonly string[] = [
  'createResponse',
  'createResponseByHeader',
  'createResponseUnderV1',
  'uploadFileByKey',
  'restoreKnowledge',
  'approveKnowledge',
  'importSessions',
  'sendMcpMessage',
]

/** Two parts of a content, with one half of a secret in each. */
const parts = (secret: string, type: string) => [
  { type, text: `Use ${secret.slice(0, 30)}` },
  { type, text: secret.slice(30) },
]

/** Bodies of model requests, by the end of their path. */
const requestBodies: Readonly<Record<string, (secret: string) => unknown>> = {
  '/files': (secret) => `Use ${secret} for it.`,
  '/items': (secret) => ({ items: [{ type: 'message', role: 'user', content: parts(secret, 'input_text') }] }),
  '/{conversation}': (secret) => ({ metadata: { note: secret } }),
  '/transfer': () => ({ to: 'acme:moved' }),
  '/chat/completions': (secret) => ({
    model: secret,
    user: 'known',
    messages: [
      { role: 'user', content: parts(secret, 'text'), name: secret },
      { role: 'user', content: `see ${secret}` },
    ],
  }),
  '/messages': (secret) => ({
    model: secret,
    max_tokens: 100,
    messages: [{ role: 'user', content: parts(secret, 'text') }],
  }),
  '/responses': (secret) => ({
    model: secret,
    input: [{ type: 'message', role: 'user', content: parts(secret, 'input_text') }],
  }),
  '/conversations': (secret) => ({
    items: [{ type: 'message', role: 'user', content: parts(secret, 'input_text') }],
    metadata: { note: secret },
  }),
  '/knowledge': (secret) => ({ category: 'domain', key: secret, value: { [secret]: [secret] } }),
  '/record': (secret) => ({ important_data: { entities: { note: secret } }, conversation_summary: secret }),
  '/api/sessions': (secret) => ({ key: 'acme:begun', metadata: { [secret]: secret } }),
}

type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly parameters?: Readonly<Record<string, Parameter>> }
}
type Parameter = { readonly name?: string; readonly in?: string; readonly $ref?: string }
type Operation = {
  readonly operationId: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Record<string, unknown> }>> }
}

/** Lists all operations of the HTTP server with their query parameters and bodies that contain a secret. */
function listOperations() {
  const document = buildOpenApi() as Document
  const resolve = (parameter: Parameter): Parameter =>
    document.components.parameters?.[parameter.$ref?.split('/').at(-1) ?? ''] ?? parameter
  const definitions = document as unknown as Record<string, unknown>
  const seen = new Set<string>()
  const createBodies = (method: string, path: string, schema: Record<string, unknown> | undefined) => {
    // The same operation under another path gets a few bodies only.
    const name = JSON.stringify(schema)
    const limit = seen.has(name) ? 4 : 60
    seen.add(name)
    const written = Object.entries(requestBodies).filter(([end]) => method === 'post' && path.endsWith(end))
    return (secret: string): readonly unknown[] => [
      ...(schema === undefined ? [undefined] : generateInputs(schema, definitions, secret).slice(0, limit)),
      ...written.map(([, write]) => write(secret)),
    ]
  }
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, parameters = [], requestBody }]) => ({
      name: operationId,
      method: method.toUpperCase(),
      path,
      query: parameters.map(resolve).flatMap((found) => (found.in === 'query' ? [found.name ?? ''] : [])),
      bodies: createBodies(method, path, requestBody?.content['application/json']?.schema),
    })),
  )
}

type MaskedServer = Awaited<ReturnType<typeof startMaskedServer>>
type ListedOperation = ReturnType<typeof listOperations>[number]

/** Sends a secret in every string, header and name of an operation. Returns true if a request succeeded. */
async function sendSecret(server: MaskedServer, operation: ListedOperation, secret: string): Promise<boolean> {
  const { method, path, query, bodies } = operation
  const send = async (address: string, body: unknown, key = 'acme:known'): Promise<boolean> => {
    const headers = {
      'x-threadkeep-key': key,
      'x-request-id': secret,
      'x-filename': `${secret}.txt`,
      'user-agent': `agent ${secret}`,
      ...(body !== undefined && { 'content-type': typeof body === 'string' ? 'text/plain' : 'application/json' }),
    }
    const content = typeof body === 'string' ? body : JSON.stringify(body)
    const response = await fetch(`${server.url}${address}`, {
      method,
      headers,
      ...(body !== undefined && { body: content }),
    })
    // A stream of events has no end.
    const isEndless = method === 'GET' && response.headers.get('content-type')?.startsWith('text/event-stream') === true
    await (isEndless ? response.body?.cancel() : response.text())
    return response.ok
  }
  await server.send('POST', '/v1/acme:known/chat/completions', { model: 'any', messages: [user('Hello.')] })
  const { id: conversation } = await server.send('POST', '/v1/acme:known/conversations', {})
  const addressOf = (key: string, scope: string, id: string): string =>
    path
      .replace('{key}', key)
      .replace('{scope}', scope)
      .replace(/\/conversations\/\{[^}]*\}/, `/conversations/${conversation}`)
      .replace(/\{[^}]*\}/g, id)
  const contents = bodies(secret)
  // The last request may end the session or move it.
  const accepted = await Promise.all(
    contents.slice(0, -1).map((body) => send(addressOf('acme:known', 'acme', secret), body)),
  )
  accepted.push(await send(addressOf('acme:known', 'acme', secret), contents.at(-1)))
  await Promise.all([
    ...query.map((name) => send(`${addressOf('acme:known', 'acme', 'known')}?${name}=${secret}`, contents.at(-1))),
    ...[`acme:${secret}`, secret, `${secret}:known`].map((key) =>
      send(addressOf(key, secret, key), contents.at(-1), key),
    ),
  ])
  return accepted.includes(true)
}

describe('a secret in any string', () => {
  const canaries = new Canaries()
  let server: MaskedServer
  beforeAll(async () => {
    server = await startMaskedServer()
  })
  afterAll(() => server.remove())

  verifies(['R-02', 'X-08'], 'of any MCP tool › is in no file of the store and not in the audit log', async () => {
    const client = new Client({ name: 'a-client', version: '1.0.0' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`)))
    const call = async (name: string, input: unknown): Promise<boolean> => {
      const result = await client.callTool({ name, arguments: input as Record<string, unknown> }).catch(() => undefined)
      return result !== undefined && result.isError !== true
    }
    await call('upsert_entity', { type: 'note', id: 'e1', properties: {}, workspace: 'acme' })
    const saved = await client.callTool({
      name: 'save_session',
      arguments: { messages: [user('Hello.')], workspace: 'acme' },
    })
    const { sessionId } = saved.structuredContent as { sessionId: string }
    const withSession = (input: object): unknown =>
      JSON.parse(JSON.stringify(input).replaceAll('"known"', JSON.stringify(sessionId)))
    const { tools } = await client.listTools()
    const refused: string[] = []
    for (const { name, inputSchema } of tools) {
      const secret = canaries.create(name)
      const required = { workspace: 'acme', ...requiredArguments[name] }
      const accepted = await Promise.all(
        [{}, ...generateInputs(inputSchema, inputSchema, secret)].map((input) =>
          call(name, isReferenceTool(name) ? input : withSession({ ...required, ...(input as object) })),
        ),
      )
      if (!accepted.includes(true)) refused.push(name)
    }
    await client.close()
    expect(refused).toEqual(refusedTools)
    expect(canaries.findIn(server.file, [server.audit, `${server.audit}.head`])).toEqual([])
  })

  verifies(['R-02', 'X-08'], 'of any HTTP operation › is in no file of the store', async () => {
    const refused: string[] = []
    for (const operation of listOperations()) {
      const isAccepted = await sendSecret(server, operation, canaries.create(operation.name))
      const { name, method } = operation
      if (!isAccepted && method !== 'GET' && method !== 'DELETE') refused.push(name)
    }
    expect(refused).toEqual(refusedOperations)
    expect(canaries.findIn(server.file)).toEqual([])
  })

  verifies(
    ['R-02', 'X-08'],
    'of any tool or operation › is in no webhook, no line of the log and no file',
    async () => {
      await server.send('POST', '/v1/acme:ended/chat/completions', {
        model: 'any',
        messages: [user(`Use ${canaries.create('ended session')}.`)],
      })
      const { items } = (await server.send('GET', '/api/sessions?limit=500')) as { items: readonly { key: string }[] }
      for (const { key } of items) await server.send('DELETE', `/api/sessions/${encodeURIComponent(key)}`)
      await server.close()
      const payloads = server.payloads.join('\n')
      expect(payloads).toContain('"key":"acme:ended"')
      expect(payloads).toContain('⟨secret:')
      expect(server.logLines.length).toBeGreaterThan(500)
      expect([canaries.findInText(payloads), canaries.findInText(server.logLines.join(''))]).toEqual([[], []])
      expect(canaries.findIn(server.file, [server.audit, `${server.audit}.head`])).toEqual([])
    },
  )
})
