import { MemoryError } from '../domain/error.ts'
import { parseKey, type Scope } from '../domain/key.ts'

const fallbackWorkspace = 'default'

/** Authenticated caller and the workspaces it may use. */
export type Principal = {
  /** Name from the configuration or the credential. Without it, the name the client reports is used. */
  readonly name?: string | undefined
  /** Workspace of calls that name none. */
  readonly defaultWorkspace: Scope
  /** Allowed workspaces; all if left out. */
  readonly allowedWorkspaces?: readonly Scope[] | undefined
}

/**
 * Creates a principal from configured names. The default workspace is `workspace`, else the first of `only`, else
 * `default`.
 *
 * @throws MemoryError `bad-option` if `workspace` is not one of `only`.
 * @example
 * createPrincipal({ workspace: 'project-a' }) // { defaultWorkspace: 'project-a', allowedWorkspaces: undefined }
 */
export function createPrincipal({
  workspace,
  only,
}: {
  readonly workspace?: string | undefined
  readonly only?: readonly string[] | undefined
}): Principal {
  const allowed = only?.map(parseWorkspace)
  const defaultWorkspace = workspace === undefined ? (allowed?.[0] ?? fallbackWorkspace) : parseWorkspace(workspace)
  if (allowed === undefined || allowed.includes(defaultWorkspace))
    return { defaultWorkspace, allowedWorkspaces: allowed }
  throw new MemoryError(
    'bad-option',
    `workspace ${defaultWorkspace} is not in only (${allowed.join(', ')}). Add it to only, or use one of these.`,
    { param: 'workspace' },
  )
}

export const canUseWorkspace = ({ allowedWorkspaces }: Principal, workspace: Scope): boolean =>
  allowedWorkspaces === undefined || allowedWorkspaces.includes(workspace)

/** Resolves the workspace of a call. The error is the same for a missing workspace and one that is not allowed. */
export function resolveWorkspace(principal: Principal, requested: string | undefined): Scope {
  const workspace = requested === undefined ? principal.defaultWorkspace : parseWorkspace(requested)
  if (canUseWorkspace(principal, workspace)) return workspace
  throw new MemoryError(
    'bad-option',
    `Workspace ${workspace} was not found. Leave out workspace, or name one you may use.`,
    { param: 'workspace' },
  )
}

function parseWorkspace(text: string): Scope {
  const { scope, id } = parseKey(text)
  if (id === '') return scope
  throw new MemoryError(
    'bad-option',
    `workspace is ${JSON.stringify(text)}; it must be a name such as my-project, without a colon.`,
    { param: 'workspace' },
  )
}
