import type { Millis } from '../../domain/entry.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Work } from '../../domain/work.ts'
import { deleteNodesInSteps, deleteRowsInSteps, hasRowId } from '../../stores/sqlite/graph.ts'
import { parseEntity, parseRelationshipRow } from '../rows.ts'
import { containsAny, rowsContainingInSteps } from '../rowsContaining.ts'
import type { GraphArchive, GraphNode, GraphWrite, Origin, StoredGraphRow, StoredRow } from '../types.ts'
import type { GraphDatabase } from './database.ts'
import {
  findObservationsInSteps,
  insertLink,
  insertNode,
  insertObservation,
  readPages,
  rowWork,
  selectLinksInSteps,
  selectNodesInSteps,
  updateNodeType,
} from './nodeRows.ts'
import { chunks, selectLinkIds, selectRowIds } from './rowIds.ts'
import type { GraphWorkspace, GraphWorkspaces } from './workspaces.ts'
import { putEntity, putRelationship } from './write.ts'

type EntityCells = readonly [rowId: number, digest: string, created: Millis, updated: Millis, body: string]
type RelationshipCells = readonly [
  ...[rowId: number, digest: string, created: Millis, updated: Millis],
  ...[session: string | null, body: string],
]

/** Maps items and adds them to a list. Interruptible work. */
function* addInSteps<T, U>(list: U[], items: readonly T[], map: (item: T) => U): Work<void> {
  for (const item of items) {
    list.push(map(item))
    yield 1
  }
}

/** Whole graph of a workspace in SQLite, for export, import and erasure by text. */
export class SqliteGraphArchive implements GraphArchive {
  private readonly database: GraphDatabase
  private readonly workspaces: GraphWorkspaces
  private readonly clock: Clock

  constructor(database: GraphDatabase, workspaces: GraphWorkspaces, clock: Clock) {
    this.database = database
    this.workspaces = workspaces
    this.clock = clock
  }

  readAll(workspaceName: string): Promise<readonly StoredGraphRow[]> {
    const { workspaces } = this
    const selectAll = (workspace: GraphWorkspace) => this.selectAll(workspace)
    return this.database.readInSteps(function* () {
      const workspace = workspaces.find(workspaceName)
      return workspace === undefined ? [] : yield* selectAll(workspace)
    })
  }

  update(workspaceName: string, decide: (stored: readonly StoredGraphRow[]) => readonly GraphWrite[]): Promise<number> {
    return this.database.writeInSteps(() =>
      this.decideAndPut(this.workspaces.findOrCreate(workspaceName, this.clock()), decide),
    )
  }

  /**
   * Deletes the rows that contain one of the texts, ignoring case. Call it inside a transaction. Returns the deleted
   * rows as kind and row id.
   */
  *deleteContaining(workspace: GraphWorkspace, texts: readonly string[]): Work<readonly string[]> {
    const rowIds = yield* rowsContainingInSteps(yield* this.selectAll(workspace), texts)
    const { entity, relationship, node, link } = rowIds
    const observation = yield* findObservationsInSteps(this.database, workspace, rowIds.nodeOfObservation, (text) =>
      containsAny(text, texts),
    )
    const { database } = this.database
    yield* deleteRowsInSteps(database, 'graph_link', yield* this.selectLinksOf(workspace, node))
    yield* deleteRowsInSteps(database, 'graph_observation', observation)
    for (const chunk of chunks(node)) yield* deleteNodesInSteps(database, hasRowId, JSON.stringify(chunk))
    yield* deleteRowsInSteps(database, 'graph_entity', entity)
    yield* deleteRowsInSteps(database, 'graph_relationship', relationship)
    yield* deleteRowsInSteps(database, 'graph_link', link)
    const deleted: string[] = []
    for (const [kind, ids] of Object.entries({ entity, relationship, node, link, observation }))
      yield* addInSteps(deleted, ids, (rowId) => `${kind} ${rowId}`)
    return deleted
  }

  /** Returns the row ids of the links with one of the nodes, given by their row ids, at an end. */
  private *selectLinksOf(workspace: GraphWorkspace, nodes: readonly number[]): Work<readonly number[]> {
    const digests: string[] = []
    for (const chunk of chunks(nodes)) {
      const refs = this.database.all<[string]>(`SELECT ref FROM graph_node WHERE ${hasRowId}`, JSON.stringify(chunk))
      for (const [ref] of refs) digests.push(ref)
      yield chunk.length * rowWork
    }
    return yield* selectLinkIds(this.database, workspace, digests)
  }

