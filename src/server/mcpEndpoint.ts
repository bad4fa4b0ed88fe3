import { MemoryError } from '../domain/error.ts'
import { canUseWorkspace, type Principal } from '../mcp/principal.ts'
import type { McpHttpServer } from '../mcp/transports/http.ts'
import { allScopes, type Credential } from './auth/credential.ts'

/** Opens the MCP endpoint; `visitor` is the principal of callers whose key says no more. */
export type OpenMcp = { readonly visitor: Principal; open(): Promise<McpHttpServer> }

/** The MCP endpoint, opened by its first request: most servers never get one. */
export type McpEndpoint = {
  readonly visitor: Principal
  endpoint(): Promise<McpHttpServer>
  /** Ends open-ended responses before shutdown. */
  drain(): void
  close(): Promise<void>
}

/**
 * Opens the endpoint on first use; a failed attempt is repeated with the next request. A closed one is not opened for a
 * request that is still running: it would create the files of the store again.
 */
export function createMcpEndpoint({ visitor, open }: OpenMcp): McpEndpoint {
  let opened: Promise<McpHttpServer> | undefined
  let isClosed = false
  const endpoint = async (): Promise<McpHttpServer> => {
    if (isClosed) throw new MemoryError('closed', 'This server is shutting down. Send the request to another one.')
    opened ??= open().catch((error: unknown) => {
      opened = undefined
      throw error
    })
    return opened
  }
  return {
    visitor,
    endpoint,
    drain: () => {
      opened?.then(
        (mcp) => mcp.drain(),
        () => undefined,
      )
    },
    close: async () => {
      isClosed = true
      await (await opened?.catch(() => undefined))?.close()
    },
  }
}

/** The principal of a caller. Without keys everybody is the default one, without a trusted name. */
export function principalFor(credential: Credential | undefined, usual: Principal): Principal {
  if (credential === undefined) return usual
  const { name, id, scopes } = credential
  const own = scopes.includes(allScopes)
    ? usual.allowedWorkspaces
    : scopes.filter((scope) => canUseWorkspace(usual, scope))
  const workspace = own === undefined || own.includes(usual.defaultWorkspace) ? usual.defaultWorkspace : own[0]
  // A key without any workspace keeps its name and finds nothing.
  return {
    name: name === '' ? id : name,
    defaultWorkspace: workspace ?? usual.defaultWorkspace,
    allowedWorkspaces: own,
  }
}
