import type { Entry } from '../../domain/entry.ts'
import { isInternalKey, type Key, parseStoredKey, type Scope } from '../../domain/key.ts'
import { isUserSession } from '../../domain/session.ts'
import type { SearchOptions, SearchResult } from '../../memory/search.ts'
import { refineResults } from '../../memory/searchResults.ts'
import { type Handlers, sendJson } from '../http/requestContext.ts'
import type { ServerContext } from '../serverContext.ts'
import { scopeHandler, sessionExists } from './access.ts'
import { invalidParameter, readLimit, readTime } from './input.ts'
import { entryView } from './views.ts'

const kinds = ['message', 'summary', 'fact', 'knowledge', 'item'] as const satisfies readonly Entry['kind'][]

/** Search in a tenant and its sessions, and the tenant's usage. */
export const searchRoutes: Handlers = {
  'GET /api/scopes/{scope}/search': scopeHandler(
    ['q', 'limit', 'from', 'to', 'kinds', 'session'],
    async ({ server, client, query }, scope) => {
      const q = query.get('q') ?? ''
      if (q.trim() === '') throw invalidParameter('q', q, 'the text to search for')
      const results = await searchMemories(server, scope, q, readSearchOptions(query))
      sendJson(client.response, 200, { items: results.map(resultView), next: null })
    },
  ),
  'GET /api/scopes/{scope}/metrics': scopeHandler([], async ({ server, client }, scope) =>
    sendJson(client.response, 200, server.usageStats.scope(scope)),
  ),
}

type LimitedSearch = SearchOptions & { readonly limit: number }

function readSearchOptions(query: URLSearchParams): LimitedSearch {
  const [from, to, session] = [readTime(query, 'from'), readTime(query, 'to'), query.get('session')]
  return {
    dates: true,
    limit: readLimit(query),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    ...(query.has('kinds') ? { kinds: parseKinds(query.get('kinds') ?? '') } : {}),
    ...(session === null ? {} : { session }),
  }
}

function parseKinds(text: string): readonly Entry['kind'][] {
  const chosen = text.split(',').map((name) => kinds.find((kind) => kind === name.trim()))
  if (chosen.every((kind) => kind !== undefined)) return chosen
  throw invalidParameter('kinds', text, `some of ${kinds.join(',')}`)
}

/** Searches all memories, which may share stores, and drops the results of expired sessions. */
async function searchMemories(
  server: ServerContext,
  scope: Scope,
  q: string,
  options: LimitedSearch,
): Promise<readonly SearchResult[]> {
  const { memories } = server
  const found = await Promise.all(
    memories.all().map((memory) => memories.using(memory, () => memory.search(scope, q, options))),
  )
  const unique = [...new Map(found.flat().map((result) => [`${result.key} ${result.entry.id}`, result])).values()]
  const allKeys = unique.flatMap(({ key, repeats = [] }) => [key, ...repeats.map((repeat) => repeat.key)])
  const keys = new Map(allKeys.map((key) => [key, parseStoredKey(key)]))
  const expired = new Set<string>()
  for (const [name, key] of keys) if (isUserSession({ key }) && !(await sessionExists(server, key))) expired.add(name)
  const results = unique
    .filter((result) => !expired.has(result.key) && !isFileMetadata(result, keys.get(result.key)))
    .map((result) => withoutRepeatsIn(expired, result))
  return refineResults(results, q, options.limit)
}

function withoutRepeatsIn(sessions: ReadonlySet<string>, { repeats = [], ...result }: SearchResult): SearchResult {
  const others = repeats.filter(({ key }) => !sessions.has(key))
  return others.length === 0 ? result : { ...result, repeats: others }
}

/** True for entries about a file; only its text is searchable. */
const isFileMetadata = ({ entry }: SearchResult, key: Key | undefined): boolean =>
  key !== undefined && isInternalKey(key) && entry.kind !== 'message'

/** A result in a file is reported under the key of its tenant. */
function resultView({ key, entry, passage, score, why, repeats = [] }: SearchResult) {
  const own = parseStoredKey(key)
  return {
    key: toPublicKey(key),
    ...(isInternalKey(own) ? { from: 'files' } : {}),
    entry: entryView(entry),
    ...(passage !== undefined && { passage }),
    score,
    why,
    ...(repeats.length > 0 && { repeats: repeats.map((repeat) => ({ key: toPublicKey(repeat.key), id: repeat.id })) }),
  }
}

function toPublicKey(key: string): string {
  const { scope, ...rest } = parseStoredKey(key)
  return isInternalKey(rest) ? scope : key
}
