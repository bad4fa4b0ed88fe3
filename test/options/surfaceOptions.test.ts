import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import { describe, expect } from 'vitest'
import { checkEnvironment } from '../../src/cli/options.ts'
import { createProgram } from '../../src/cli/program.ts'
import { registeredTools } from '../../src/mcp/tools/registry.ts'
import { parseConfig } from '../../src/server/config/schema.ts'
import { buildOpenApi } from '../../src/server/openapi/openapi.ts'
import { type Route, routes } from '../../src/server/openapi/routes.ts'
import { verifies } from '../requirements/verifies.ts'
import { startServer, user } from '../server/start.ts'
import { root } from '../shape/source.ts'

type JsonSchema = { readonly [keyword: string]: unknown }
type Answer = { readonly status: number; readonly code: string; readonly message: string }

/** Sends a request, also with a body where `fetch` refuses one. */
async function send(method: string, url: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> {
  const payload = body === undefined ? undefined : JSON.stringify(body)
  const typed =
    payload === undefined ? {} : { 'content-type': 'application/json', 'content-length': `${payload.length}` }
  const { status, json } = await new Promise<{ status: number; json: string }>((resolve, reject) => {
    const sent = request(url, { method, headers: { ...typed, ...headers } }, (response) => {
      text(response).then((json) => resolve({ status: response.statusCode ?? 0, json }), reject)
    })
    sent.on('error', reject).end(payload)
  })
  return readAnswer(status, json)
}

function readAnswer(status: number, json: string): Answer {
  const { error } = JSON.parse(json.startsWith('{') ? json : '{}') as { error?: { code: string; message: string } }
  return { status, code: error?.code ?? '', message: error?.message ?? '' }
}

/** Sends a form with these text fields and files. */
async function sendForm(url: string, fields: Record<string, string | File>): Promise<Answer> {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  const response = await fetch(url, { method: 'POST', body: form })
  return readAnswer(response.status, await response.text())
}

/** Routes under /v1 belong to the protocols of other services, which add parameters and fields. */
const ownRoutes = routes.filter(({ path }) => !path.startsWith('/v1'))
const samples = { '{key}': 'acme:ann', '{scope}': 'acme', '{branch}': '1', '{knowledge}': 'k1', '{file}': 'f1' }
const urlOf = (server: string, { path }: Route): string =>
  server + path.replaceAll(/\{\w+\}/g, (name) => samples[name as keyof typeof samples] ?? 'x1')
type Operation = {
  readonly parameters?: readonly { readonly $ref: string }[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: JsonSchema }> }
}
const { paths, components } = buildOpenApi() as {
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, JsonSchema>
    parameters: Record<string, { readonly in: string; readonly name: string }>
  }
}
const bodySchema = ({ method, path }: Route): JsonSchema | undefined => {
  const { content } = paths[path]?.[method.toLowerCase()]?.requestBody ?? {}
  const schema = content?.['application/json']?.schema
  const name = typeof schema?.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined
  return name === undefined ? schema : components.schemas[name]
}
/** Names of the query parameters of a route. */
const queryParameters = ({ method, path }: Route): readonly string[] =>
  (paths[path]?.[method.toLowerCase()]?.parameters ?? []).flatMap(({ $ref }) => {
    const found = components.parameters[$ref.split('/').at(-1) ?? '']
    return found?.in === 'query' ? [found.name] : []
  })
const hasUpload = ({ method, path }: Route): boolean =>
  paths[path]?.[method.toLowerCase()]?.requestBody?.content['multipart/form-data'] !== undefined

async function withServer(use: (url: string) => Promise<void>): Promise<void> {
  await using server = await startServer({ upstream: 'http://127.0.0.1:9/v1' })
  await server.memory.append('acme:ann', [user('My cat is called Miso.')])
  await use(server.url)
}

/** Sends a request to each route and lists those that are not refused with this code. */
async function findAccepting(
  found: readonly Route[],
  code: string,
  ask: (route: Route, url: string) => Promise<Answer>,
) {
  const accepting: string[] = []
  await withServer(async (server) => {
    for (const route of found) {
      const answer = await ask(route, urlOf(server, route))
      // Anthropic's errors and those of MCP have no code of ours.
      const isRefused = answer.code === code || /^Unknown (?:header|query parameter) /.test(answer.message)
      const isNamed = code === 'unexpected_body' || answer.message.includes('limitt')
      if (answer.status !== 400 || !isRefused || !isNamed)
        accepting.push(`${route.method} ${route.path}: ${answer.status} ${answer.code} ${answer.message}`)
    }
  })
  return accepting
}

