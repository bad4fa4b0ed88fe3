import { findMetadata } from '../../domain/entry.ts'
import { formatKey, isInternalKey, parseKey, type Scope } from '../../domain/key.ts'
import type { Store } from '../../domain/ports.ts'
import type { MetadataFilter, SessionListItem } from '../../domain/session.ts'
import { internalsOf } from '../../memory.ts'
import { parseJson } from '../../text/json.ts'
import { allScopes } from '../auth/credential.ts'
import { HttpError } from '../http/httpError.ts'
import { type Handlers, type RequestContext, requireOwnKey, sendJson } from '../http/requestContext.ts'
import type { ServerContext } from '../serverContext.ts'
import {
  beginSession,
  dropSessionState,
  endSession,
  parseOwnScope,
  type SessionAccess,
  sessionConflict,
  sessionExists,
  sessionHandler,
  withSession,
} from './access.ts'
import { newSession, transferTarget } from './bodies.ts'
import { checkQuery, readBody, readLimit, toPage } from './input.ts'
import { sessionView } from './views.ts'

/** Lists, begins, transfers and ends sessions. */
export const sessionRoutes: Handlers = {
  'GET /api/sessions': listSessions,
  'POST /api/sessions': createSession,
  'GET /api/sessions/{key}': sessionHandler([], async ({ client }, { head }) =>
    sendJson(client.response, 200, sessionView(head)),
  ),
  'DELETE /api/sessions/{key}': sessionHandler([], deleteSession),
  'GET /api/sessions/{key}/metrics': sessionHandler([], async ({ server, client }, { key }) =>
    sendJson(client.response, 200, server.usageStats.session(formatKey(key))),
  ),
  'POST /api/sessions/{key}/transfer': sessionHandler([], transferSession),
}

async function createSession(context: RequestContext): Promise<void> {
  const { server, client, query } = context
  checkQuery(query, [])
  const { key: keyText, ...description } = await readBody(context, newSession)
  const key = requireOwnKey(context, parseKey(keyText))
  if (key.id === '') {
    const message = `${key.scope} is a tenant, which needs no creation. Use ${key.scope}:session.`
    throw new HttpError(400, 'no_session', message, 'key')
  }
  await beginSession(server, key, description)
  await withSession(server, key, async ({ head }) => sendJson(client.response, 201, sessionView(head)))
}

async function deleteSession({ server, client }: RequestContext, session: SessionAccess): Promise<void> {
  const { id, scope } = session.key
  if (id === '') {
    const message = `${scope} is a tenant and cannot be ended. To delete its data, POST { "scope": "${scope}" } to /api/forget.`
    throw new HttpError(400, 'no_session', message, 'key')
  }
  await endSession(server, session)
  client.response.writeHead(204).end()
}

async function transferSession(context: RequestContext, { key, memory }: SessionAccess): Promise<void> {
  const { server, client } = context
  const to = requireOwnKey(context, parseKey((await readBody(context, transferTarget)).to))
  await server.sessionLocks.run(formatKey(key), async () => {
    // Checks the other stores; the transfer itself checks its own.
    if (await sessionExists(server, to, internalsOf(memory).sessions)) throw sessionConflict(to, 'to')
    await memory.transfer(key, to)
  })
  dropSessionState(server, key)
  sendJson(client.response, 200, { key: formatKey(to) })
}

async function listSessions(context: RequestContext): Promise<void> {
  const { server, client, query } = context
  const scopes = readScopes(context)
  const metadata = readMetadataFilter(query)
  const fields = Object.keys(metadata ?? {}).map((name) => metadataPrefix + name)
  checkQuery(query, ['scope', 'after', 'limit', 'q', 'template', ...fields])
  const [limit, after] = [readLimit(query), query.get('after') ?? '']
  const range = {
    scopes,
    after: after === '' ? '' : formatKey(parseKey(after)),
    limit: limit + 1,
    ...(metadata !== undefined && { metadata }),
  }
  const found = await findSessions(server, range, { q: query.get('q') ?? '', template: query.get('template') ?? '' })
  const { items, next } = toPage(found, limit, ({ key }) => formatKey(key))
  const heads = await Promise.all(items.map(({ store, key }) => store.readHead(key, 1)))
  // A transferred session is listed under its new key only.
  const sessions = heads
    .filter(({ revision, derived }) => revision > 0 && findMetadata(derived)?.movedTo === undefined)
    .map(sessionView)
  sendJson(client.response, 200, { items: sessions, next })
}

