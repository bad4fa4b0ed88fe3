import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type ExistingSessionPolicy, existingSessionPolicies } from '../../domain/bundle.ts'
import { formatKey } from '../../domain/key.ts'
import { readBytes } from '../http/body.ts'
import { type Handlers, type RequestContext, sendJson } from '../http/requestContext.ts'
import { parseOwnScope, type SessionAccess, sessionHandler } from './access.ts'
import { checkQuery, invalidParameter } from './input.ts'

/** Sessions as portable bundles. */
export const portableRoutes: Handlers = {
  'GET /api/sessions/{key}/export': sessionHandler([], exportSession),
  'POST /api/scopes/{scope}/import': importSessions,
}

async function exportSession({ client }: RequestContext, { key, memory }: SessionAccess): Promise<void> {
  const name = formatKey(key)
  client.sendHeaders(200, {
    'content-type': 'application/jsonl; charset=utf-8',
    'content-disposition': `attachment; filename="${name.replaceAll(/[^\w.-]/g, '_')}.jsonl"`,
    'x-content-type-options': 'nosniff',
  })
  await pipeline(Readable.from(memory.export({ key: name, signal: client.signal })), client.response)
}

/** Imports a bundle into a tenant: all its sessions become sessions of that tenant. */
async function importSessions(context: RequestContext): Promise<void> {
  const { server, request, client, query, params } = context
  const scope = parseOwnScope(context, params.scope ?? '')
  checkQuery(query, ['existing'])
  const onExisting = readPolicy(query)
  const bytes = await readBytes(request, server.maxBytes.file)
  const memory = server.memories.sessions
  const result = await server.memories.using(memory, () =>
    memory.import(() => Readable.from([bytes]), { scope, onExisting }),
  )
  server.memories.dropCached(scope)
  sendJson(client.response, 200, result)
}

function readPolicy(query: URLSearchParams): ExistingSessionPolicy {
  const text = query.get('existing') ?? 'refuse'
  const policy = existingSessionPolicies.find((known) => known === text)
  if (policy === undefined) throw invalidParameter('existing', text, `one of ${existingSessionPolicies.join(', ')}`)
  return policy
}
