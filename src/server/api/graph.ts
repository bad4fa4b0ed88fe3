import { graphKey, type Scope } from '../../domain/key.ts'
import { runInSlices, type Work } from '../../domain/work.ts'
import type { GraphRow, StoredGraphRow } from '../../graph/types.ts'
import { internalsOf } from '../../memory.ts'
import { yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import { type Handlers, sendJson } from '../http/requestContext.ts'
import type { ServerContext } from '../serverContext.ts'
import { scopeHandler } from './access.ts'

const maxNodes = 2_000
const maxLinks = 4_000
/** Characters of the nodes and of the links of a response: its JSON text is written in one piece. */
const maxListCharacters = 1_000_000

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
    sendJson(client.response, 200, await runInSlices(viewGraph(rows), yieldWhenLong))
  }),
}

async function readGraph(server: ServerContext, scope: Scope): Promise<readonly StoredGraphRow[]> {
  const { store } = internalsOf(server.memories.scopes)
  const { openStoreGraph } = await import('../../graph/graph.ts')
  // A tenant without a graph must not get one by reading it.
  if ((await store.readHead(graphKey(scope), 0)).revision === 0) return []
  const graph = await openStoreGraph(store)
  try {
    return (await graph?.archive.readAll(scope)) ?? []
  } finally {
    await graph?.close()
  }
}

/** Cost of looking at a row, in characters. */
const rowWork = 10

/** Returns the first nodes and links, without those that would make a list too long, and the number of all nodes. */
function* viewGraph(rows: readonly StoredGraphRow[]): Work<{
  readonly nodes: readonly NodeView[]
  readonly links: readonly LinkView[]
  readonly total: number
}> {
  const nodes = new LimitedList<NodeView>(maxNodes)
  const links = new LimitedList<LinkView>(maxLinks)
  let total = 0
  for (const { row } of rows) {
    yield rowWork
    if ('node' in row || 'entity' in row) {
      total++
      if (!nodes.isFull) yield nodes.add(toNode(row))
    } else if (('link' in row || 'relationship' in row) && !links.isFull) yield links.add(toLink(row))
  }
  return { nodes: nodes.items, links: links.items, total }
}

/** List with a limit of items and of the characters of their JSON texts. */
class LimitedList<T> {
  readonly items: T[] = []
  private readonly maxItems: number
  private characters = 0

  constructor(maxItems: number) {
    this.maxItems = maxItems
  }

  get isFull(): boolean {
    return this.items.length === this.maxItems
  }

  /** Adds an item if it fits. Returns the characters that were measured. */
  add(item: T): number {
    const { length } = JSON.stringify(item)
    if (this.characters + length <= maxListCharacters) {
      this.characters += length
      this.items.push(item)
    }
    return length
  }
}

function toNode(row: Extract<GraphRow, { node: unknown } | { entity: unknown }>): NodeView {
  if ('node' in row) {
    const { name, entityType, observations } = row.node
    return { id: name, type: entityType, properties: { observations }, sources: [] }
  }
  const { id, type, properties, origins } = row.entity
  const sources = origins.filter(([, message]) => message !== '').map(([session, message]) => ({ session, message }))
  return { id, type, properties, sources }
}

function toLink(row: Extract<GraphRow, { link: unknown } | { relationship: unknown }>): LinkView {
  if ('link' in row) return { from: row.link.from, to: row.link.to, type: row.link.relationType }
  const { from, to, type } = row.relationship
  return { from, to, type }
}
