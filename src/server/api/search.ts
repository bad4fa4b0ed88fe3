import { isSession } from '../../domain/admission.ts'
import type { Entry } from '../../domain/entry.ts'
import { isInner, type Key, parseStoredKey, type Scope } from '../../domain/key.ts'
import type { SearchOptions, SearchResult } from '../../memory/search.ts'
import { type Handlers, send } from '../http/requestContext.ts'
import type { House } from '../serverContext.ts'
import { bad, limitIn, timeIn } from './query.ts'
import { ofScope } from './scope.ts'
import { isThere } from './session.ts'
import { shownEntry } from './shown.ts'

const kinds = ['message', 'summary', 'fact', 'knowledge', 'item'] as const satisfies readonly Entry['kind'][]

/** What a tenant and all its sessions hold on a question, and how their conversations go. */
export const search: Handlers = {
  'GET /api/scopes/{scope}/search': ofScope(
    ['q', 'limit', 'from', 'to', 'kinds', 'session'],
    async ({ house, client, query }, scope) => {
      const q = query.get('q') ?? ''
      if (q.trim() === '') throw bad('q', q, 'what to look for')
      send(client.response, 200, { items: (await found(house, scope, q, optionsIn(query))).map(shown), next: null })
    },
  ),
  'GET /api/scopes/{scope}/metrics': ofScope([], async ({ house, client }, scope) =>
    send(client.response, 200, house.tallies.scope(scope)),
  ),
}

type Wanted = SearchOptions & { readonly limit: number }

function optionsIn(query: URLSearchParams): Wanted {
  const [from, to, session] = [timeIn(query, 'from'), timeIn(query, 'to'), query.get('session')]
  return {
    dates: true,
    limit: limitIn(query),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    ...(query.has('kinds') ? { kinds: kindsIn(query.get('kinds') ?? '') } : {}),
    ...(session === null ? {} : { session }),
  }
}

function kindsIn(text: string): readonly Entry['kind'][] {
  const chosen = text.split(',').map((name) => kinds.find((kind) => kind === name.trim()))
  if (chosen.every((kind) => kind !== undefined)) return chosen
  throw bad('kinds', text, `some of ${kinds.join(',')}`)
}

/** The best of what the memories hold, which may share their stores. What was said in sessions that are over is none of it. */
async function found(house: House, scope: Scope, q: string, options: Wanted): Promise<readonly SearchResult[]> {
  const { memories } = house
  const all = await Promise.all(
    memories.all().map((memory) => memories.using(memory, () => memory.search(scope, q, options))),
  )
  const best = [...new Map(all.flat().map((hit) => [`${hit.key} ${hit.entry.id}`, hit])).values()]
  const keys = new Map(best.map(({ key }) => [key, parseStoredKey(key)]))
  const gone = new Set<string>()
  for (const [name, key] of keys) if (isSession({ key }) && !(await isThere(house, key))) gone.add(name)
  return best
    .filter((hit) => !gone.has(hit.key) && !isRecord(hit, keys.get(hit.key)))
    .sort((a, b) => b.score - a.score)
    .slice(0, options.limit)
}

/** What is kept about a file is no part of what it says. */
const isRecord = ({ entry }: SearchResult, key: Key | undefined): boolean =>
  key !== undefined && isInner(key) && entry.kind !== 'message'

/** What was found in a file is the tenant's; its name tells which file. */
function shown({ key, entry, score, why }: SearchResult) {
  const { scope, ...rest } = parseStoredKey(key)
  return {
    key: isInner(rest) ? scope : key,
    ...(isInner(rest) ? { from: 'files' } : {}),
    entry: shownEntry(entry),
    score,
    why,
  }
}
