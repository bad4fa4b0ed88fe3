import { MemoryError } from '../domain/error.ts'
import { parseKey, type Scope } from '../domain/key.ts'

/** The workspace of those that name none. */
const usualWorkspace = 'default'

/** Who asks, and which workspaces are open to them. */
export type Visitor = {
  /** By which the configuration or a credential knows them; whatever a client calls itself when left out. */
  readonly name?: string | undefined
  /** The workspace of calls that name none. */
  readonly home: Scope
  /** The only workspaces there are for them; all when left out. */
  readonly only?: readonly Scope[] | undefined
}

/**
 * Somebody whose calls are about this workspace unless they name another; with `only`, there are no others.
 *
 * @example
 * visitorOf({ workspace: 'project-a' }) // { home: 'project-a', only: undefined }
 */
export function visitorOf({
  workspace,
  only,
}: {
  readonly workspace?: string | undefined
  readonly only?: readonly string[] | undefined
}): Visitor {
  const scopes = only?.map(scopeIn)
  const home = workspace === undefined ? (scopes?.[0] ?? usualWorkspace) : scopeIn(workspace)
  if (scopes === undefined || scopes.includes(home)) return { home, only: scopes }
  throw new MemoryError(
    'bad-option',
    `workspace is ${home}, which is none of those in only (${scopes.join(', ')}). Add it there, or name one of them.`,
    {
      param: 'workspace',
    },
  )
}

export const mayUse = ({ only }: Visitor, workspace: Scope): boolean => only === undefined || only.includes(workspace)

/** The one workspace a call is about. One that is not the asker's is answered in the same words whether anything is in it or not. */
export function workspaceFor(visitor: Visitor, named: string | undefined): Scope {
  const workspace = named === undefined ? visitor.home : scopeIn(named)
  if (mayUse(visitor, workspace)) return workspace
  throw new MemoryError(
    'bad-option',
    `Workspace ${workspace} was not found. Leave out workspace, or name one that is open to you.`,
    { param: 'workspace' },
  )
}

function scopeIn(text: string): Scope {
  const { scope, id } = parseKey(text)
  if (id === '') return scope
  throw new MemoryError(
    'bad-option',
    `workspace is ${JSON.stringify(text.slice(0, 200))}; it must be a name such as my-project, without a colon.`,
    {
      param: 'workspace',
    },
  )
}