  private *decideAndPut(
    workspace: GraphWorkspace,
    decide: (stored: readonly StoredGraphRow[]) => readonly GraphWrite[],
  ): Work<number> {
    return yield* this.putAll(workspace, decide(yield* this.selectAll(workspace)))
  }

  private *selectAll(workspace: GraphWorkspace): Work<readonly StoredGraphRow[]> {
    const { database } = this
    const selected: StoredGraphRow[] = []
    yield* addInSteps(selected, yield* this.selectEntities(workspace), (row) => row)
    yield* addInSteps(selected, yield* this.selectRelationships(workspace), (row) => row)
    const nodeIds = yield* selectRowIds(database, 'graph_node', workspace)
    const nodes = yield* selectNodesInSteps(database, workspace, { rowIds: nodeIds })
    yield* addInSteps(selected, nodes, ({ rowId, row }) => ({ rowId, row: { node: row } }))
    const linkIds = yield* selectRowIds(database, 'graph_link', workspace)
    const links = yield* selectLinksInSteps(database, workspace, { rowIds: linkIds })
    yield* addInSteps(selected, links, ({ rowId, row }) => ({ rowId, row: { link: row } }))
    const imports = database.all<[number, Millis]>('SELECT home, at FROM graph_adopted WHERE home = ?', workspace.id)
    for (const [workspaceId, at] of imports) selected.push({ rowId: workspaceId, row: { adopted: at } })
    return selected
  }

  private *selectEntities(workspace: GraphWorkspace): Work<readonly StoredGraphRow[]> {
    const found: StoredGraphRow[] = []
    const rowIds = yield* selectRowIds(this.database, 'graph_entity', workspace)
    for (const rows of readPages<EntityCells>(
      this.database,
      'graph_entity',
      'place, ref, created, updated, body',
      rowIds,
    )) {
      const origins = this.selectOrigins(rows.map(([rowId]) => rowId))
      for (const [rowId, ref, created, updated, body] of rows) {
        const entity = parseEntity([rowId, ref, body, created, updated], workspace.cipher)
        found.push({ rowId, row: { entity: { ...entity, origins: origins.get(rowId) ?? [] } } })
      }
      yield rows.length * rowWork
    }
    return found
  }

  private *selectRelationships(workspace: GraphWorkspace): Work<readonly StoredGraphRow[]> {
    const found: StoredGraphRow[] = []
    const rowIds = yield* selectRowIds(this.database, 'graph_relationship', workspace)
    const cells = 'place, ref, created, updated, session, body'
    for (const rows of readPages<RelationshipCells>(this.database, 'graph_relationship', cells, rowIds)) {
      for (const [rowId, ref, created, updated, session, body] of rows) {
        const relationship = parseRelationshipRow([rowId, ref, body, created, updated, session], workspace.cipher)
        found.push({ rowId, row: { relationship } })
      }
      yield rows.length * rowWork
    }
    return found
  }

  private selectOrigins(entities: readonly number[]): ReadonlyMap<number, readonly Origin[]> {
    const rows = this.database.all<[number, string, string]>(
      'SELECT entity, session, message FROM graph_origin WHERE entity IN (SELECT value FROM json_each(?)) ORDER BY entity, session, message',
      JSON.stringify(entities),
    )
    const origins = new Map<number, Origin[]>()
    for (const [entity, session, message] of rows) {
      const known = origins.get(entity)
      if (known === undefined) origins.set(entity, [[session, message]])
      else known.push([session, message])
    }
    return origins
  }

  private *putAll(workspace: GraphWorkspace, writes: readonly GraphWrite[]): Work<number> {
    for (const write of writes) {
      this.put(workspace, write)
      yield rowWork
    }
    return writes.length
  }

  private put(workspace: GraphWorkspace, { row, rowId }: GraphWrite): void {
    const { database } = this
    if ('entity' in row) putEntity(database, workspace, row.entity, rowId)
    else if ('relationship' in row) putRelationship(database, workspace, row.relationship, rowId)
    else if ('link' in row) insertLink(database, workspace, row.link)
    else if ('adopted' in row)
      database.run('INSERT OR REPLACE INTO graph_adopted (home, at) VALUES (?, ?)', workspace.id, row.adopted)
    else if (rowId === undefined) insertNode(database, workspace, row.node)
    else {
      const node: StoredRow<GraphNode> = { rowId, row: row.node }
      updateNodeType(database, workspace, node)
      for (const text of row.node.observations) insertObservation(database, workspace, node, text)
    }
  }
}
