import { parseKey } from '../../domain/key.ts'
import type { EmbeddingProgress } from '../../memory/embedding.ts'
import { allScopes, onlyScope } from '../auth/credential.ts'
import { HttpError } from '../http/httpError.ts'
import { checkAdmin, type Handlers, type RequestContext, requireOwnKey, sendJson } from '../http/requestContext.ts'
import { checkReadiness } from '../observability/readiness.ts'
import { docsPolicy, renderDocsPage } from '../openapi/docsPage.ts'
import { buildOpenApi } from '../openapi/openapi.ts'
import { checkQuery } from './input.ts'

/** Health, metrics and documentation. */
export const operatorRoutes: Handlers = {
  'GET /healthz': async ({ server, client, query }) => {
    checkQuery(query, [])
    const state = await server.readState()
    const { ready: _ready, ...health } = checkReadiness(state)
    const { profile } = server.memories.sessions
    // Anybody may ask: the keys of sessions are left out.
    const { degraded: _degraded, recent: _recent, ...upkeep } = server.memories.sessions.health()
    sendJson(client.response, 200, {
      ...health,
      upkeep,
      ...(state.embedding && { embedding: withoutUrls(state.embedding) }),
      profile: profile.name,
      secrets: profile.secrets,
    })
  },
  'GET /readyz': async ({ server, client, query }) => {
    checkQuery(query, [])
    const readiness = checkReadiness(await server.readState())
    sendJson(client.response, readiness.ready ? 200 : 503, readiness)
  },
  'GET /metrics': async (context) => {
    checkAdmin(context)
    checkQuery(context.query, [])
    const { metrics } = context.server
    context.client.response.writeHead(200, { 'content-type': metrics.contentType }).end(await metrics.text())
  },
  'GET /openapi.json': async ({ client, query }) => {
    checkQuery(query, [])
    sendJson(client.response, 200, buildOpenApi())
  },
  'GET /docs': async ({ client, query }) => {
    checkQuery(query, [])
    // The route needs no key, so a request must cost little.
    docsPage ??= Buffer.from(renderDocsPage(buildOpenApi()))
    client.send(200, docsHeaders, docsPage)
  },
  'GET /learning/optimizer/status': async (context) => {
    const key = readOptimizerKey(context)
    checkQuery(context.query, ['key'])
    sendJson(context.client.response, 200, await context.server.optimizerStatus.read(key))
  },
}

let docsPage: Buffer | undefined
const docsHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': docsPolicy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

/** Removes addresses from a fault: the route is public, and they may be internal. */
const withoutUrls = ({ fault, ...progress }: EmbeddingProgress): EmbeddingProgress => ({
  ...progress,
  ...(fault !== undefined && { fault: fault.replaceAll(/https?:\/\/\S+/g, 'the embedder') }),
})

/** The session or tenant whose status is requested; undefined for all. */
function readOptimizerKey(context: RequestContext): string | undefined {
  const { credential, query } = context
  const key = query.get('key') ?? (credential && onlyScope(credential))
  if (key !== undefined) {
    requireOwnKey(context, parseKey(key))
    return key
  }
  if (credential === undefined || credential.scopes.includes(allScopes)) return undefined
  throw new HttpError(400, 'missing_key', `key is missing. Use one of: ${credential.scopes.join(', ')}.`, 'key')
}
