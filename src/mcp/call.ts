import {
  type CallToolResult,
  CLIENT_INFO_META_KEY,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { isObject } from '../domain/checks.ts'
import { MemoryError } from '../domain/error.ts'
import { failureOf, isFault } from './failure.ts'
import { workspaceFor } from './scope.ts'
import type { Mcp } from './server.ts'
import type { Call, Level, Tool } from './tool.ts'

/** Runs a tool for a client, and makes what it tells or throws an answer. */
export async function called(
  mcp: Mcp,
  tool: Tool,
  { workspace, ...input }: Record<string, unknown>,
  context: ServerContext,
): Promise<CallToolResult> {
  try {
    const call = callOf(mcp, workspaceIn(workspace, input.workspaceId), context)
    const { text, structured } = await mcp.underway.run(() => tool.run(input, call))
    return { content: [{ type: 'text', text }], structuredContent: structured }
  } catch (error) {
    // Nobody waits for the answer to what was cancelled.
    if (context.mcpReq.signal.aborted) throw error
    if (isFault(error)) mcp.onFault(error)
    const { code, message } = failureOf(error)
    // Older clients hold structured content against the output schema even in an error.
    return { isError: true, content: [{ type: 'text', text: message }], _meta: { 'threadkeep/error': { code } } }
  }
}

/** The workspace a call names. Some tools have another name for it, by which they are documented. */
function workspaceIn(workspace: unknown, workspaceId: unknown): string | undefined {
  if (workspace === undefined || workspaceId === undefined || workspace === workspaceId)
    return (workspace ?? workspaceId) as string | undefined
  throw new MemoryError(
    'bad-option',
    'workspace and workspaceId name two workspaces, and a call is about one. Give one of them.',
    { param: 'workspaceId' },
  )
}

/** A call in the workspace it is about: the one it names, else the visitor's own. */
export function callOf(mcp: Mcp, workspace: string | undefined, context: ServerContext): Call {
  const { mcpReq } = context
  return {
    desk: mcp.desk,
    workspace: workspaceFor(mcp.visitor, workspace),
    client: mcp.visitor.name ?? nameOf(mcp.server, context),
    signal: mcpReq.signal,
    progress: progressOf(context),
    log: (level: Level, message: string) => void mcpReq.log(level, message, 'threadkeep').catch(() => undefined),
  }
}

/** Tells how far a call has come, if its client wants to know; a number that has not grown is not told. */
function progressOf({ mcpReq }: ServerContext): Call['progress'] {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return () => undefined
  let told = Number.NEGATIVE_INFINITY
  return (progress, total, message) => {
    if (progress <= told || mcpReq.signal.aborted) return
    told = progress
    const params = { progressToken, progress, ...(total === undefined ? {} : { total }), message }
    void mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined)
  }
}

/** What a client calls itself: with each request, or once at its beginning. */
function nameOf(server: McpServer, { mcpReq }: ServerContext): string {
  const info = (mcpReq.envelope as Readonly<Record<string, unknown>> | undefined)?.[CLIENT_INFO_META_KEY]
  const name = isObject(info) ? info.name : server.server.getClientVersion()?.name
  return typeof name === 'string' && name !== '' ? name.slice(0, 100) : 'unknown'
}
