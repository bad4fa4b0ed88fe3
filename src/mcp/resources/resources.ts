import {
  type ListResourcesResult,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceNotFoundError,
  ResourceTemplate,
} from '@modelcontextprotocol/server'
import { MemoryError } from '../../domain/error.ts'
import { parseKey } from '../../domain/key.ts'
import { completeSessionId, completeWorkspace, type McpContext } from '../context.ts'
import { withProtocolErrors } from '../errors.ts'
import { resolveWorkspace } from '../principal.ts'
import { resultLimit } from '../tools/reference.ts'
import { graphUri, sessionsUri, sessionUri, transcriptUri } from './changes.ts'

const mimeType = 'application/json'
const sessionsPerPage = 50

type SessionResource = {
  readonly name: string
  readonly template: string
  readonly title: string
  readonly description: string
  readonly read: (mcp: McpContext, workspace: string, id: string) => Promise<unknown>
}

const sessionResources: readonly SessionResource[] = [
  {
    name: 'sessions',
    template: 'threadkeep://sessions/{workspace}',
    title: 'Sessions of a workspace',
    description: 'The most recently saved sessions of a workspace, newest first.',
    read: ({ toolContext }, workspace) => toolContext.handoff.list(workspace, { limit: sessionsPerPage }),
  },
  {
    name: 'session',
    template: 'threadkeep://sessions/{workspace}/{id}',
    title: 'A session',
    description: 'A saved session: its summary, size, files and the sessions it continues.',
    read: ({ toolContext }, workspace, id) => toolContext.handoff.get(workspace, id),
  },
  {
    name: 'transcript',
    template: 'threadkeep://sessions/{workspace}/{id}/transcript',
    title: 'The transcript of a session',
    description: 'All messages of a session, in order.',
    read: readTranscript,
  },
  {
    name: 'receipts',
    template: 'threadkeep://sessions/{workspace}/{id}/receipts',
    title: 'The receipts of a session',
    description: 'The entries that were shown to a model, why, and their token cost. Ids and numbers only, no text.',
    read: async ({ toolContext, listReceipts }, workspace, id) => {
      const { sessionId } = await toolContext.handoff.get(workspace, id)
      return { session: sessionId, receipts: await listReceipts(parseKey(`${workspace}:${sessionId}`)) }
    },
  },
]

/** Registers the knowledge graph and the session resources. */
export function registerResources(mcp: McpContext): void {
  const { server, toolContext, principal } = mcp
  const graph = {
    title: 'Knowledge Graph',
    description: 'The full knowledge graph with all entities and relations',
    mimeType,
  }
  server.registerResource('knowledge-graph', graphUri, graph, (uri) =>
    readAsJson(mcp, uri, async () =>
      toolContext.graph.nodes.readGraph(resolveWorkspace(principal, undefined), resultLimit),
    ),
  )
  for (const { name, template, title, description, read } of sessionResources) {
    const complete = {
      workspace: (prefix: string) => completeWorkspace(mcp, prefix),
      id: (prefix: string, context?: { readonly arguments?: Readonly<Record<string, string>> }) =>
        completeSessionId(mcp, context?.arguments?.workspace, prefix),
    }
    server.registerResource(
      name,
      new ResourceTemplate(template, { list: undefined, complete }),
      { title, description, mimeType },
      (uri, { workspace, id }) =>
        readAsJson(mcp, uri, async () => read(mcp, resolveWorkspace(principal, String(workspace)), String(id ?? ''))),
    )
  }
  server.server.setRequestHandler('resources/list', ({ params }) =>
    withProtocolErrors(mcp.onError, () => listPage(mcp, params?.cursor)),
  )
}

