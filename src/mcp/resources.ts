import {
  type ListResourcesResult,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceNotFoundError,
  ResourceTemplate,
} from '@modelcontextprotocol/server'
import { MemoryError } from '../domain/error.ts'
import { parseKey } from '../domain/key.ts'
import { idsLike, workspacesLike } from './complete.ts'
import { answering } from './failure.ts'
import { workspaceFor } from './scope.ts'
import type { Mcp } from './server.ts'
import { graphUri, sessionsUri, sessionUri, transcriptUri } from './uri.ts'

const mimeType = 'application/json'
/** So many sessions stand on a page of the list. */
const perPage = 50

type Reading = (mcp: Mcp, workspace: string, id: string) => Promise<unknown>
type Kind = {
  readonly name: string
  readonly template: string
  readonly title: string
  readonly description: string
  readonly read: Reading
}

const kinds: readonly Kind[] = [
  {
    name: 'sessions',
    template: 'threadkeep://sessions/{workspace}',
    title: 'Sessions of a workspace',
    description: 'The newest saved sessions of a workspace, the one saved last first.',
    read: ({ desk }, workspace) => desk.handoff.list(workspace, { limit: perPage }),
  },
  {
    name: 'session',
    template: 'threadkeep://sessions/{workspace}/{id}',
    title: 'A session',
    description: 'What is known about a saved session: its summary, size, files and the sessions it goes on from.',
    read: ({ desk }, workspace, id) => desk.handoff.get(workspace, id),
  },
  {
    name: 'transcript',
    template: 'threadkeep://sessions/{workspace}/{id}/transcript',
    title: 'The transcript of a session',
    description: 'Everything that was said in a session, in order.',
    read: transcriptOf,
  },
  {
    name: 'receipts',
    template: 'threadkeep://sessions/{workspace}/{id}/receipts',
    title: 'The receipts of a session',
    description: 'Which entries were shown to a model and why, and what that cost: ids and numbers, no text.',
    read: async ({ desk, receipts }, workspace, id) => {
      const { sessionId } = await desk.handoff.get(workspace, id)
      return { session: sessionId, receipts: await receipts(parseKey(`${workspace}:${sessionId}`)) }
    },
  },
]

/** What can be read: the graph of the nine tools, and what there is of sessions. */
export function addResources(mcp: Mcp): void {
  const { server, desk, visitor } = mcp
  const graph = {
    title: 'Knowledge Graph',
    description: 'The full knowledge graph with all entities and relations',
    mimeType,
  }
  server.registerResource('knowledge-graph', graphUri, graph, (uri) =>
    reading(mcp, uri, async () => desk.graph.nodes.readGraph(workspaceFor(visitor, undefined))),
  )
  for (const { name, template, title, description, read } of kinds) {
    const complete = {
      workspace: (begun: string) => workspacesLike(mcp, begun),
      id: (begun: string, about?: { readonly arguments?: Readonly<Record<string, string>> }) =>
        idsLike(mcp, about?.arguments?.workspace, begun),
    }
    server.registerResource(
      name,
      new ResourceTemplate(template, { list: undefined, complete }),
      { title, description, mimeType },
      (uri, { workspace, id }) =>
        reading(mcp, uri, async () => read(mcp, workspaceFor(visitor, String(workspace)), String(id ?? ''))),
    )
  }
  server.server.setRequestHandler('resources/list', ({ params }) =>
    answering(mcp.onFault, () => page(mcp, params?.cursor)),
  )
}

/** Reads as JSON; what is not there, what is not the asker's and what cannot be a name are all the same. */
function reading({ onFault }: Mcp, uri: URL, read: () => Promise<unknown>): Promise<ReadResourceResult> {
  const found = async (): Promise<unknown> => {
    try {
      return await read()
    } catch (error) {
      const isNowhere = error instanceof MemoryError && (error.code === 'bad-option' || error.code === 'bad-key')
      throw isNowhere ? new ResourceNotFoundError(uri.href) : error
    }
  }
  return answering(onFault, async () => ({
    contents: [{ uri: uri.href, mimeType, text: JSON.stringify(await found(), null, 2) }],
  }))
}

async function transcriptOf({ desk }: Mcp, workspace: string, id: string): Promise<unknown> {
  const messages = await desk.handoff.transcript(workspace, id)
  return {
    session: id,
    messages: messages.map(({ id: message, role, content, at, name, calls, answers }) => ({
      id: message,
      at: new Date(at).toISOString(),
      role,
      content,
      ...(name !== undefined && { name }),
      ...(calls && { calls }),
      ...(answers !== undefined && { answers }),
    })),
  }
}

/** A page of what there is: first what is always there, then the sessions of the visitor's own workspaces with their transcripts. */
async function page({ desk, visitor }: Mcp, cursor: string | undefined): Promise<ListResourcesResult> {
  const workspaces = visitor.only ?? [visitor.home]
  if (workspaces.length === 0) return { resources: [] }
  const { place, offset } = placeIn(cursor, workspaces.length)
  const workspace = workspaces[place] as string
  const { sessions, total } = await desk.handoff.list(workspace, { limit: perPage, offset })
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
  const always = workspaces.map((name) => ({
    uri: sessionsUri(name),
    name: `sessions-${name}`,
    title: `Sessions of ${name}`,
    mimeType,
  }))
  const graph = { uri: graphUri, name: 'knowledge-graph', title: 'Knowledge Graph', mimeType }
  const next =
    offset + perPage < total
      ? cursorOf(place, offset + perPage)
      : place + 1 < workspaces.length
        ? cursorOf(place + 1, 0)
        : undefined
  return {
    resources: [...(cursor === undefined ? [graph, ...always] : []), ...listed],
    ...(next === undefined ? {} : { nextCursor: next }),
  }
}

const cursorOf = (place: number, offset: number): string => Buffer.from(`${place}.${offset}`).toString('base64url')

/** Where a cursor points: which of the workspaces, and after how many sessions. */
function placeIn(cursor: string | undefined, workspaces: number): { readonly place: number; readonly offset: number } {
  if (cursor === undefined) return { place: 0, offset: 0 }
  const [, place, offset] =
    /^(\d{1,4})\.(\d{1,9})$/.exec(Buffer.from(cursor.slice(0, 40), 'base64url').toString('latin1')) ?? []
  if (place === undefined || Number(place) >= workspaces)
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      'This cursor is not one of this list. Begin again without one.',
    )
  return { place: Number(place), offset: Number(offset) }
}
