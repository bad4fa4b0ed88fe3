import type { Millis } from '../../domain/entry.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Work } from '../../domain/work.ts'
import { deleteIndexed, deleteNodes } from '../../stores/sqlite/graph.ts'
import { columns, parseEntity, parseRelationshipRow, type Row, type RowWithSession } from '../rows.ts'
import { containsAny, rowsContaining } from '../rowsContaining.ts'
import type { GraphArchive, GraphNode, GraphWrite, Origin, StoredGraphRow, StoredRow } from '../types.ts'
import type { GraphDatabase } from './database.ts'
import {
  insertLink,
  insertNode,
  insertObservation,
  rowWork,
  selectLinksInSteps,
  selectNodesInSteps,
  selectObservations,
  updateNodeType,
} from './nodeRows.ts'
import type { GraphWorkspace, GraphWorkspaces } from './workspaces.ts'
import { putEntity, putRelationship } from './write.ts'

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
    const rowIds = rowsContaining(yield* this.selectAll(workspace), texts)
    const { entity, relationship, node, link } = rowIds
    const observation = rowIds.nodeOfObservation.flatMap((nodeRowId) =>
      selectObservations(this.database, workspace, nodeRowId)
        .filter(({ row }) => containsAny(row, texts))
        .map(({ rowId }) => rowId),
    )
    const { database } = this.database
    for (const rowId of node) this.database.run(`DELETE FROM graph_link WHERE ${linksOfNode}`, rowId)
    deleteIndexed(database, 'graph_observation', hasRowId, JSON.stringify(observation))
    deleteNodes(database, hasRowId, JSON.stringify(node))
    for (const [table, ids] of Object.entries({ entity, relationship, link }))
      this.database.run(`DELETE FROM graph_${table} WHERE ${hasRowId}`, JSON.stringify(ids))
    const deleted = { entity, relationship, node, link, observation }
    return Object.entries(deleted).flatMap(([kind, ids]) => ids.map((rowId) => `${kind} ${rowId}`))
  }

  private *decideAndPut(
    workspace: GraphWorkspace,
    decide: (stored: readonly StoredGraphRow[]) => readonly GraphWrite[],
  ): Work<number> {
    return yield* this.putAll(workspace, decide(yield* this.selectAll(workspace)))
  }

  private *selectAll(workspace: GraphWorkspace): Work<readonly StoredGraphRow[]> {
    const { database } = this
    const origins = this.selectOrigins(workspace)
    const entities = database.all<Row>(
      `SELECT ${columns} FROM graph_entity WHERE home = ? ORDER BY place`,
      workspace.id,
    )
    const relationships = database.all<RowWithSession>(
      `SELECT ${columns}, session FROM graph_relationship WHERE home = ? ORDER BY place`,
      workspace.id,
    )
    const imports = database.all<[number, Millis]>('SELECT home, at FROM graph_adopted WHERE home = ?', workspace.id)
    yield (entities.length + relationships.length) * rowWork
    const all = { where: 'home = ?', values: [workspace.id] }
    const nodes = yield* selectNodesInSteps(database, workspace, all)
    const links = yield* selectLinksInSteps(database, workspace, all)
    return [
      ...entities.map(
        (row): StoredGraphRow => ({
          rowId: row[0],
          row: { entity: { ...parseEntity(row, workspace.cipher), origins: origins.get(row[0]) ?? [] } },
        }),
      ),
      ...relationships.map(
        (row): StoredGraphRow => ({
          rowId: row[0],
          row: { relationship: parseRelationshipRow(row, workspace.cipher) },
        }),
      ),
      ...nodes.map(({ rowId, row }): StoredGraphRow => ({ rowId, row: { node: row } })),
      ...links.map(({ rowId, row }): StoredGraphRow => ({ rowId, row: { link: row } })),
      ...imports.map(([workspaceId, at]): StoredGraphRow => ({ rowId: workspaceId, row: { adopted: at } })),
    ]
  }

  private selectOrigins({ id }: GraphWorkspace): ReadonlyMap<number, readonly Origin[]> {
    const rows = this.database.all<[number, string, string]>(
      'SELECT entity, session, message FROM graph_origin WHERE entity IN (SELECT place FROM graph_entity WHERE home = ?) ORDER BY entity, session, message',
      id,
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

const hasRowId = 'place IN (SELECT value FROM json_each(?))'
/** Links with the node, given by its row id, at an end. */
const linksOfNode = `home = (SELECT home FROM graph_node WHERE place = ?1)
  AND place IN (SELECT l.place FROM graph_link l JOIN graph_node n ON n.home = l.home AND n.ref IN (l.source, l.target) WHERE n.place = ?1)`
