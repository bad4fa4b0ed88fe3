import { isInner } from '../domain/key.ts'
import { internalsOf } from '../memory.ts'
import { mayUse, workspaceFor } from './scope.ts'
import type { Mcp } from './server.ts'

/** So many sessions are looked through for names. */
const some = 1_000

/** Workspaces whose names begin like this, of those that are the visitor's. */
export function workspacesLike({ desk, visitor }: Mcp, begun: string): Promise<string[]> {
  return orNothing(async () => {
    const stored = async () =>
      (await internalsOf(desk.memory).sessions.list({ limit: some }))
        .filter(({ key }) => !isInner(key))
        .map(({ key }) => key.scope)
    const known = [visitor.home, ...(visitor.only ?? (await stored()))]
    return [...new Set(known)].filter((name) => name.startsWith(begun) && mayUse(visitor, name)).sort()
  })
}

/** Sessions of a workspace whose ids begin like this, the one saved last first. */
export function idsLike({ desk, visitor }: Mcp, workspace: string | undefined, begun: string): Promise<string[]> {
  return orNothing(async () => {
    const { sessions } = await desk.handoff.list(workspaceFor(visitor, workspace), { limit: some })
    return sessions.map(({ sessionId }) => sessionId).filter((id) => id.startsWith(begun))
  })
}

/** Somebody who is still typing needs no errors. */
const orNothing = (find: () => Promise<string[]>): Promise<string[]> => find().catch(() => [])