describe('routes', () => {
  verifies('R-06', 'own routes › with an unknown query parameter › answer 400', async () => {
    const accepting = await findAccepting(ownRoutes, 'unknown_parameter', ({ method }, url) =>
      send(method, `${url}?limitt=1`),
    )
    expect(accepting).toEqual([])
  })

  verifies('R-06', 'routes › with a repeated query parameter › answer 400 and name it', async () => {
    const accepting: string[] = []
    let count = 0
    await withServer(async (server) => {
      const created = await fetch(`${server}/v1/acme/conversations`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ items: [{ type: 'message', role: 'user', content: 'Hi' }] }),
      })
      const { id } = (await created.json()) as { id: string }
      const asked = [...ownRoutes, ...routes.filter(({ name, path }) => name === 'listItems' && path.includes('{key}'))]
      for (const route of asked)
        for (const name of queryParameters(route)) {
          const url = urlOf(server, route).replace('acme:ann/conversations/x1', `acme/conversations/${id}`)
          const { status, code, message } = await send(route.method, `${url}?${name}=1&${name}=2`)
          const isNamed = message === `${name} is sent more than once. Send it once.`
          if (status !== 400 || code !== 'repeated_parameter' || !isNamed)
            accepting.push(`${route.method} ${route.path} ${name}: ${status} ${code} ${message}`)
          count++
        }
    })
    expect(accepting).toEqual([])
    expect(count).toBeGreaterThan(40)
  })

  verifies('R-06', 'own routes with a JSON body › with an unknown field › answer 400', async () => {
    // MCP messages are checked by their own protocol, and the arguments of tools below.
    const withBody = ownRoutes.filter((route) => bodySchema(route) !== undefined && route.path !== '/mcp')
    expect(withBody.length).toBeGreaterThanOrEqual(5)
    const valid = { key: 'acme:bob', to: 'acme:bob', category: 'domain', value: 'b', scope: 'acme' }
    const accepting = await findAccepting(withBody, 'unknown_field', (route, url) => {
      const known =
        route.path === '/api/forget' ? ['key'] : Object.keys((bodySchema(route)?.properties ?? {}) as object)
      const fields = Object.entries(valid).filter(([name]) => known.includes(name))
      return send(route.method, url, { ...Object.fromEntries(fields), limitt: 1 })
    })
    expect(accepting).toEqual([])
    const isClosed = (schema: JsonSchema | undefined): boolean =>
      schema?.additionalProperties === false || (schema?.oneOf as JsonSchema[] | undefined)?.every(isClosed) === true
    expect(withBody.filter((route) => !isClosed(bodySchema(route)))).toEqual([])
  })

  verifies(
    'R-06',
    'routes with a form › with an unknown field or file › answer 400 and name the known ones',
    async () => {
      const uploads = routes.filter(hasUpload)
      expect(uploads.map(({ path }) => path)).toContain('/api/scopes/{scope}/files')
      const file = new File(['Refunds take 14 days.'], 'handbook.md', { type: 'text/markdown' })
      for (const fields of [{ file, limitt: '1' }, { limitt: '1', file }, { limitt: file }, { file, limitt: file }]) {
        // Sessions take no files, whatever their fields.
        const accepting = await findAccepting(uploads.slice(-1), 'unknown_field', (_, url) => sendForm(url, fields))
        expect(accepting).toEqual([])
      }
      await withServer(async (server) => {
        const url = `${server}/api/scopes/acme/files`
        expect((await sendForm(url, { file, purpose: 'x' })).message).toBe('Unknown field "purpose". Use one of: file.')
        expect(await sendForm(url, { file })).toMatchObject({ status: 201 })
      })
      for (const { method, path } of uploads)
        expect(paths[path]?.[method.toLowerCase()]?.requestBody?.content['multipart/form-data']?.schema).toMatchObject({
          additionalProperties: false,
        })
    },
  )

  verifies('R-06', 'own routes without a body › with a body › answer 400', async () => {
    const withoutBody = ownRoutes.filter(
      ({ method, path }) => paths[path]?.[method.toLowerCase()]?.requestBody === undefined && path.startsWith('/api'),
    )
    expect(withoutBody.some(({ method }) => method === 'DELETE')).toBe(true)
    const accepting = await findAccepting(withoutBody, 'unexpected_body', ({ method }, url) =>
      send(method, url, { limitt: 1 }),
    )
    expect(accepting).toEqual([])
  })

  verifies('R-06', 'all routes › with an unknown x-threadkeep header › answer 400', async () => {
    const accepting = await findAccepting(routes, 'unknown_header', ({ method }, url) =>
      send(method, url, undefined, { 'x-threadkeep-limitt': '1' }),
    )
    expect(accepting).toEqual([])
  })

  verifies('R-06', 'headers of a turn › with an invalid value › answer 400', async () => {
    await withServer(async (url) => {
      const body = { model: 'm', messages: [user('Hi')] }
      for (const name of ['x-threadkeep-store', 'x-threadkeep-body', 'x-threadkeep-history'])
        expect(await send('POST', `${url}/v1/acme:ann/chat/completions`, body, { [name]: 'maybe' })).toMatchObject({
          status: 400,
          code: 'bad_header',
        })
    })
  })
})

