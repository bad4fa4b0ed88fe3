import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { resting } from '../../src/server/api/rest.ts'
import { modelRoutes } from '../../src/server/modelRoutes.ts'
import { openapi } from '../../src/server/openapi/openapi.ts'
import { routes } from '../../src/server/openapi/routes.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'

type Described = {
  readonly operationId: string
  readonly parameters: readonly { readonly $ref: string }[]
  readonly responses: Readonly<Record<string, { readonly $ref?: string; readonly headers?: object }>>
  readonly security?: readonly object[]
}
type Document = {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

const document = openapi() as Document
const described = (method: string, path: string): Described | undefined => document.paths[path]?.[method.toLowerCase()]
const all = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
)

/** What the linter has to say about the document, with all the rules it recommends. */
function linted(): {
  readonly totals: { readonly errors: number; readonly warnings: number }
  readonly problems: readonly unknown[]
} {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-openapi-'))
  try {
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify(document))
    // A conversation and a tenant called "conversations" could be taken for each other; ids that begin with conv_ cannot.
    const rules = ['--extends', 'recommended', '--skip-rule', 'no-ambiguous-paths']
    const { stdout } = spawnSync(
      'npx',
      ['redocly', 'lint', join(folder, 'openapi.json'), ...rules, '--format', 'json'],
      {
        cwd: root,
        encoding: 'utf8',
        env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
      },
    )
    return JSON.parse(stdout)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('the description of the server', () => {
  verifies('S-07', 'is OpenAPI 3.1 without a fault', () => {
    expect(document.openapi).toBe('3.1.0')
    expect(linted()).toMatchObject({ totals: { errors: 0, warnings: 0 }, problems: [] })
  })

  verifies('S-07', 'holds every route, and nothing but routes', () => {
    const held = all.map(({ path, method }) => `${method.toUpperCase()} ${path}`)
    expect(held.sort()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).sort())
  })

  verifies('S-07', 'holds what the server answers, and nothing else', () =>
    expect(routes.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
      Object.keys({ ...modelRoutes, ...resting }).sort(),
    ),
  )

  it('has the addresses that clients rely on', () => {
    const promised = [
      ...['chat/completions', 'responses', 'conversations', 'embeddings', 'messages', 'messages/count_tokens'].flatMap(
        (path) => [`POST /v1/{key}/${path}`, `POST /v1/${path}`],
      ),
      'GET /v1/{key}/models',
      'GET /v1/models',
      'POST /v1/{key}/v1/messages',
      'GET /api/sessions',
      'GET /api/sessions/{key}',
      'DELETE /api/sessions/{key}',
      ...['messages', 'context', 'summaries', 'facts', 'metrics'].map((part) => `GET /api/sessions/{key}/${part}`),
      'POST /api/sessions/{key}/transfer',
      ...['knowledge', 'files', 'search', 'metrics'].map((part) => `GET /api/scopes/{scope}/${part}`),
      'POST /api/forget',
      'GET /api/receipts/{receipt}',
      ...['healthz', 'readyz', 'metrics', 'openapi.json', 'learning/optimizer/status'].map((path) => `GET /${path}`),
    ]
    expect(promised.filter((name) => !routes.some(({ method, path }) => name === `${method} ${path}`))).toEqual([])
  })

  it('gives each operation a name of its own', () => {
    const names = all.map(({ operation }) => operation.operationId)
    expect(names).toEqual([...new Set(names)])
    expect(described('POST', '/v1/{key}/chat/completions')?.operationId).toBe('createChatCompletion')
    expect(described('POST', '/v1/chat/completions')?.operationId).toBe('createChatCompletionByHeader')
  })

  it('asks for a key in the address or in a header, never for both', () => {
    const spoken = all.filter(({ path }) => path.startsWith('/v1/'))
    const keysOf = ({ operation }: (typeof all)[number]) =>
      operation.parameters.map(({ $ref }) => $ref.split('/').at(-1)).filter((name) => /^key/.test(name ?? ''))
    expect(spoken.map((each) => [each.path, keysOf(each)])).toEqual(
      spoken.map(({ path }) => [path, [path.includes('{key}') ? 'key' : 'keyHeader']]),
    )
  })

  it('tells of errors in the shape of whoever made the protocol', () => {
    const shapeAt = (path: string) => described('POST', path)?.responses['4XX']?.$ref
    const own = ['/v1/{key}/messages', '/v1/messages', '/v1/{key}/v1/messages', '/v1/{key}/messages/count_tokens']
    expect(own.map(shapeAt)).toEqual(own.map(() => '#/components/responses/AnthropicErrorRefused'))
    expect(shapeAt('/v1/{key}/chat/completions')).toBe('#/components/responses/ErrorRefused')
  })

  it('tells what a turn brings beside its reply', () => {
    const headers = described('POST', '/v1/{key}/chat/completions')?.responses['200']?.headers ?? {}
    expect(Object.keys(headers)).toEqual([
      'x-request-id',
      'x-threadkeep-receipt',
      'x-threadkeep-tokens',
      'x-threadkeep-profile',
      'x-threadkeep-degraded',
      'x-threadkeep-memory',
    ])
  })

  it('lets everybody ask whether the server is well, and nothing else', () =>
    expect(all.filter(({ operation }) => operation.security?.length === 0).map(({ path }) => path)).toEqual([
      '/healthz',
      '/readyz',
    ]))

  it('refers to nothing that is not there, and has nothing that is not referred to', () => {
    const text = JSON.stringify(document)
    const wanted = new Set([...text.matchAll(/"\$ref":"#\/components\/([\w-]+\/[\w-]+)"/g)].map(([, name]) => name))
    const kinds = ['schemas', 'parameters', 'headers', 'responses']
    const there = kinds.flatMap((kind) => Object.keys(document.components[kind] ?? {}).map((name) => `${kind}/${name}`))
    expect([...wanted].sort()).toEqual(there.sort())
  })
})
