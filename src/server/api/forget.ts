import type { z } from 'zod'
import { parseKey } from '../../domain/key.ts'
import type { ForgetResult } from '../../memory/forget.ts'
import type { ForgetTarget } from '../../memory/forgetTarget.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import type { ForgetPreview, PreviewCounts } from '../forget/preview.ts'
import { HttpError } from '../http/httpError.ts'
import { type Handlers, type RequestContext, requireOwnKey, sendJson } from '../http/requestContext.ts'
import type { ServerContext } from '../serverContext.ts'
import { parseOwnScope, sessionExists } from './access.ts'
import { forgetTarget } from './bodies.ts'
import { checkQuery, readBody } from './input.ts'

/** Deletes entries permanently. Deleting something that does not exist succeeds with an empty report. */
export const forgetRoutes: Handlers = {
  'POST /api/forget': async (context) => {
    const { server, client, query } = context
    checkQuery(query, [])
    const target = checkTarget(context, await readBody(context, forgetTarget))
    const results: ForgetResult[] = []
    for (const memory of await memoriesOf(server, target))
      results.push(await server.memories.using(memory, () => memory.forget(target)))
    dropServerState(server, target)
    sendJson(client.response, 200, mergeResults(results))
  },
  'POST /api/forget/preview': async (context) => {
    const { server, client, query } = context
    checkQuery(query, [])
    const target = checkTarget(context, await readBody(context, forgetTarget))
    const { rehearseForget } = await import('../forget/preview.ts')
    const stores = new Set(
      server.memories.all().flatMap((memory) => [internalsOf(memory).sessions, internalsOf(memory).store]),
    )
    const previews: ForgetPreview[] = []
    for (const store of stores) previews.push(await rehearseForget(store, target))
    sendJson(client.response, 200, mergePreviews(previews))
  },
}

function checkTarget(
  context: RequestContext,
  { key, messageId, scope, text }: z.infer<typeof forgetTarget>,
): ForgetTarget {
  if (key !== undefined && scope === undefined && text === undefined) {
    requireOwnKey(context, parseKey(key))
    return messageId === undefined ? { key } : { key, messageId }
  }
  if (scope !== undefined && key === undefined && messageId === undefined) {
    parseOwnScope(context, scope)
    return text === undefined ? { scope } : { scope, text }
  }
  const message = 'The target is invalid. Send { key }, { key, messageId }, { scope } or { scope, text }.'
  throw new HttpError(400, 'bad_target', message, 'key')
}

/** All memories that may hold the target. The session's own comes first: it rederives summaries with its profile. */
async function memoriesOf(server: ServerContext, target: ForgetTarget): Promise<ReadonlySet<Memory>> {
  const key = 'key' in target ? parseKey(target.key) : undefined
  const exists = key !== undefined && (await sessionExists(server, key))
  const first = exists ? (await server.memories.resolve(key)).memory : server.memories.sessions
  return new Set([first, ...server.memories.all()])
}

function dropServerState(
  { usageStats, usageSeries, meter, memories, upkeepModels }: ServerContext,
  target: ForgetTarget,
): void {
  const { scope, id } = parseKey('scope' in target ? target.scope : target.key)
  meter.forget('key' in target ? { key: target.key } : { scope })
  if ('text' in target || 'messageId' in target) return
  usageStats.forget(target)
  if ('scope' in target) usageSeries.forget(scope)
  memories.dropCached(scope)
  upkeepModels?.forget(scope, ...('scope' in target ? [] : [id]))
}

/** Merges the results of several memories, with each session once. */
function mergeResults(results: readonly ForgetResult[]): ForgetResult {
  const sessions = new Map<string, ForgetResult['sessions'][number]>()
  for (const session of results.flatMap((result) => result.sessions)) {
    const { entries = [], rebuilt: earlier = [] } = sessions.get(session.key) ?? {}
    const renewed = [...new Set([...earlier, ...(session.rebuilt ?? [])])]
    sessions.set(session.key, {
      key: session.key,
      // Numbered rows of two graphs have equal names.
      entries: [...entries, ...session.entries],
      ...(renewed.length === 0 ? {} : { rebuilt: renewed }),
    })
  }
  const rows = results.reduce((sum, { rows: erased = 0 }) => sum + erased, 0)
  const at = Math.max(...results.map((result) => result.at))
  return { at, sessions: [...sessions.values()], ...(rows > 0 && { rows }) }
}

/** Adds up the previews of several stores. */
function mergePreviews(previews: readonly ForgetPreview[]): ForgetPreview {
  const names = Object.keys(previews[0]?.counts ?? {}) as (keyof PreviewCounts)[]
  const total = (name: keyof PreviewCounts): number => previews.reduce((sum, { counts }) => sum + counts[name], 0)
  return {
    counts: Object.fromEntries(names.map((name) => [name, total(name)])) as PreviewCounts,
    sessions: previews.flatMap(({ sessions }) => sessions),
    others: [...new Set(previews.flatMap(({ others }) => others))],
  }
}
