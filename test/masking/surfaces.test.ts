import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { describe, expect, onTestFinished } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { openMemory, profiles } from '../../src/index.ts'
import { referenceTools } from '../../src/mcp/tools/reference.ts'
import { Memory } from '../../src/memory.ts'
import { type ForeignFormat, parseForeign } from '../../src/portable/format.ts'
import { importForeign } from '../../src/portable/importForeign.ts'
import { parseConfig } from '../../src/server/config/schema.ts'
import { resolveServerConfig } from '../../src/server/config/serverConfig.ts'
import { mergeSettings, toConfigSource } from '../../src/server/config/settings.ts'
import { buildOpenApi } from '../../src/server/openapi/openapi.ts'
import { openServer } from '../../src/server/openServer.ts'
import { openStore } from '../../src/stores/open.ts'
import { runCommand } from '../cli/command.ts'
import { readAll } from '../portable/byteStreams.ts'
import { replyWith, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { user } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { Canaries, generateInputs } from './canaries.ts'

const fresh = createTempPaths()

/** Starts a server with a store, an audit log and a model that repeats what it is sent. */
async function startMaskedServer() {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-masking-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [file, audit] = [join(folder, 'store.db'), join(folder, 'audit.jsonl')]
  const upstream = await startUpstream(({ text }) => replyWith(text.slice(-300)))
  const config = {
    listen: { port: 0 },
    store: `sqlite:${file}`,
    upstreams: [{ base: upstream.url }],
    mcp: { audit, allow: [tmpdir()], write: false },
  }
  const source = toConfigSource(parseConfig(config), 'file')
  const server = await openServer(resolveServerConfig(mergeSettings([source], undefined), {}))
  const post = async (path: string, body: unknown): Promise<Readonly<Record<string, unknown>>> => {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${server.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return (await response.json()) as Readonly<Record<string, unknown>>
  }
  const close = async (): Promise<void> => {
    await server.close(1_000)
    await upstream[Symbol.asyncDispose]()
  }
  return { url: server.url, file, audit, post, close }
}

type Attempts = readonly (() => unknown)[]

/** Calls of every method of `Memory` with a secret wherever text is accepted. */
const calls: Readonly<Record<string, (memory: Memory, secret: string) => Attempts>> = {
  append: (memory, secret) => [
    () => memory.append('acme:known', [{ ...user(`see ${secret}`), name: secret }], { operationId: secret }),
    () =>
      memory.append('acme:known', [
        {
          role: 'assistant',
          content: [
            { type: 'text', text: secret },
            { type: 'text', text: 'more' },
          ],
          tool_calls: [{ id: secret, function: { name: secret, arguments: `{"a":{"b":["${secret}"]}}` } }],
          payload: { protocol: 'chat', items: [{ [secret]: [{ note: secret }] }] },
        },
        { role: 'tool', tool_call_id: secret, content: secret },
      ]),
    () => memory.append(`acme:${secret}`, [user('Hello.')]),
    () => memory.append(`${secret}:known`, [user('Hello.')]),
    () =>
      memory.append('acme:known', [
        {
          role: 'user',
          content: [
            { type: 'text', text: `see ${secret.slice(0, 30)}` },
            { type: 'text', text: secret.slice(30) },
          ],
        },
      ]),
  ],
  context: (memory, secret) => [() => memory.context('acme:known', { query: secret, person: secret })],
  remember: (memory, secret) => [
    () => memory.remember('acme', { category: 'domain', key: secret, value: { [secret]: secret }, messages: [secret] }),
    () => memory.remember('acme', { category: 'domain', key: 'a', value: 1, session: secret }),
    () => memory.remember('acme', { category: 'domain', key: 'a', value: 1, person: secret }),
    () => memory.remember(secret, { category: 'domain', key: 'a', value: 1 }),
  ],
  setMetadata: (memory, secret) => [
    () => memory.setMetadata('acme:known', { metadata: { [secret]: [secret] }, template: secret }),
    () => memory.setMetadata('acme:known', { person: secret }),
    () => memory.setMetadata(`acme:${secret}`, { metadata: 1 }),
  ],
  upkeep: ({ upkeep }, secret) => [
    () => upkeep.update('acme:known', { important_data: { entities: { note: secret } }, conversation_summary: secret }),
  ],
  lifecycle: ({ lifecycle }, secret) => [
    () => lifecycle.setMetadata(parseKey('acme:known'), { metadata: { note: secret } }),
  ],
  transfer: (memory, secret) => [() => memory.transfer('acme:known', `acme:${secret}`)],
  trace: (memory, secret) => [() => memory.trace('acme:known', { query: secret })],
  search: (memory, secret) => [() => memory.search('acme', secret)],
  transcript: (memory, secret) => [() => memory.transcript(`acme:${secret}`)],
  metadata: (memory, secret) => [() => memory.metadata(`acme:${secret}`)],
  epoch: (memory, secret) => [() => memory.epoch(`acme:${secret}`)],
  mask: (memory, secret) => [() => memory.mask('acme:known', secret)],
  maskMessage: (memory, secret) => [() => memory.maskMessage('acme:known', { at: 0, role: 'user', content: secret })],
  knowsSecrets: (memory, secret) => [() => memory.knowsSecrets('acme:known', secret)],
  forget: (memory, secret) => [() => memory.forget({ scope: 'acme', text: `none ${secret}` })],
  end: (memory, secret) => [() => memory.end(`acme:${secret}`)],
  // Imports and exports have tests of their own; the others take no text.
  ...Object.fromEntries(
    ['import', 'export', 'replay', 'health', 'embeddingProgress', 'sweep', 'close'].map((name) => [name, () => []]),
  ),
}

const message = (sender: string, text: string) => ({
  uuid: text,
  sender,
  text,
  content: [{ type: 'text', text }],
  created_at: '2026-01-02T03:04:05.678Z',
})

/** Files of other programs with a secret in every text. */
const foreignFiles: Readonly<Record<ForeignFormat, (secret: string) => string>> = {
  chatgpt: (secret) =>
    JSON.stringify([
      {
        title: secret,
        conversation_id: 'g1',
        current_node: 'n1',
        mapping: {
          n1: {
            id: 'n1',
            message: { author: { role: 'user', name: secret }, content: { content_type: 'text', parts: [secret] } },
            children: [],
          },
        },
      },
    ]),
  claude: (secret) =>
    JSON.stringify([
      { uuid: 'c1', name: secret, chat_messages: [message('human', secret), message('assistant', secret)] },
    ]),
  openai: (secret) => JSON.stringify({ messages: [{ ...user(secret), name: secret }] }),
  'server-memory': (secret) =>
    [
      { type: 'entity', name: secret, entityType: secret, observations: [secret] },
      { type: 'relation', from: secret, to: secret, relationType: secret },
    ]
      .map((line) => JSON.stringify(line))
      .join('\n'),
}

type Command = { readonly args: readonly string[]; readonly input?: string }

/** Runs of every command that writes text to a store; the others read, or have no store. */
const commands: Readonly<Record<string, (secret: string) => readonly Command[]>> = {
  serve: () => [],
  chat: (secret) => [{ args: ['chat', 'demo:me'], input: `Use ${secret}.\n` }],
  mcp: () => [],
  save: (secret) => [{ args: ['save', '--title', secret], input: `${JSON.stringify(user(`Use ${secret}.`))}\n` }],
  restore: () => [],
  sessions: () => [],
  search: () => [],
  facts: () => [],
  summaries: () => [],
  optimizer: () => [],
  replay: () => [],
  remember: (secret) => [{ args: ['remember', 'acme', `key ${secret}`, secret] }],
  knowledge: () => [],
  forget: () => [],
  export: () => [],
  import: (secret) => {
    const file = fresh('.jsonl')
    writeFileSync(file, foreignFiles.openai(secret))
    return [{ args: ['import', file] }]
  },
  doctor: () => [],
  audit: () => [],
  keys: () => [],
  config: () => [],
  bench: () => [],
  lab: () => [],
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
 * nevertheless), sessions take no files, and no knowledge is archived. MCP messages are tested as tools.
 */
const refusedOperations: readonly string[] = [
  'createResponse',
  'createResponseByHeader',
  'createResponseUnderV1',
  'uploadFileByKey',
  'restoreKnowledge',
  'sendMcpMessage',
]

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
}
type Operation = {
  readonly operationId: string
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Record<string, unknown> }>> }
}

