import type { Millis } from '../domain/entry.ts'
import type { Lifetime } from '../domain/profile.ts'
import type { Graph } from '../graph/types.ts'
import { type ForgetOptions, wipeStores } from '../memory/forget.ts'
import { listStores } from '../memory/memoryDeps.ts'
import { internalsOf } from '../memory.ts'
import { conversationId, originId, stateId, textProperty } from './rows.ts'
import type { HandoffDeps } from './settings.ts'

/** Sessions created at this time or before are expired; undefined if sessions never expire. */
export const expiryCutoff = ({ age }: Pick<Lifetime, 'age'>, now: Millis): Millis | undefined =>
  age === undefined ? undefined : now - age

/** Sessions expired per sweep and workspace. */
const sweepBatchSize = 500

/**
 * Deletes expired sessions from the memory and the graph. The host decides how often.
 *
 * @example
 * await sweepExpired(deps, ['default'], Date.now()) // { ended: ['default:session_1763236000000_1f0c'] }
 */
export async function sweepExpired(
  deps: HandoffDeps,
  workspaces: readonly string[],
  now: Millis,
): Promise<{ readonly ended: readonly string[] }> {
  const { memory, graph } = deps
  const ended = new Set((await memory.sweep(now)).ended)
  for (const key of ended) {
    const [workspace, session, inner] = key.split(':')
    if (workspace !== undefined && session !== undefined && inner === undefined)
      await deleteSessionRows(graph, workspace, session, { deferWipe: true })
  }
  const cutoff = expiryCutoff(memory.profile.lifetime, now)
  for (const workspace of cutoff === undefined ? [] : workspaces) {
    for (const session of await findExpired(deps, workspace, cutoff as Millis)) {
      await memory.forget({ key: `${workspace}:${session}` }, { deferWipe: true })
      await deleteSessionRows(graph, workspace, session, { deferWipe: true })
      ended.add(`${workspace}:${session}`)
    }
  }
  if (ended.size > 0) await wipeStores(listStores(internalsOf(memory)))
  return { ended: [...ended].sort() }
}

/**
 * Finds expired sessions by their rows: those without messages, unknown to the memory, and those another process swept.
 */
async function findExpired({ graph }: HandoffDeps, workspace: string, cutoff: Millis): Promise<readonly string[]> {
  const { entities } = await graph.queryEntities(workspace, {
    types: ['session', 'session_begun'],
    filters: [{ property: 'created_at', op: 'lte', value: new Date(cutoff).toISOString() }],
    limit: sweepBatchSize,
  })
  return [...new Set(entities.map((row) => (row.type === 'session' ? row.id : textProperty(row, 'session'))))]
}

/**
 * Deletes all rows of a session. Rows overwritten by a client no longer name their session, so they are deleted by id.
 */
export async function deleteSessionRows(
  graph: Graph,
  workspace: string,
  session: string,
  options?: ForgetOptions,
): Promise<void> {
  const sessionRow = (await graph.getEntity(workspace, session))?.type === 'session' ? [session] : []
  await graph.write(workspace, {
    deleteEntities: [...sessionRow, originId(session), conversationId(session), stateId(session)],
  })
  await graph.erase(workspace, session, options)
}
