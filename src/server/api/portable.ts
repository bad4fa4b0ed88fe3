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

/** Bytes of a bundle that are read before the response begins: faults until then get a status of their own. */
const readAheadBytes = 1_000_000

async function exportSession({ client }: RequestContext, { key, memory }: SessionAccess): Promise<void> {
  const name = formatKey(key)
  const headers = {
    'content-type': 'application/jsonl; charset=utf-8',
    'content-disposition': `attachment; filename="${name.replaceAll(/[^\w.-]/g, '_')}.jsonl"`,
    'x-content-type-options': 'nosniff',
  }
  const chunks = memory.export({ key: name, signal: client.signal })[Symbol.asyncIterator]()
  try {
    const start: Uint8Array[] = []
    for (let bytes = 0; bytes < readAheadBytes; bytes += start.at(-1)?.length ?? 0) {
      const { done, value } = await chunks.next()
      if (done === true) return client.send(200, headers, Buffer.concat(start))
      start.push(value)
    }
    client.sendHeaders(200, headers)
    await pipeline(Readable.from(joinChunks(start, chunks)), client.response)
  } finally {
    await chunks.return?.()
  }
}

/** Yields what was read ahead, then the rest. */
async function* joinChunks<T>(start: readonly T[], rest: AsyncIterator<T>): AsyncGenerator<T> {
  yield* start
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value
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
