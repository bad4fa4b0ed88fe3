import { graphKey, type Scope } from '../../domain/key.ts'
import type { GraphRow } from '../../graph/types.ts'
import { internalsOf } from '../../memory.ts'
import { type Handlers, sendJson } from '../http/requestContext.ts'
import type { ServerContext } from '../serverContext.ts'
import { scopeHandler } from './access.ts'

/** Nodes and links of a response. */
const maxGraphNodes = 2_000

type NodeView = {
  readonly id: string
  readonly type: string
  readonly properties: unknown
  /** Messages that the node comes from. */
  readonly sources: readonly { readonly session: string; readonly message: string }[]
}
type LinkView = { readonly from: string; readonly to: string; readonly type: string }

/** The knowledge graph of a tenant. */
export const graphRoutes: Handlers = {
  'GET /api/scopes/{scope}/graph': scopeHandler([], async ({ server, client }, scope) => {
    const rows = await readGraph(server, scope)
    const nodes = rows.flatMap(toNode)
    const links = rows.flatMap(toLink)
    sendJson(client.response, 200, {
      nodes: nodes.slice(0, maxGraphNodes),
      links: links.slice(0, maxGraphNodes * 2),
      total: nodes.length,
    })
  }),
}

async function readGraph(server: ServerContext, scope: Scope): Promise<readonly GraphRow[]> {
  const { store } = internalsOf(server.memories.scopes)
  const { openStoreGraph } = await import('../../graph/graph.ts')
  // A tenant without a graph must not get one by reading it.
  if ((await store.readHead(graphKey(scope), 0)).revision === 0) return []
  const graph = await openStoreGraph(store)
  try {
    return ((await graph?.archive.readAll(scope)) ?? []).map(({ row }) => row)
  } finally {
    await graph?.close()
  }
}

function toNode(row: GraphRow): readonly NodeView[] {
  if ('node' in row) {
    const { name, entityType, observations } = row.node
    return [{ id: name, type: entityType, properties: { observations }, sources: [] }]
  }
  if (!('entity' in row)) return []
  const { id, type, properties, origins } = row.entity
  const sources = origins.filter(([, message]) => message !== '').map(([session, message]) => ({ session, message }))
  return [{ id, type, properties, sources }]
}

function toLink(row: GraphRow): readonly LinkView[] {
  if ('link' in row) return [{ from: row.link.from, to: row.link.to, type: row.link.relationType }]
  if (!('relationship' in row)) return []
  const { from, to, type } = row.relationship
  return [{ from, to, type }]
}
