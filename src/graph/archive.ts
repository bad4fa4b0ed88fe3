import type { Millis } from '../domain/entry.ts'
import type { Clock } from '../domain/ports.ts'
import type { Work } from '../domain/work.ts'
import { deleteIndexed, deleteNodes } from '../stores/sqlite/graph.ts'
import { listJsonTexts } from '../text/json.ts'
import type { GraphDatabase } from './database.ts'
import {
  insertLink,
  insertNode,
  insertObservation,
  rowWork,
  type StoredRow,
  selectLinks,
  selectNodes,
  selectObservations,
  updateNodeType,
} from './nodeRows.ts'
import {
  columns,
  type EntityRow,
  type Origin,
  parseEntity,
  parseRelationship,
  type RelationshipRow,
  type Row,
} from './rows.ts'
import type { GraphLink, GraphNode } from './types.ts'
import type { GraphWorkspace, GraphWorkspaces } from './workspaces.ts'
import { putEntity, putRelationship } from './write.ts'

/** Exported piece of a graph. `adopted` is the time at which a file of the reference memory server was imported. */
export type GraphRow =
  | { readonly entity: EntityRow }
  | { readonly relationship: RelationshipRow }
  | { readonly node: GraphNode }
  | { readonly link: GraphLink }
  | { readonly adopted: Millis }

export type StoredGraphRow = StoredRow<GraphRow>

/**
 * Row to insert or, with a row id, to replace. Replacing a node sets its type and adds the observations to the existing
 * ones.
 */
export type GraphWrite = { readonly row: GraphRow; readonly rowId?: number }

/** Reads and writes the whole graph of a workspace, for export, import and erasure by text. */
export class GraphArchive {
  private readonly database: GraphDatabase
  private readonly workspaces: GraphWorkspaces
  private readonly clock: Clock

  constructor(database: GraphDatabase, workspaces: GraphWorkspaces, clock: Clock) {
    this.database = database
    this.workspaces = workspaces
    this.clock = clock
  }

  /** Returns a consistent snapshot, each kind of row in insertion order. */
  readAll(workspaceName: string): Promise<readonly StoredGraphRow[]> {
    return this.database.read(() => {
      const workspace = this.workspaces.find(workspaceName)
      return workspace === undefined ? [] : this.selectAll(workspace)
    })
  }

  /**
   * Passes all rows to `decide` and applies the writes it returns, in one transaction. Returns the number of writes.
   */
  update(workspaceName: string, decide: (stored: readonly StoredGraphRow[]) => readonly GraphWrite[]): Promise<number> {
    return this.database.writeInSteps(() => {
      const workspace = this.workspaces.findOrCreate(workspaceName, this.clock())
      return this.putAll(workspace, decide(this.selectAll(workspace)))
    })
  }

  /**
   * Deletes the rows that contain one of the texts, ignoring case. Call it inside a transaction. Returns the deleted
   * rows as kind and row id.
   */
  deleteContaining(workspace: GraphWorkspace, texts: readonly string[]): readonly string[] {
    const rowIds = rowsContaining(this.selectAll(workspace), texts)
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

  private selectAll(workspace: GraphWorkspace): readonly StoredGraphRow[] {
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
    return [
      ...entities.map(
        (row): StoredGraphRow => ({
          rowId: row[0],
          row: { entity: { ...parseEntity(row, workspace.cipher), origins: origins.get(row[0]) ?? [] } },
        }),
      ),
      ...relationships.map(
        (row): StoredGraphRow => ({ rowId: row[0], row: { relationship: parseRelationshipRow(row, workspace) } }),
      ),
      ...selectNodes(database, workspace, 'home = ?', workspace.id).map(
        ({ rowId, row }): StoredGraphRow => ({
          rowId,
          row: { node: row },
        }),
      ),
      ...selectLinks(database, workspace, 'home = ?', workspace.id).map(
        ({ rowId, row }): StoredGraphRow => ({
          rowId,
          row: { link: row },
        }),
      ),
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

type RowWithSession = readonly [...Row, session: string | null]

function parseRelationshipRow(
  [rowId, digest, body, created, updated, session]: RowWithSession,
  { cipher }: GraphWorkspace,
): RelationshipRow {
  const { id: _, ...relationship } = parseRelationship([rowId, digest, body, created, updated], cipher)
  return session === null ? relationship : { ...relationship, session }
}

type MatchedKind = 'entity' | 'relationship' | 'node' | 'link' | 'nodeOfObservation'

/**
 * Finds the row ids of rows that contain one of the texts in a name, type, property or observation. `nodeOfObservation`
 * are nodes of which only observations contain one.
 */
function rowsContaining(
  rows: readonly StoredGraphRow[],
  texts: readonly string[],
): Readonly<Record<MatchedKind, readonly number[]>> {
  const matches = (value: unknown): boolean => listJsonTexts(value).some((text) => containsAny(text, texts))
  const rowIdsOf = (predicate: (row: GraphRow) => boolean): readonly number[] =>
    rows.filter(({ row }) => predicate(row)).map(({ rowId }) => rowId)
  const isMatchingNode = (row: GraphRow): boolean => 'node' in row && matches([row.node.name, row.node.entityType])
  return {
    entity: rowIdsOf((row) => 'entity' in row && matches([row.entity.id, row.entity.type, row.entity.properties])),
    relationship: rowIdsOf(
      (row) =>
        'relationship' in row &&
        matches([row.relationship.from, row.relationship.to, row.relationship.type, row.relationship.properties]),
    ),
    node: rowIdsOf(isMatchingNode),
    link: rowIdsOf((row) => 'link' in row && matches(Object.values(row.link))),
    nodeOfObservation: rowIdsOf((row) => 'node' in row && !isMatchingNode(row) && matches(row.node.observations)),
  }
}

function containsAny(text: string, searched: readonly string[]): boolean {
  const lowerCase = text.toLowerCase()
  return searched.some((one) => lowerCase.includes(one.toLowerCase()))
}