describe('MCP tools', () => {
  for (const { name, schemas, isReferenceTool } of registeredTools) {
    verifies('R-06', `${name} › with an unknown argument › names it and the known ones`, async () => {
      const { issues = [] } = await schemas.input['~standard'].validate({ limitt: 1 })
      expect(issues.map(({ message }) => message)).toContainEqual(expect.stringContaining('Unknown argument "limitt".'))
    })
    if (isReferenceTool !== true)
      verifies('R-06', `${name} › in its schema › allows no unknown argument at any depth`, () => {
        const schema = schemas.input['~standard'].jsonSchema.input({ target: 'draft-2020-12' }) as JsonSchema
        expect(findOpenObjects(schema, '')).toEqual([])
      })
  }
})

/** Objects that take names of the client's choice: properties of entities, and messages of any provider. */
const openPaths = /\.(?:properties|settings|value)(?:\.|$)|messages\[\]|\.result\b/

/** Paths of objects in a schema that allow unknown fields. */
function findOpenObjects(schema: JsonSchema, path: string): string[] {
  const isOpen = schema.type === 'object' && schema.additionalProperties !== false && !openPaths.test(path)
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>)
  const items = schema.items as JsonSchema | undefined
  const choices = ['anyOf', 'oneOf', 'allOf'].flatMap((keyword) => (schema[keyword] ?? []) as JsonSchema[])
  return [
    ...(isOpen ? [path || 'input'] : []),
    ...properties.flatMap(([name, inner]) => findOpenObjects(inner, `${path}.${name}`)),
    ...(items === undefined ? [] : findOpenObjects(items, `${path}[]`)),
    ...(openPaths.test(path) ? [] : choices.flatMap((choice) => findOpenObjects(choice, path))),
  ]
}

const leavesOf = (command: Command, path: readonly string[] = []): readonly (readonly string[])[] =>
  command.commands.length === 0 ? [path] : command.commands.flatMap((inner) => leavesOf(inner, [...path, inner.name()]))

function requiredFlags(program: Command, path: readonly string[]): readonly string[] {
  let command = program
  for (const name of path) command = command.commands.find((inner) => inner.name() === name) as Command
  return command.options.flatMap(({ mandatory, long }) => (mandatory ? [`${long}`, 'x'] : []))
}

describe('commands', () => {
  verifies('R-06', 'every command › with an unknown flag › is a usage error', async () => {
    const program = createProgram()
    const leaves = leavesOf(program)
    expect(leaves.length).toBeGreaterThan(25)
    for (const path of leaves) {
      const mandatory = requiredFlags(program, path)
      const error = await program.parseAsync([...path, ...mandatory, '--limitt', '1'], { from: 'user' }).then(
        () => undefined,
        (cause: unknown) => cause,
      )
      expect([path, (error as { code?: string } | undefined)?.code]).toEqual([path, 'commander.unknownOption'])
    }
  })

  verifies('R-06', 'a configuration with an unknown field › is refused', () => {
    for (const config of [{ limitt: 1 }, { listen: { limitt: 1 } }, { upstreams: [{ name: 'a', limitt: 1 }] }])
      expect(() => parseConfig(config)).toThrow(/limitt/)
  })

  verifies('R-06', 'the environment › with an unknown THREADKEEP variable › is refused', () => {
    const check =
      (environment: Record<string, string>, ...args: string[]) =>
      () =>
        checkEnvironment(environment, args)
    expect(check({ THREADKEEP_STOR: 'ram:' })).toThrow('Did you mean THREADKEEP_STORE?')
    expect(check({ THREADKEEP_STOREKEY: 'env:A' })).toThrow('Did you mean THREADKEEP_STORE_KEY?')
    expect(check({ THREADKEEP_STOR_KEY: 'env:A' })).toThrow('Did you mean THREADKEEP_STORE_KEY?')
    expect(check({ THREADKEEP_COLOUR: 'red' })).toThrow('Use one of: THREADKEEP_AUDIT_LOG,')
    expect(
      check({ THREADKEEP_WEBHOOK_SECRET: 'x', THREADKEEP_MAIN: 'k' }, '--store-key', 'env:THREADKEEP_MAIN'),
    ).not.toThrow()
    expect(check({ THREADKEEP_SERVICE_HOST: 'h', THREADKEEP_PORT_4848_TCP_ADDR: 'a', PATH: '/' })).not.toThrow()
  })

  verifies('R-06', 'the environment › has every variable that the code reads', () => {
    const sources = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.ts'),
    )
    const names = new Set(
      sources.flatMap(
        (file) => readFileSync(`${root}src/${file}`, 'utf8').match(/\bTHREADKEEP_[A-Z]+(?:_[A-Z]+)*\b/g) ?? [],
      ),
    )
    for (const name of names) expect(() => checkEnvironment({ [name]: 'x' }, [])).not.toThrow()
    expect(names.size).toBeGreaterThan(15)
  })
})
