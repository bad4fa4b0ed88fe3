import { mayUse, type Visitor } from '../mcp/principal.ts'
import type { McpEndpoint } from '../mcp/transports/http.ts'
import { type Credential, everywhere } from './auth/credential.ts'

/** Opens the MCP endpoint; `visitor` is the principal of callers whose key says no more. */
export type OpenMcp = { readonly visitor: Visitor; open(): Promise<McpEndpoint> }

/** The MCP endpoint, opened by its first request: most servers never get one. */
export type McpRoom = {
  readonly visitor: Visitor
  endpoint(): Promise<McpEndpoint>
  /** Ends open-ended responses before shutdown. */
  drain(): void
  close(): Promise<void>
}

/** Opens the endpoint on first use; a failed attempt is repeated with the next request. */
export function mcpRoom({ visitor, open }: OpenMcp): McpRoom {
  let opened: Promise<McpEndpoint> | undefined
  const endpoint = (): Promise<McpEndpoint> => {
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
    close: async () => (await opened?.catch(() => undefined))?.close(),
  }
}

/** The principal of a caller. Without keys everybody is the default one, without a trusted name. */
export function visitorFor(credential: Credential | undefined, usual: Visitor): Visitor {
  if (credential === undefined) return usual
  const { name, id, scopes } = credential
  const own = scopes.includes(everywhere) ? usual.only : scopes.filter((scope) => mayUse(usual, scope))
  const home = own === undefined || own.includes(usual.home) ? usual.home : own[0]
  // A key without any workspace keeps its name and finds nothing.
  return { name: name === '' ? id : name, home: home ?? usual.home, only: own }
}
