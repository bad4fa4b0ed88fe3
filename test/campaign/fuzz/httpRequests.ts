import type { Json } from '../../../src/domain/entry.ts'
import { registeredTools } from '../../../src/mcp/tools/registry.ts'
import { buildOpenApi } from '../../../src/server/openapi/openapi.ts'
import { hostileText, hostileValue } from '../hostile.ts'
import type { Random } from '../random.ts'
import { type JsonSchema, mutate, SchemaValues } from '../schemaValues.ts'
import type { Caller, HttpStep, RawStep, ToolStep } from './input.ts'
import { chatRequest, messagesRequest, responseRequest } from './protocolGrammars.ts'

type Parameter = {
  readonly name: string
  readonly in: string
  readonly schema: JsonSchema
  readonly required?: boolean
}
type OpenApi = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>
    readonly parameters: Readonly<Record<string, Parameter>>
  }
}
type Route = {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly bodySchema: JsonSchema | undefined
  readonly weight: number
}

const { paths, components } = buildOpenApi() as OpenApi

/** Relative frequency of routes that cost more than others. */
const weights: readonly (readonly [pattern: RegExp, weight: number])[] = [
  [/openapi\.json|\/metrics$|healthz|readyz/, 0.1],
  [/files$/, 0.1],
  [/\/search$|\/context$/, 0.6],
  [/chat\/completions$|responses$|messages$/, 1.2],
  [/\/mcp$/, 6],
]

/** All documented routes. */
const routes: readonly Route[] = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]): Route => {
    const refs = operation.parameters as readonly { readonly $ref: string }[]
    const content = (operation.requestBody as { readonly content: Readonly<Record<string, { schema: JsonSchema }>> })
      ?.content
    return {
      name: `${method.toUpperCase()} ${path}`,
      method: method.toUpperCase(),
      path,
      parameters: refs.map(({ $ref }) => components.parameters[$ref.split('/').at(-1) ?? ''] as Parameter),
      bodySchema: content?.['application/json']?.schema,
      weight: weights.find(([pattern]) => pattern.test(path))?.[1] ?? 1,
    }
  }),
)
const weightedRoutes = routes.map((route) => [route.weight, route] as const)

const sessions = ['acme:ann', 'acme:bob', 'acme:cy', 'acme:dee', 'acme:new']
const knownValues: Readonly<Record<string, (random: Random) => Json>> = {
  key: (random) => random.pick(sessions),
  to: (random) => `acme:moved-${random.int(1, 9)}`,
  scope: () => 'acme',
  'x-threadkeep-key': (random) => random.pick(sessions),
  session: (random) => random.pick(['ann', 'bob', 'cy']),
  sessionId: (random) => random.pick(['session_1', 'ann', 'acme:ann']),
  workspace: () => 'acme',
  workspaceId: () => 'acme',
  template: () => 'support',
  path: (random) => random.pick(['a.txt', 'shared', 'new.txt', '../keys.json', 'a.txt/b', '.']),
  ...Object.fromEntries(
    ['conversation', 'item', 'knowledge', 'file', 'receipt', 'response'].map((name) => [name, () => `{${name}}`]),
  ),
  branch: (random) => random.int(1, 3),
  model: () => 'threadkeep-offline',
  role: (random) => random.pick(['user', 'assistant', 'system', 'tool']),
}
const values = new SchemaValues(components.schemas, (name, random) =>
  Object.hasOwn(knownValues, name) ? knownValues[name]?.(random) : undefined,
)

const grammars: readonly (readonly [pattern: RegExp, grammar: (random: Random) => Json])[] = [
  [/chat\/completions$/, chatRequest],
  [/responses$/, responseRequest],
  [/messages(?:\/count_tokens)?$/, messagesRequest],
]

const toolSchemas = registeredTools.map(({ name, schemas }) => ({
  name,
  schema: schemas.input['~standard'].jsonSchema.input({ target: 'draft-2020-12' }) as JsonSchema,
}))

/** Names of all routes and tools that are generated. */
export const fuzzedRoutes: readonly string[] = routes.map(({ name }) => name)
export const fuzzedTools: readonly string[] = toolSchemas.map(({ name }) => name)