/** The scopes to list; undefined for all. */
function readScopes(context: RequestContext): readonly Scope[] | undefined {
  const { credential, query } = context
  const scope = query.get('scope')
  if (scope !== null) return [parseOwnScope(context, scope)]
  if (credential === undefined || credential.scopes.includes(allScopes)) return undefined
  return [...credential.scopes].sort()
}

type StoredSession = SessionListItem & { readonly store: Store }
type ListRange = {
  readonly scopes: readonly Scope[] | undefined
  readonly after: string
  readonly limit: number
  readonly metadata?: MetadataFilter
}
/** Text in the key, and template; empty ones match all sessions. */
type ListFilter = { readonly q: string; readonly template: string }
type SessionMatcher = {
  readonly matches: (session: SessionListItem) => boolean | Promise<boolean>
  /** Minimum number of sessions to read at once. */
  readonly pageSize: number
}

/** Sessions read at once while few of them may match. */
const searchPageSize = 2_000

/** The first sessions after a key, of all stores, in order of scope and id. */
async function findSessions(
  server: ServerContext,
  { scopes, limit, ...range }: ListRange,
  filter: ListFilter,
): Promise<readonly StoredSession[]> {
  const found = new Map<string, StoredSession>()
  for (const [store, memory] of server.memories.bySessionStore()) {
    const matches = createMatcher(store, internalsOf(memory).clock(), filter)
    for (const where of scopes?.map((scope) => ({ scope })) ?? [{}]) {
      for (const session of await findMatchingSessions(store, { ...where, ...range }, matches, limit))
        found.set(formatKey(session.key), { ...session, store })
    }
  }
  return [...found.values()].sort(compareKeys).slice(0, limit)
}

const metadataPrefix = 'metadata.'

/** Reads parameters such as `metadata.channel=web`. A JSON number, true, false or null is compared as such. */
function readMetadataFilter(query: URLSearchParams): MetadataFilter | undefined {
  const fields = [...query].filter(([name]) => name.startsWith(metadataPrefix) && name.length > metadataPrefix.length)
  if (fields.length === 0) return undefined
  return Object.fromEntries(fields.map(([name, value]) => [name.slice(metadataPrefix.length), parseFilterValue(value)]))
}

function parseFilterValue(text: string): MetadataFilter[string] {
  const value: unknown = /^(?:true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|".*")$/s.test(text)
    ? parseJson(text)
    : text
  return (value ?? (text === 'null' ? null : text)) as MetadataFilter[string]
}

async function findMatchingSessions(
  store: Store,
  range: { readonly scope?: Scope; readonly after: string; readonly metadata?: MetadataFilter },
  { matches, pageSize }: SessionMatcher,
  limit: number,
): Promise<readonly SessionListItem[]> {
  const found: SessionListItem[] = []
  for (let { after } = range; found.length < limit; ) {
    const page = await store.list({ ...range, after, limit: Math.max(limit, pageSize) })
    for (const session of page) if (found.length < limit && (await matches(session))) found.push(session)
    const last = page.at(-1)
    if (last === undefined) break
    after = formatKey(last.key)
  }
  return found.slice(0, limit)
}

/** Creates the test for the sessions of a list: visible, not expired, with the text in their key and the template. */
function createMatcher(store: Store, now: number, { q, template }: ListFilter): SessionMatcher {
  const text = q.toLowerCase()
  const isListed = (session: SessionListItem): boolean =>
    isVisible(session) && session.expiresAt > now && formatKey(session.key).toLowerCase().includes(text)
  const isFiltered = text !== '' || template !== ''
  return {
    pageSize: isFiltered ? searchPageSize : 0,
    matches: async (session) =>
      isListed(session) &&
      (template === '' || findMetadata((await store.readHead(session.key, 0)).derived)?.template === template),
  }
}

/** Hides the engine's internal keys, and tenants without messages. */
const isVisible = ({ key, messages }: SessionListItem): boolean =>
  !isInternalKey(key) && (key.id !== '' || messages > 0)

const compareKeys = ({ key: a }: SessionListItem, { key: b }: SessionListItem): number =>
  a.scope === b.scope ? compareText(a.id, b.id) : compareText(a.scope, b.scope)
const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
