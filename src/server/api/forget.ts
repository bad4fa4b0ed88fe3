import type { z } from 'zod'
import { parseKey } from '../../domain/key.ts'
import type { ForgetResult, ForgetTarget } from '../../memory/forget.ts'
import type { Memory } from '../../memory.ts'
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

function dropServerState({ usageStats, meter, memories, upkeepModels }: ServerContext, target: ForgetTarget): void {
  const { scope, id } = parseKey('scope' in target ? target.scope : target.key)
  meter.forget('key' in target ? { key: target.key } : { scope })
  if ('text' in target || 'messageId' in target) return
  usageStats.forget(target)
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
      entries: [...new Set([...entries, ...session.entries])],
      ...(renewed.length === 0 ? {} : { rebuilt: renewed }),
    })
  }
  return { at: Math.max(...results.map(({ at }) => at)), sessions: [...sessions.values()] }
}