const callers: readonly (readonly [number, Caller])[] = [
  [20, 'acme'],
  [4, 'globex'],
  [1, 'operator'],
  [1, 'nobody'],
]

/** A request to a documented route: valid by its schema, or changed. */
export function httpRequest(random: Random): HttpStep {
  const route = random.weighted(weightedRoutes)
  const isChanged = random.chance(0.6)
  const body = route.path === '/mcp' ? rpcBody(random, isChanged) : bodyOf(route, random, isChanged)
  const queries = route.parameters.filter((parameter) => parameter.in === 'query')
  const query = queries
    .filter(({ required }) => required === true || random.chance(0.3))
    .map(({ name, schema }) => `${name}=${encode(valueFor(name, schema, random, isChanged), random)}`)
  const text = body === undefined ? undefined : serialize(body, random, isChanged)
  return {
    surface: 'http',
    route: route.name,
    caller: random.weighted(callers),
    method: isChanged && random.chance(0.02) ? random.pick(['PUT', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE']) : route.method,
    path: `${pathOf(route, random, isChanged)}${query.length === 0 ? '' : `?${query.join('&')}`}`,
    headers: headersOf(route, random, isChanged),
    ...text,
  }
}

function bodyOf({ path, bodySchema, method }: Route, random: Random, isChanged: boolean): Json | undefined {
  if (method !== 'POST') return isChanged && random.chance(0.05) ? hostileValue(random) : undefined
  const grammar = grammars.find(([pattern]) => path.startsWith('/v1') && pattern.test(path))?.[1]
  const valid =
    grammar?.(random) ?? (bodySchema === undefined ? hostileText(random) : values.generate(bodySchema, random))
  return isChanged && random.chance(0.8) ? mutate(valid, random) : valid
}

/** A JSON-RPC message: most call a tool with generated arguments. */
function rpcBody(random: Random, isChanged: boolean): Json {
  const { name, arguments: given } = toolCall(random)
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2025-06-18' }
  const method = random.weighted([
    [20, 'tools/call'],
    [1, 'tools/list'],
    [1, 'prompts/get'],
    [1, 'resources/read'],
    [1, 'completion/complete'],
    [0.5, 'initialize'],
    [0.5, 'ping'],
  ] as const)
  const params: Json =
    method === 'tools/call'
      ? { name, arguments: JSON.parse(given) as Json }
      : method === 'resources/read'
        ? { uri: random.pick(['threadkeep://acme/sessions', 'threadkeep://globex/sessions', hostileText(random)]) }
        : { name: hostileText(random, 20), arguments: {}, _meta: meta }
  const message: Json = { jsonrpc: '2.0', id: random.int(1, 1_000), method, params }
  return isChanged && random.chance(0.2) ? mutate(message, random) : message
}

/** A call of a tool; half of them have changed arguments. */
export function toolCall(random: Random): ToolStep {
  const { name, schema } = random.pick(toolSchemas)
  const valid = values.generate(schema, random)
  return { surface: 'tool', name, arguments: JSON.stringify(random.chance(0.5) ? valid : mutate(valid, random)) }
}

const valueFor = (name: string, schema: JsonSchema, random: Random, isChanged: boolean): Json =>
  isChanged && random.chance(0.3) ? hostileText(random, random.int(1, 300)) : values.generate(schema, random, name)

function pathOf({ path, parameters }: Route, random: Random, isChanged: boolean): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const schema = parameters.find((parameter) => parameter.name === name)?.schema ?? {}
    const value = valueFor(name, schema, random, isChanged && random.chance(0.5))
    // Braces of a placeholder stay as they are.
    return typeof value === 'string' && /^\{\w+\}$/.test(value) ? value : encode(value, random)
  })
}

