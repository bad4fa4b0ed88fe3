import type { Json } from '../../../src/domain/entry.ts'
import type { Random } from '../random.ts'
import type { Operation } from './world.ts'

/** Texts of a tenant: a sentence with a word that only this tenant says, and one of the subjects of both tenants. */
export type Words = { readonly sentence: () => string; readonly subject: () => string; readonly session: () => string }

/** Routes that are not compared, each with the reason. */
export const leftOutRoutes: Readonly<Record<string, string>> = {
  'GET /healthz': 'the state of the whole server, which anybody may read',
  'GET /readyz': 'the state of the whole server, which anybody may read',
  'GET /openapi.json': 'the same long text for everybody',
  'GET /docs': 'the same long text for everybody',
}

const fileNames = ['cat.txt', 'invoice.md', 'budget.csv', 'office.json', 'notes']

/** A file to upload: its name and text. */
export const fileOf = (words: Words, random: Random): readonly [name: string, text: string] => {
  const name = random.pick(fileNames)
  const sentences = random.list(1, 6, words.sentence)
  return [name, name.endsWith('.json') ? JSON.stringify(sentences) : sentences.join('\n')]
}

/** The last file of the tenant or, less often, of the other one. */
export const fileId = (random: Random): string => (random.chance(0.75) ? '{file}' : '{other file}')

/** Paths in the folder of a tenant, and some that lead to that of the other one. */
const paths = ['a.txt', 'b.txt', 'sub', 'sub/a.txt', '.', '{folder}/{scope}/a.txt']
const foreignPaths = [
  '../{other}/a.txt',
  '{folder}/{other}/a.txt',
  '{folder}/{other}',
  'link',
  'link/a.txt',
  'link/sub',
]

/** A call of a tool that reads or writes the folder of a tenant. */
export function fileToolCall(
  words: Words,
  random: Random,
): { readonly name: string; readonly args: Readonly<Record<string, Json>> } {
  const path = random.chance(0.75) ? random.pick(paths) : random.pick(foreignPaths)
  return random.weighted<() => { name: string; args: Record<string, Json> }>([
    [4, () => ({ name: 'write_file', args: { path, text: words.sentence() } })],
    [3, () => ({ name: 'read_file', args: { path } })],
    [2, () => ({ name: 'list_directory', args: random.chance(0.7) ? { path } : {} })],
    [1, () => ({ name: 'create_directory', args: { path } })],
  ])()
}

const json = { 'content-type': 'application/json' }
const mcpHeaders = { ...json, accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' }

/** A JSON-RPC message to `/mcp`: most call a tool, some in the workspace of the other tenant. */
function rpcMessage(words: Words, random: Random): Json {
  const workspace = random.weighted<Readonly<Record<string, Json>>>([
    [8, {}],
    [3, { workspace: '{scope}' }],
    [1, { workspace: '{other}' }],
  ])
  const call = (name: string, args: Readonly<Record<string, Json>>): Json => ({
    method: 'tools/call',
    params: { name, arguments: { ...args, ...workspace } },
  })
  const scope = random.chance(0.8) ? '{scope}' : '{other}'
  const { name, args } = fileToolCall(words, random)
  const message = random.weighted<() => Json>([
    [3, () => call(name, args)],
    [3, () => call('save_session', { messages: [{ role: 'user', content: words.sentence() }] })],
    [3, () => call('restore_session', random.chance(0.5) ? {} : { sessionId: `session_${random.int(1, 4)}` })],
    [2, () => call('remember', { category: 'domain', key: words.subject(), value: words.sentence() })],
    [2, () => call('recall', { query: words.subject() })],
    [2, () => call('search_nodes', { query: words.subject() })],
    [1, () => call('list_sessions', {})],
    [2, () => ({ method: 'resources/read', params: { uri: `threadkeep://${scope}/sessions` } })],
    [1, () => ({ method: 'resources/list', params: {} })],
    [1, () => ({ method: 'tools/list', params: {} })],
  ])() as Readonly<Record<string, Json>>
  return { jsonrpc: '2.0', id: random.int(1, 1_000), ...message }
}

/** Requests about files, usage and bundles of a tenant, and over MCP: with words that find something. */
export function tenantRequest(words: Words, random: Random): Operation {
  const ask = (name: string, path: string, more: Readonly<Record<string, Json>> = {}): Operation => ({
    surface: 'http',
    name,
    args: { method: name.split(' ')[0] as string, path, headers: {}, ...more },
  })
  const body = (value: Json): Readonly<Record<string, Json>> => ({ headers: json, body: JSON.stringify(value) })
  const key = words.session()
  const scope = random.chance(0.9) ? '{scope}' : '{other}'
  const question = encodeURIComponent(`What is my ${words.subject()}?`)
  const upload = (): Operation => {
    const [name, text] = fileOf(words, random)
    const wait = random.chance(0.2) ? '?wait=false' : ''
    const headers = { 'content-type': 'text/plain', 'x-filename': name }
    return ask('POST /api/scopes/{scope}/files', `/api/scopes/${scope}/files${wait}`, { headers, body: text })
  }
  const turn = { model: 'any', messages: [{ role: 'user', content: words.sentence() }] }
  return random.weighted<() => Operation>([
    [3, upload],
    [3, () => ask('GET /api/scopes/{scope}/files', `/api/scopes/${scope}/files?limit=${random.int(1, 5)}`)],
    [1, () => ask('GET /api/scopes/{scope}/files/{file}', `/api/scopes/{scope}/files/${fileId(random)}`)],
    [2, () => ask('GET /api/scopes/{scope}/files/{file}/text', `/api/scopes/{scope}/files/${fileId(random)}/text`)],
    [1, () => ask('DELETE /api/scopes/{scope}/files/{file}', `/api/scopes/{scope}/files/${fileId(random)}`)],
    // Passages of files are in the prompts of these turns and in the contexts.
    [6, () => ask('POST /v1/{key}/chat/completions', `/v1/${key}/chat/completions`, body(turn))],
    [3, () => ask('GET /api/sessions/{key}/context', `/api/sessions/${key}/context?query=${question}`)],
    [2, () => ask('GET /api/scopes/{scope}/search', `/api/scopes/${scope}/search?q=${question}`)],
    [1, () => ask('GET /api/sessions/{key}/export', `/api/sessions/${key}/export`)],
    [1, () => ask('GET /api/sessions/{key}/metrics', `/api/sessions/${key}/metrics`)],
    [1, () => ask('GET /api/scopes/{scope}/metrics', `/api/scopes/${scope}/metrics`)],
    [2, () => ask('GET /api/usage', random.chance(0.5) ? '/api/usage' : `/api/usage?scope=${scope}`)],
    [1, () => ask('GET /learning/optimizer/status', `/learning/optimizer/status?key=${random.pick([scope, key])}`)],
    // The optimizer, whose status is compared, runs only with the upkeep that its host starts.
    [2, () => ({ surface: 'memory', name: 'runUpkeep', args: [key, {}] })],
    [8, () => ask('POST /mcp', '/mcp', { headers: mcpHeaders, body: JSON.stringify(rpcMessage(words, random)) })],
  ])()
}
