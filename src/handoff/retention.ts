import type { Millis } from '../domain/entry.ts'
import type { Lifetime } from '../domain/profile.ts'
import { eraseRows } from './erase.ts'
import { textIn } from './records.ts'
import type { HandoffParts } from './settings.ts'

/** Sessions that began at this time or before are over; undefined where they are kept for good. */
export const startsAfter = ({ age }: Pick<Lifetime, 'age'>, now: Millis): Millis | undefined =>
  age === undefined ? undefined : now - age

/** So many sessions are looked at together. */
const some = 500

/**
 * Ends sessions that are over, in the memory and in the graph. The host decides how often.
 *
 * @example
 * await sweep(parts, ['default'], Date.now()) // { ended: ['default:session_1763236000000_1f0c'] }
 */
export async function sweep(
  parts: HandoffParts,
  workspaces: readonly string[],
  now: Millis,
): Promise<{ readonly ended: readonly string[] }> {
  const { memory, graph } = parts
  const ended = new Set((await memory.sweep(now)).ended)
  for (const key of ended) {
    const [workspace, session, inner] = key.split(':')
    if (workspace !== undefined && session !== undefined && inner === undefined)
      await eraseRows(graph, workspace, session)
  }
  const since = startsAfter(memory.profile.lifetime, now)
  for (const workspace of since === undefined ? [] : workspaces) {
    for (const session of await over(parts, workspace, since as Millis)) {
      await memory.forget({ key: `${workspace}:${session}` })
      await eraseRows(graph, workspace, session)
      ended.add(`${workspace}:${session}`)
    }
  }
  return { ended: [...ended].sort() }
}

/** Sessions with nothing said in them, which the memory does not know of, and those that another process has swept. */
async function over({ graph }: HandoffParts, workspace: string, since: Millis): Promise<readonly string[]> {
  const { entities } = await graph.entities(workspace, {
    types: ['session', 'session_begun'],
    filters: [{ property: 'created_at', op: 'lte', value: new Date(since).toISOString() }],
    limit: some,
  })
  return [...new Set(entities.map((row) => (row.type === 'session' ? row.id : textIn(row, 'session'))))]
}