/** Percent-encodes a value; sometimes only as far as the HTTP client requires. */
function encode(value: Json, random: Random): string {
  const text = (typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed()
  return random.chance(0.9) ? encodeURIComponent(text) : encodeURI(text).replaceAll(/[#?]/g, '%23')
}

function headersOf({ path, parameters }: Route, random: Random, isChanged: boolean): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { name, schema, in: location } of parameters)
    if (location === 'header' && (name === 'x-threadkeep-key' ? random.chance(0.8) : random.chance(0.1)))
      headers[name] = toHeader(valueFor(name, schema, random, isChanged))
  headers['content-type'] = isChanged && random.chance(0.03) ? toHeader(hostileText(random, 40)) : 'application/json'
  if (path === '/mcp') {
    headers.accept = 'application/json, text/event-stream'
    headers['mcp-protocol-version'] = '2025-06-18'
  }
  if (/files$/.test(path)) Object.assign(headers, { 'x-filename': 'a.txt', 'content-type': 'text/plain' })
  if (isChanged && random.chance(0.05))
    headers[
      random.pick(['origin', 'host', 'cookie', 'x-forwarded-for', 'x-request-id', 'content-encoding', 'expect'])
    ] = toHeader(random.pick(['gzip', 'evil.example', '100-continue', hostileText(random, 60)]))
  return headers
}

/** Removes what an HTTP client refuses to send in a header. Raw requests contain it. */
const toHeader = (value: Json): string =>
  (typeof value === 'string' ? value : JSON.stringify(value)).replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '').trim()

/** Writes JSON; sometimes cut off, with invalid bytes, duplicate names or numbers beyond the range. */
function serialize(body: Json, random: Random, isChanged: boolean): Pick<HttpStep, 'body' | 'isBinary'> {
  const text = JSON.stringify(body)
  if (!isChanged || !random.chance(0.06)) return { body: text }
  return random.pick<() => Pick<HttpStep, 'body' | 'isBinary'>>([
    () => ({ body: text.slice(0, random.int(0, text.length)) }),
    () => ({ body: `${text}${text}` }),
    () => ({ body: `\ufeff${text}` }),
    () => ({ body: text.replace(/"[^"]*"/, '"\u0000"') }),
    () => ({ body: text.replace(/\d+/, '1e400') }),
    () => ({ body: text.replace('{', `{"__proto__":{"isAdmin":true},${text.slice(1, 40)}`) }),
    () => ({ body: text.replaceAll(/[^\0-\xff]/g, '?').replace(/[a-z]/, '\xc3'), isBinary: true }),
    () => ({ body: '' }),
    () => ({ body: `${'['.repeat(random.int(1, 100_000))}` }),
  ])()
}

/** Bytes that no HTTP client would send. */
export function rawRequest(random: Random): RawStep {
  const target = random.pick(['/healthz', '/v1/acme:ann/chat/completions', '/api/sessions', '/mcp', '*', '//', '/%'])
  const start = `${random.pick(['GET', 'POST', 'get', 'CONNECT', '', 'G\0T'])} ${target} HTTP/${random.pick(['1.1', '1.0', '2.0', '9'])}\r\n`
  const header = random.pick([
    'host: 127.0.0.1',
    'host: 127.0.0.1\r\ncontent-length: 5\r\ncontent-length: 6',
    'host: 127.0.0.1\r\ncontent-length: -1',
    'host: 127.0.0.1\r\ntransfer-encoding: chunked\r\ncontent-length: 3',
    'host: 127.0.0.1\r\ntransfer-encoding: gzip, chunked',
    'host: 127.0.0.1\r\nx-request-id: a\rb',
    'host: 127.0.0.1\r\nx-threadkeep-key: \0',
    'host: a\r\nhost: b',
    `host: 127.0.0.1\r\nx-long: ${'a'.repeat(random.int(1, 40_000))}`,
    'host: 127.0.0.1\r\nupgrade: websocket\r\nconnection: upgrade',
    '',
  ])
  const body = random.pick(['', '5\r\nhello\r\n0\r\n\r\n', 'ffffffffffffffff\r\n', 'hello', '\0\0\0'])
  const bytes = `${start}${header}\r\nconnection: close\r\n\r\n${body}`
  return { surface: 'raw', bytes: random.chance(0.2) ? bytes.slice(0, random.int(1, bytes.length)) : bytes }
}
