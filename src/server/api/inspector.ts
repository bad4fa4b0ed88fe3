import type { IncomingMessage, ServerResponse } from 'node:http'
import { allScopes } from '../auth/credential.ts'
import { notFound } from '../http/httpError.ts'
import { type Handlers, type RequestContext, sendJson } from '../http/requestContext.ts'
import type { Asset } from '../inspector/assets.ts'
import { checkQuery } from './input.ts'
import { knownProfiles } from './replay.ts'

/** Files of the inspector page, and the rights of its user. */
export const inspectorRoutes: Handlers = {
  'GET /assets/{asset}': async ({ server, request, client, query, params: { asset: name = '' } }) => {
    checkQuery(query, [])
    const asset = (await server.readInspector())?.assets.get(name)
    if (asset === undefined) throw notFound()
    // The names contain a hash of the content.
    sendAsset(request, client.response, asset, { 'cache-control': 'public, max-age=31536000, immutable' })
  },
  'GET /api/access': async (context) => {
    checkQuery(context.query, [])
    sendJson(context.client.response, 200, describeAccess(context))
  },
}

/** Everything that the key of a request may use, and the names that requests can choose from. */
function describeAccess({ server, credential }: RequestContext) {
  return {
    scopes: credential?.scopes ?? [allScopes],
    isOperator: credential === undefined || credential.rights === 'admin',
    hasKey: credential !== undefined,
    profiles: [...knownProfiles(server).keys()],
    templates: server.memories.templates,
  }
}

const pageHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    // Texts reach the page as text nodes only: nothing may parse HTML.
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
}

/** Sends the inspector page; returns false if it was not built. */
export async function sendInspectorPage({ server, request, client }: RequestContext): Promise<boolean> {
  const inspector = await server.readInspector()
  if (inspector === undefined) return false
  sendAsset(request, client.response, inspector.page, { ...pageHeaders, vary: 'accept, accept-encoding' })
  return true
}

function sendAsset(
  request: IncomingMessage,
  response: ServerResponse,
  { type, bytes, gzipped }: Asset,
  headers: Readonly<Record<string, string>>,
): void {
  const isGzipped = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
  const body = isGzipped ? gzipped : bytes
  response
    .writeHead(200, {
      vary: 'accept-encoding',
      ...headers,
      'content-type': type,
      'content-length': body.length,
      'x-content-type-options': 'nosniff',
      ...(isGzipped && { 'content-encoding': 'gzip' }),
    })
    .end(body)
}
