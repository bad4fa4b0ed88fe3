import {
  type CallToolResult,
  CLIENT_INFO_META_KEY,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { isObject, MemoryError } from '../../domain/error.ts'
import { yieldToEventLoop } from '../../stores/yieldToEventLoop.ts'
import type { McpContext } from '../context.ts'
import { isServerError, toClientError } from '../errors.ts'
import { resolveWorkspace } from '../principal.ts'
import type { LogLevel, Tool, ToolInvocation } from './tool.ts'

/** Characters of a result that is sent in the turn of the event loop in which it was made. */
const maxShortText = 65_536

/** Runs a tool and converts its result or error to an MCP result. */
export async function callTool(
  mcp: McpContext,
  tool: Tool,
  { workspace, ...input }: Record<string, unknown>,
  context: ServerContext,
): Promise<CallToolResult> {
  try {
    const invocation = createInvocation(mcp, requestedWorkspace(workspace, input.workspaceId), context)
    const { text, structured } = await mcp.inFlightCalls.run(() => tool.run(input, invocation))
    // Checking and serializing a long result takes a turn of its own.
    if (text.length > maxShortText) await yieldToEventLoop()
    return { content: [{ type: 'text', text }], structuredContent: structured }
  } catch (error) {
    // The client does not wait for the result of a cancelled call.
    if (context.mcpReq.signal.aborted) throw error
    if (isServerError(error)) mcp.onError(error)
    const { code, message } = toClientError(error)
    // No structured content: older clients validate it against the output schema even for errors.
    return { isError: true, content: [{ type: 'text', text: message }], _meta: { 'threadkeep/error': { code } } }
  }
}

/** Some tools are documented with `workspaceId`, which is an alias of `workspace`. */
function requestedWorkspace(workspace: unknown, workspaceId: unknown): string | undefined {
  if (workspace === undefined || workspaceId === undefined || workspace === workspaceId)
    return (workspace ?? workspaceId) as string | undefined
  throw new MemoryError('bad-option', 'workspace and workspaceId name different workspaces. Give only one of them.', {
    param: 'workspaceId',
  })
}

/** Creates the invocation of a tool in the requested workspace, or in the principal's default workspace. */
export function createInvocation(
  mcp: McpContext,
  workspace: string | undefined,
  context: ServerContext,
): ToolInvocation {
  const { mcpReq } = context
  return {
    context: mcp.toolContext,
    workspace: resolveWorkspace(mcp.principal, workspace),
    client: mcp.principal.name ?? reportedClientName(mcp.server, context),
    signal: mcpReq.signal,
    progress: createProgressReporter(context),
    log: (level: LogLevel, message: string) => void mcpReq.log(level, message, 'threadkeep').catch(() => undefined),
  }
}

/** Sends progress notifications if the client asked for them. MCP requires that the value increases. */
function createProgressReporter({ mcpReq }: ServerContext): ToolInvocation['progress'] {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return () => undefined
  let lastProgress = Number.NEGATIVE_INFINITY
  return (progress, total, message) => {
    if (progress <= lastProgress || mcpReq.signal.aborted) return
    lastProgress = progress
    const params = { progressToken, progress, ...(total === undefined ? {} : { total }), message }
    void mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined)
  }
}

/** Reads the client name from the request (stateless protocol) or from the handshake. */
function reportedClientName(server: McpServer, { mcpReq }: ServerContext): string {
  const info = (mcpReq.envelope as Readonly<Record<string, unknown>> | undefined)?.[CLIENT_INFO_META_KEY]
  const name = isObject(info) ? info.name : server.server.getClientVersion()?.name
  return typeof name === 'string' && name !== '' ? name.slice(0, 100) : 'unknown'
}
