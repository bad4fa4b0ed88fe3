import type { IncomingMessage } from 'node:http'
import type { McpEndpoint } from '../mcp/http.ts'
import { mayUse, type Visitor } from '../mcp/scope.ts'
import { admit } from './auth/admit.ts'
import { type Credential, everywhere } from './auth/credential.ts'
import { readJson } from './http/body.ts'
import { notFound, type Problem } from './http/httpError.ts'
import type { Handler } from './http/requestContext.ts'
import type { House } from './serverContext.ts'

/** Opens what answers at `/mcp`; `visitor` is whoever's key does not tell more. */
export type OpenMcp = { readonly visitor: Visitor; open(): Promise<McpEndpoint> }

/** What answers at `/mcp`: most servers are never asked there, and open nothing for it. */
export type McpRoom = {
  readonly visitor: Visitor
  endpoint(): Promise<McpEndpoint>
  /** Ends what has no end of its own. */
  drain(): void
  close(): Promise<void>
}

/** Opens when it is first asked for; what could not be opened is tried again. */
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
    drain: () =>
      void opened?.then(
        (mcp) => mcp.drain(),
        () => undefined,
      ),
    close: async () => (await opened?.catch(() => undefined))?.close(),
  }
}

/** Answers at `/mcp`. Which workspaces there are for the asker, their key says. */
export const speakMcp: Handler = async ({ house, request, client, credential }) => {
  if (house.mcp === undefined) throw notFound()
  const body = await readJson(request, house.largest.body)
  const endpoint = await house.mcp.endpoint()
  const isWelcome = (): boolean => credential === undefined || isAdmitted(house, request)
  await endpoint.answer(visitorFor(credential, house.mcp.visitor), request, client.response, body, isWelcome)
}

/** Whether the key of a request that is still being answered is good now. */
function isAdmitted({ credentials, clock }: House, { headers }: IncomingMessage): boolean {
  try {
    return admit(credentials, headers, clock()) !== undefined
  } catch {
    return false
  }
}

/** Who asks: without keys everybody may use whatever is open, and has no name that could be trusted. */
export function visitorFor(credential: Credential | undefined, usual: Visitor): Visitor {
  if (credential === undefined) return usual
  const { name, id, scopes } = credential
  const own = scopes.includes(everywhere) ? usual.only : scopes.filter((scope) => mayUse(usual, scope))
  const home = own === undefined || own.includes(usual.home) ? usual.home : own[0]
  // A key that opens nothing here still has a name, and finds nothing.
  return { name: name === '' ? id : name, home: home ?? usual.home, only: own }
}

/** An error as JSON-RPC tells it; the request it belongs to was not read. */
export function mcpProblem({ code, message }: Problem['error']): unknown {
  const number = code === 'invalid_json' ? -32_700 : code === 'invalid_body' ? -32_600 : -32_000
  return { jsonrpc: '2.0', id: null, error: { code: number, message, data: { code } } }
}
