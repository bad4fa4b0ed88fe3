import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { apiRoutes } from '../../src/server/api/apiRoutes.ts'
import { modelRoutes } from '../../src/server/modelRoutes.ts'
import { buildOpenApi } from '../../src/server/openapi/openapi.ts'
import { routes } from '../../src/server/openapi/routes.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'

type Operation = {
  readonly operationId: string
  readonly parameters: readonly { readonly $ref: string }[]
  readonly responses: Readonly<Record<string, { readonly $ref?: string; readonly headers?: object }>>
  readonly security?: readonly object[]
}
type Document = {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

const document = buildOpenApi() as Document
const operationAt = (method: string, path: string): Operation | undefined =>
  document.paths[path]?.[method.toLowerCase()]
const all = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
)

/** Linter messages for the document, with all recommended rules. */
function lint(): {
  readonly totals: { readonly errors: number; readonly warnings: number }
  readonly problems: readonly unknown[]
} {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-openapi-'))
  try {
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify(document))
    // The linter sees ambiguous paths for conversations and a tenant named "conversations"; ids that start with conv_
    // are not ambiguous.
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

describe('the OpenAPI document', () => {
  verifies('S-07', 'is valid OpenAPI 3.1', () => {
    expect(document.openapi).toBe('3.1.0')
    expect(lint()).toMatchObject({ totals: { errors: 0, warnings: 0 }, problems: [] })
  })

  verifies('S-07', 'describes every route and only routes', () => {
    const held = all.map(({ path, method }) => `${method.toUpperCase()} ${path}`)
    expect(held.sort()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).sort())
  })

  verifies('S-07', 'describes exactly the responses of the server', () =>
    expect(routes.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
      Object.keys({ ...modelRoutes, ...apiRoutes }).sort(),
    ),
  )

  it('has the paths that clients rely on', () => {
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
      ...['messages', 'context', 'summaries', 'facts', 'record', 'metrics'].map(
        (part) => `GET /api/sessions/{key}/${part}`,
      ),
      'POST /api/sessions/{key}/transfer',
      ...['knowledge', 'files', 'search', 'metrics'].map((part) => `GET /api/scopes/{scope}/${part}`),
      'POST /api/forget',
      'GET /api/receipts/{receipt}',
      ...['healthz', 'readyz', 'metrics', 'openapi.json', 'learning/optimizer/status'].map((path) => `GET /${path}`),
    ]
    expect(promised.filter((name) => !routes.some(({ method, path }) => name === `${method} ${path}`))).toEqual([])
  })

  it('has a unique id per operation', () => {
    const names = all.map(({ operation }) => operation.operationId)
    expect(names).toEqual([...new Set(names)])
    expect(operationAt('POST', '/v1/{key}/chat/completions')?.operationId).toBe('createChatCompletion')
    expect(operationAt('POST', '/v1/chat/completions')?.operationId).toBe('createChatCompletionByHeader')
  })

  it('requires a key in the path or in a header, never both', () => {
    const spoken = all.filter(({ path }) => path.startsWith('/v1/'))
    const keysOf = ({ operation }: (typeof all)[number]) =>
      operation.parameters.map(({ $ref }) => $ref.split('/').at(-1)).filter((name) => /^key/.test(name ?? ''))
    expect(spoken.map((each) => [each.path, keysOf(each)])).toEqual(
      spoken.map(({ path }) => [path, [path.includes('{key}') ? 'key' : 'keyHeader']]),
    )
  })

  it('describes errors in the format of each protocol', () => {
    const shapeAt = (path: string) => operationAt('POST', path)?.responses['4XX']?.$ref
    const own = ['/v1/{key}/messages', '/v1/messages', '/v1/{key}/v1/messages', '/v1/{key}/messages/count_tokens']
    expect(own.map(shapeAt)).toEqual(own.map(() => '#/components/responses/AnthropicErrorRefused'))
    expect(shapeAt('/v1/{key}/chat/completions')).toBe('#/components/responses/ErrorRefused')
  })

  it('describes the response headers of a turn', () => {
    const headers = operationAt('POST', '/v1/{key}/chat/completions')?.responses['200']?.headers ?? {}
    expect(Object.keys(headers)).toEqual([
      'x-request-id',
      'x-threadkeep-receipt',
      'x-threadkeep-tokens',
      'x-threadkeep-profile',
      'x-threadkeep-history',
      'x-threadkeep-degraded',
      'x-threadkeep-memory',
    ])
  })

  it('allows the inspector page, health checks and the documentation without credentials, and nothing else', () =>
    expect(all.filter(({ operation }) => operation.security?.length === 0).map(({ path }) => path)).toEqual([
      '/',
      '/assets/{asset}',
      '/healthz',
      '/readyz',
      '/docs',
    ]))

  it('has no dangling and no unused references', () => {
    const text = JSON.stringify(document)
    const wanted = new Set([...text.matchAll(/"\$ref":"#\/components\/([\w-]+\/[\w-]+)"/g)].map(([, name]) => name))
    const kinds = ['schemas', 'parameters', 'headers', 'responses']
    const there = kinds.flatMap((kind) => Object.keys(document.components[kind] ?? {}).map((name) => `${kind}/${name}`))
    expect([...wanted].sort()).toEqual(there.sort())
  })
})