/** Lists all operations of the HTTP server with the schemas of their bodies. */
function listOperations() {
  const document = buildOpenApi() as Document
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, requestBody }]) => ({
      name: operationId,
      method: method.toUpperCase(),
      path,
      schema: requestBody?.content['application/json']?.schema,
      definitions: document as unknown as Record<string, unknown>,
    })),
  )
}

describe('a secret in any string', () => {
  verifies(['R-02', 'X-08'], 'of any MCP tool › is in no file of the store and not in the audit log', async () => {
    const server = await startMaskedServer()
    const canaries = new Canaries()
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
      const accepted = [await call(name, isReferenceTool(name) ? {} : withSession(required))]
      for (const input of generateInputs(inputSchema, inputSchema, secret))
        accepted.push(
          await call(name, isReferenceTool(name) ? input : withSession({ ...required, ...(input as object) })),
        )
      if (!accepted.includes(true)) refused.push(name)
    }
    await client.close()
    await server.close()
    expect(refused).toEqual(refusedTools)
    expect(canaries.findIn(server.file, [server.audit, `${server.audit}.head`])).toEqual([])
  })

  verifies(['R-02', 'X-08'], 'of any HTTP operation › is in no file of the store', async () => {
    const server = await startMaskedServer()
    const canaries = new Canaries()
    const refused: string[] = []
    for (const { name, method, path, schema, definitions } of listOperations()) {
      const secret = canaries.create(name)
      const send = async (address: string, body: unknown, key = 'acme:known'): Promise<boolean> => {
        const headers = {
          'x-threadkeep-key': key,
          'x-request-id': secret,
          'x-filename': `${secret}.txt`,
          'user-agent': `agent ${secret}`,
          ...(body !== undefined && { 'content-type': typeof body === 'string' ? 'text/plain' : 'application/json' }),
        }
        const text = typeof body === 'string' ? body : JSON.stringify(body)
        const response = await fetch(`${server.url}${address}`, {
          method,
          headers,
          ...(body !== undefined && { body: text }),
        })
        await response.text()
        return response.ok
      }
      await server.post('/v1/acme:known/chat/completions', { model: 'any', messages: [user('Hello.')] })
      const { id: conversation } = await server.post('/v1/acme:known/conversations', {})
      const addressOf = (key: string, scope: string, id: string): string =>
        path
          .replace('{key}', key)
          .replace('{scope}', scope)
          .replace(/\/conversations\/\{[^}]*\}/, `/conversations/${conversation}`)
          .replace(/\{[^}]*\}/g, id)
      const bodies = [
        ...(schema === undefined ? [undefined] : generateInputs(schema, definitions, secret).slice(0, 60)),
        ...Object.entries(requestBodies).flatMap(([end, write]) =>
          method === 'POST' && path.endsWith(end) ? [write(secret)] : [],
        ),
      ]
      const accepted: boolean[] = []
      for (const body of bodies) accepted.push(await send(addressOf('acme:known', 'acme', secret), body))
      for (const key of [`acme:${secret}`, secret, `${secret}:known`])
        await send(addressOf(key, secret, key), bodies.at(-1), key)
      if (!accepted.includes(true) && method !== 'GET' && method !== 'DELETE') refused.push(name)
    }
    await server.close()
    expect(refused).toEqual(refusedOperations)
    expect(canaries.findIn(server.file)).toEqual([])
  })

  verifies(['R-02', 'X-08'], 'of any method of Memory › is in no file of the store and in no export', async () => {
    const file = fresh()
    const canaries = new Canaries()
    const memory = await openMemory({ store: `sqlite:${file}` })
    await memory.append('acme:known', [user('Hello.')])
    const names = Object.getOwnPropertyNames(Memory.prototype).filter((name) => name !== 'constructor')
    expect(names.toSorted()).toEqual(Object.keys(calls).toSorted())
    for (const [name, call] of Object.entries(calls)) {
      const secret = canaries.create(name)
      for (const attempt of call(memory, secret))
        await Promise.resolve()
          .then(attempt)
          .catch(() => undefined)
    }
    const bundle = (await readAll(memory.export())).toString('utf8')
    await memory.close()
    expect([canaries.findIn(file), canaries.findInText(bundle)]).toEqual([[], []])
  })

  verifies(['R-02', 'X-08'], 'of any imported format › is in no file of the store', async () => {
    const file = fresh()
    const canaries = new Canaries()
    const store = await openStore(`sqlite:${file}`)
    const memory = await openMemory({ store })
    for (const [format, write] of Object.entries(foreignFiles))
      await importForeign(
        { memory, store, scope: 'acme' },
        parseForeign(format as keyof typeof foreignFiles, write(canaries.create(format))),
        { now: 1_000 },
      )
    const plain = await openMemory({ store: `sqlite:${fresh()}`, profile: { ...profiles.thread, secrets: 'keep' } })
    const secret = canaries.create('bundle')
    await plain.append('bob:known', [{ ...user(`Use ${secret}.`), name: secret }])
    await plain.remember('bob', { category: 'domain', key: `key ${secret}`, value: { note: secret } })
    await plain.setMetadata('bob:known', { metadata: { note: secret } })
    const bundle = await readAll(plain.export())
    expect(bundle.includes(secret)).toBe(true)
    await memory.import(async function* () {
      yield bundle
    })
    expect((await memory.transcript('bob:known')).length).toBe(1)
    await plain.close()
    await memory.close()
    expect(canaries.findIn(file)).toEqual([])
  })

  verifies(['R-02', 'X-08'], 'of any command › is in no file of the store', async () => {
    const file = fresh()
    const canaries = new Canaries()
    const { stdout: help } = await runCommand(['--help'])
    const names = [...help.slice(help.indexOf('Commands:'), help.indexOf('Examples:')).matchAll(/^ {2}([a-z]+)/gm)].map(
      ([, name]) => name,
    )
    expect(names).toEqual([...Object.keys(commands), 'help'])
    for (const [name, write] of Object.entries(commands)) {
      const secret = canaries.create(name)
      for (const { args, input } of write(secret)) {
        const { code, stderr } = await runCommand([...args, '--store', `sqlite:${file}`], input)
        expect([name, code, code === 0 ? '' : stderr]).toEqual([name, 0, ''])
      }
    }
    expect(canaries.findIn(file)).toEqual([])
  })
})
