import { runInSlices, type Work } from '../../domain/work.ts'
import { yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import { serializeNode } from '../nodeRows.ts'
import { parseEntity, parseRelationshipRow } from '../rows.ts'
import { containsAny, rowsContainingInSteps } from '../rowsContaining.ts'
import type {
  EntityRow,
  GraphArchive,
  GraphLink,
  GraphNode,
  GraphWrite,
  RelationshipRow,
  StoredGraphRow,
  StoredRow,
} from '../types.ts'
import { insertLinks, insertNodes, insertObservations, NodeCollector } from './nodeRows.ts'
import { insertAdopted } from './nodes.ts'
import type { StoredCells, WorkspaceRows } from './workspaceRows.ts'
import type { PostgresWorkspaces } from './workspaces.ts'
import { putEntities, putRelationships, type RowWrite } from './write.ts'

/** Whole graph of a workspace in PostgreSQL, for export and import. */
export class PostgresGraphArchive implements GraphArchive {
  private readonly workspaces: PostgresWorkspaces

  constructor(workspaces: PostgresWorkspaces) {
    this.workspaces = workspaces
  }

  readAll(workspace: string): Promise<readonly StoredGraphRow[]> {
    return this.workspaces.read(workspace, [], selectAll)
  }

  update(
    workspace: string,
    decide: (stored: readonly StoredGraphRow[]) => Work<readonly GraphWrite[]>,
  ): Promise<number> {
    return this.workspaces.write(workspace, async (rows) => {
      const writes = await runInSlices(decide(await selectAll(rows)), yieldWhenLong)
      await putAll(rows, writes)
      return writes.length
    })
  }
}

/** Deletes the rows that contain one of the texts, ignoring case. Returns them as kind and number. */
export async function deleteContaining(rows: WorkspaceRows, texts: readonly string[]): Promise<readonly string[]> {
  const { nodeOfObservation, ...found } = await runInSlices(
    rowsContainingInSteps(await selectAll(rows), texts),
    yieldWhenLong,
  )
  const { entity, relationship, node, link } = found
  const observation = await findObservations(rows, nodeOfObservation, texts)
  const refs = (await rows.selectKeys('place', node, 'node')).map(([, ref]) => ref)
  await rows.deleteEntities(entity)
  await rows.deleteNodes(node)
  await rows.deleteRows([...relationship, ...link, ...observation, ...(await rows.findWithEnd(refs, 'link'))])
  return Object.entries({ entity, relationship, node, link, observation }).flatMap(([kind, places]) =>
    // Not the places, which count the rows of other tenants, too.
    places.map((_, index) => `${kind} ${index + 1}`),
  )
}

/** Returns the places of the observations of nodes that contain one of the texts. */
async function findObservations(
  rows: WorkspaceRows,
  nodes: readonly number[],
  texts: readonly string[],
): Promise<readonly number[]> {
  const refs = new Map((await rows.selectKeys('place', nodes, 'node')).map(([place, ref]) => [place, ref]))
  const contains = ([, , body, , , , node]: StoredCells): boolean =>
    containsAny(JSON.parse(rows.cipher.decrypt(body, refs.get(node ?? 0) ?? '')) as string, texts)
  return (await rows.selectBy('node', nodes, 'observation')).filter(contains).map(([place]) => place)
}

/** Reads all rows: entities, relationships, nodes, links and the import, each in insertion order. */
async function selectAll(rows: WorkspaceRows): Promise<readonly StoredGraphRow[]> {
  const origins = await rows.selectOrigins()
  const nodes = new NodeCollector(rows.cipher)
  const entities: StoredGraphRow[] = []
  const relationships: StoredGraphRow[] = []
  const imports: StoredGraphRow[] = []
  for await (const page of rows.scan('true')) {
    nodes.add(page)
    for (const cells of page) {
      const [rowId, ref, body, created, updated, session, , kind] = cells
      const row = [rowId, ref, body, created, updated] as const
      if (kind === 'entity')
        entities.push({
          rowId,
          row: { entity: { ...parseEntity(row, rows.cipher), origins: origins.get(rowId) ?? [] } },
        })
      if (kind === 'relationship')
        relationships.push({ rowId, row: { relationship: parseRelationshipRow([...row, session], rows.cipher) } })
      if (kind === 'adopted') imports.push({ rowId, row: { adopted: created } })
    }
  }
  return [
    ...entities,
    ...relationships,
    ...nodes.listNodes().map(({ rowId, row }): StoredGraphRow => ({ rowId, row: { node: row } })),
    ...nodes.links.map(({ rowId, row }): StoredGraphRow => ({ rowId, row: { link: row } })),
    ...imports,
  ]
}

async function putAll(rows: WorkspaceRows, writes: readonly GraphWrite[]): Promise<void> {
  const entities: RowWrite<EntityRow>[] = []
  const relationships: RowWrite<RelationshipRow>[] = []
  const newNodes: GraphNode[] = []
  const knownNodes: StoredRow<GraphNode>[] = []
  const links: GraphLink[] = []
  for (const { row, rowId } of writes) {
    if ('entity' in row) entities.push({ row: row.entity, place: rowId })
    else if ('relationship' in row) relationships.push({ row: row.relationship, place: rowId })
    else if ('link' in row) links.push(row.link)
    else if ('adopted' in row) {
      await rows.query("DELETE FROM tk.graph_row WHERE scope = $1 AND kind = 'adopted'")
      await insertAdopted(rows, row.adopted)
    } else if (rowId === undefined) newNodes.push(row.node)
    else knownNodes.push({ rowId, row: row.node })
  }
  await putEntities(rows, entities)
  await putRelationships(rows, relationships)
  await insertNodes(rows, newNodes)
  await rows.update(
    knownNodes.map(({ rowId, row }) => ({ place: rowId, kind: 'node', ...serializeNode(rows.cipher, row) })),
  )
  await insertObservations(
    rows,
    knownNodes.map(({ rowId, row }) => ({ place: rowId, name: row.name, texts: row.observations })),
  )
  await insertLinks(rows, links)
}
