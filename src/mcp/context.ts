import type { McpServer } from '@modelcontextprotocol/server'
import { isInternalKey, type Key } from '../domain/key.ts'
import { internalsOf } from '../memory.ts'
import { canUseWorkspace, type Principal, resolveWorkspace } from './principal.ts'
import type { InFlightCalls } from './services.ts'
import type { RegisteredTool } from './tools/registry.ts'
import type { ToolContext } from './tools/tool.ts'

export type McpServerOptions = {
  readonly principal: Principal
  readonly inFlightCalls: InFlightCalls
  /** Lists the receipts of a session, newest first. */
  readonly listReceipts: (key: Key) => Promise<readonly unknown[]>
  /** Called with errors whose details are hidden from the client. */
  readonly onError: (error: unknown) => void
  /** All tools by default. */
  readonly tools?: readonly RegisteredTool[]
  /** True if the connection can send change notifications. */
  readonly supportsSubscriptions: boolean
}

/** Server of one principal with its dependencies. */
export type McpContext = McpServerOptions & { readonly toolContext: ToolContext; readonly server: McpServer }

/** Sessions that are read for completions. */
const maxScannedSessions = 1_000

/** Completes the name of a workspace the principal may use. */
export function completeWorkspace({ toolContext, principal }: McpContext, prefix: string): Promise<string[]> {
  return emptyOnError(async () => {
    const readWorkspaces = async () =>
      (await internalsOf(toolContext.memory).sessions.list({ limit: maxScannedSessions }))
        .filter(({ key }) => !isInternalKey(key))
        .map(({ key }) => key.scope)
    const known = [principal.defaultWorkspace, ...(principal.allowedWorkspaces ?? (await readWorkspaces()))]
    return [...new Set(known)].filter((name) => name.startsWith(prefix) && canUseWorkspace(principal, name)).sort()
  })
}

/** Completes the id of a session, most recently saved first. */
export function completeSessionId(
  { toolContext, principal }: McpContext,
  workspace: string | undefined,
  prefix: string,
): Promise<string[]> {
  return emptyOnError(async () => {
    const { sessions } = await toolContext.handoff.list(resolveWorkspace(principal, workspace), {
      limit: maxScannedSessions,
    })
    return sessions.map(({ sessionId }) => sessionId).filter((id) => id.startsWith(prefix))
  })
}

/** A completion while typing must not fail. */
const emptyOnError = (find: () => Promise<string[]>): Promise<string[]> => find().catch(() => [])