/** Returns the same error for a missing resource, another principal's resource and an invalid name. */
function readAsJson({ onError }: McpContext, uri: URL, read: () => Promise<unknown>): Promise<ReadResourceResult> {
  const readOrNotFound = async (): Promise<unknown> => {
    try {
      return await read()
    } catch (error) {
      const isNotFound =
        error instanceof MemoryError &&
        (error.code === 'bad-option' || error.code === 'bad-key') &&
        error.param !== 'maxCharacters'
      throw isNotFound ? new ResourceNotFoundError(uri.href) : error
    }
  }
  return withProtocolErrors(onError, async () => ({
    contents: [{ uri: uri.href, mimeType, text: JSON.stringify(await readOrNotFound(), null, 2) }],
  }))
}

async function readTranscript({ toolContext }: McpContext, workspace: string, id: string): Promise<unknown> {
  const messages = await toolContext.handoff.getTranscript(workspace, id)
  return {
    session: id,
    messages: messages.map(({ id: messageId, role, content, at, name, toolCalls, toolCallId }) => ({
      id: messageId,
      at: new Date(at).toISOString(),
      role,
      content,
      ...(name !== undefined && { name }),
      ...(toolCalls && { calls: toolCalls }),
      ...(toolCallId !== undefined && { answers: toolCallId }),
    })),
  }
}

/** Lists the sessions and transcripts of the principal's workspaces; the first page also has the fixed resources. */
async function listPage(
  { toolContext, principal }: McpContext,
  cursor: string | undefined,
): Promise<ListResourcesResult> {
  const workspaces = principal.allowedWorkspaces ?? [principal.defaultWorkspace]
  if (workspaces.length === 0) return { resources: [] }
  const { workspaceIndex, offset } = parseCursor(cursor, workspaces.length)
  const workspace = workspaces[workspaceIndex] as string
  const { sessions, total } = await toolContext.handoff.list(workspace, { limit: sessionsPerPage, offset })
  const listed = sessions.flatMap(({ sessionId, title, summary, savedAt }) => {
    const shared = { mimeType, annotations: { lastModified: savedAt } }
    return [
      {
        ...shared,
        uri: sessionUri(workspace, sessionId),
        name: sessionId,
        title: title || sessionId,
        description: summary.slice(0, 300),
      },
      {
        ...shared,
        uri: transcriptUri(workspace, sessionId),
        name: `${sessionId}-transcript`,
        title: `Transcript: ${title || sessionId}`,
      },
    ]
  })
  const nextOffset = offset + sessionsPerPage
  const nextCursor =
    nextOffset < total
      ? formatCursor(workspaceIndex, nextOffset)
      : workspaceIndex + 1 < workspaces.length
        ? formatCursor(workspaceIndex + 1, 0)
        : undefined
  return {
    resources: [...(cursor === undefined ? fixedResources(workspaces) : []), ...listed],
    ...(nextCursor === undefined ? {} : { nextCursor }),
  }
}

const fixedResources = (workspaces: readonly string[]) => [
  { uri: graphUri, name: 'knowledge-graph', title: 'Knowledge Graph', mimeType },
  ...workspaces.map((name) => ({
    uri: sessionsUri(name),
    name: `sessions-${name}`,
    title: `Sessions of ${name}`,
    mimeType,
  })),
]

/** A cursor is base64url of `workspaceIndex.offset`. */
const formatCursor = (workspaceIndex: number, offset: number): string =>
  Buffer.from(`${workspaceIndex}.${offset}`).toString('base64url')

function parseCursor(
  cursor: string | undefined,
  workspaceCount: number,
): { readonly workspaceIndex: number; readonly offset: number } {
  if (cursor === undefined) return { workspaceIndex: 0, offset: 0 }
  const [, workspaceIndex, offset] =
    /^(\d{1,4})\.(\d{1,9})$/.exec(Buffer.from(cursor.slice(0, 40), 'base64url').toString('latin1')) ?? []
  if (workspaceIndex === undefined || Number(workspaceIndex) >= workspaceCount)
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      'The cursor does not belong to this list. List again without a cursor.',
    )
  return { workspaceIndex: Number(workspaceIndex), offset: Number(offset) }
}
