import type { Millis } from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Work } from '../../domain/work.ts'
import {
  deleteByEndsInSteps,
  deleteNodesInSteps,
  deleteRowsInSteps,
  deleteWhereInSteps,
  hasRowId,
  inHome,
} from '../../stores/sqlite/graph.ts'
import { commitPoint } from '../../stores/sqlite/wipe/mergeIndexes.ts'
import { parseEntity, parseRelationshipRow } from '../rows.ts'
import { containsAny, type RowsContaining, rowsContainingInSteps } from '../rowsContaining.ts'
import type { GraphArchive, GraphNode, GraphWrite, Origin, StoredGraphRow, StoredRow } from '../types.ts'
import { parseWorkspace } from '../workspace.ts'
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
import { chunks, filterRowIds, lookupWork, type RowTable, selectRowIds } from './rowIds.ts'
import type { GraphWorkspace, GraphWorkspaces } from './workspaces.ts'
import { putEntity, putRelationship } from './write.ts'

type EntityCells = readonly [rowId: number, digest: string, created: Millis, updated: Millis, body: string]
type RelationshipCells = readonly [
  ...[rowId: number, digest: string, created: Millis, updated: Millis],
  ...[session: string | null, body: string],
]

/** Maps items and adds them to a list. Interruptible work. */
function* addInSteps<T, U>(list: U[], items: readonly T[], map: (item: T, index: number) => U): Work<void> {
  for (const [index, item] of items.entries()) {
    list.push(map(item, index))
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

  update(
    workspaceName: string,
    decide: (stored: readonly StoredGraphRow[]) => Work<readonly GraphWrite[]>,
  ): Promise<number> {
    return this.database.writeInSteps(() =>
      this.decideAndPut(this.workspaces.findOrCreate(workspaceName, this.clock()), decide),
    )
  }

  /** Finds the rows that contain one of the texts, ignoring case. */
  findContaining(workspaceName: string, texts: readonly string[]): Promise<RowsContaining> {
    const { workspaces } = this
    const selectAll = (workspace: GraphWorkspace) => this.selectAll(workspace)
    return this.database.readInSteps(function* () {
      const workspace = workspaces.find(workspaceName)
      return yield* rowsContainingInSteps(workspace === undefined ? [] : yield* selectAll(workspace), texts)
    })
  }

  /**
   * Deletes those of the rows that still contain one of the texts: others may have written since they were found. Call
   * it inside `eraseInSteps`. Returns the deleted rows as kind and number.
   */
  *deleteContaining(workspaceName: string, texts: readonly string[], found: RowsContaining): Work<readonly string[]> {
    const deleted: string[] = []
    // Relationships and links go first: those deleted along with their ends would not be returned.
    for (const [table, rowIds] of [
      ['graph_relationship', found.relationship],
      ['graph_link', found.link],
      ['graph_entity', found.entity],
      ['graph_node', [...found.node, ...found.nodeOfObservation]],
    ] as const)
      for (const chunk of chunks(rowIds)) {
        const workspace = this.workspaces.find(workspaceName)
        if (workspace === undefined) return deleted
        const ofWorkspace = yield* filterRowIds(this.database, table, workspace, chunk)
        const rows = yield* this.selectRows(workspace, table, ofWorkspace)
        const inChunk = { workspace, found: yield* rowsContainingInSteps(rows, texts) }
        for (const row of yield* this.deleteFound(workspaceName, texts, inChunk)) deleted.push(row)
        yield commitPoint
      }
    return deleted
  }

  /**
   * Deletes rows of one table. Digests are read before the first commit, after which others can have got the row ids.
   */
  private *deleteFound(
    workspaceName: string,
    texts: readonly string[],
    { workspace, found }: { readonly workspace: GraphWorkspace; readonly found: RowsContaining },
  ): Work<readonly string[]> {
    const { entity, relationship, node, link, nodeOfObservation } = found
    const { database } = this.database
    const key = parseWorkspace(workspaceName)
    const observation = yield* findObservationsInSteps(this.database, workspace, nodeOfObservation, (text) =>
      containsAny(text, texts),
    )
    const observationChunks = yield* this.identifyInSteps('graph_observation', observation)
    yield* deleteRowsInSteps(database, 'graph_relationship', relationship)
    yield* deleteRowsInSteps(database, 'graph_link', link)
    if (entity.length > 0) yield* this.deleteEntities(key, entity)
    if (node.length > 0) yield* this.deleteNodes(key, node)
    for (const rows of observationChunks)
      yield* deleteWhereInSteps(database, 'graph_observation', isObservation, ...valuesOf(key, rows))
    const deleted: string[] = []
    // Not the row ids, which count the rows of other tenants, too.
    for (const [kind, ids] of Object.entries({ entity, relationship, node, link, observation }))
      yield* addInSteps(deleted, ids, (_, index) => `${kind} ${index + 1}`)
    return deleted
  }

  /** Deletes entities and the relationships with one of them at an end. */
  private *deleteEntities(key: Key, rowIds: readonly number[]): Work<void> {
    const { database } = this.database
    for (const rows of yield* this.identifyInSteps('graph_entity', rowIds)) {
      yield* deleteByEndsInSteps(database, 'graph_relationship', key, rows.digests)
      yield* deleteWhereInSteps(database, 'graph_entity', isRow, ...valuesOf(key, rows))
    }
  }

  /** Deletes nodes and the links with one of them at an end. */
  private *deleteNodes(key: Key, rowIds: readonly number[]): Work<void> {
    const { database } = this.database
    for (const rows of yield* this.identifyInSteps('graph_node', rowIds)) {
      yield* deleteByEndsInSteps(database, 'graph_link', key, rows.digests)
      yield* deleteNodesInSteps(database, isRow, ...valuesOf(key, rows))
    }
  }

  private *identifyInSteps(
    table: 'graph_entity' | 'graph_node' | 'graph_observation',
    rowIds: readonly number[],
  ): Work<readonly IdentifiedRows[]> {
    const identified: IdentifiedRows[] = []
    const sql = `SELECT ref FROM ${table} WHERE ${hasRowId}`
    for (const chunk of chunks(rowIds)) {
      const ids = JSON.stringify(chunk)
      identified.push({ ids, digests: this.database.all<[string]>(sql, ids).map(([digest]) => digest) })
      yield chunk.length * lookupWork
    }
    return identified
  }

  private *decideAndPut(
    workspace: GraphWorkspace,
    decide: (stored: readonly StoredGraphRow[]) => Work<readonly GraphWrite[]>,
  ): Work<number> {
    return yield* this.putAll(workspace, yield* decide(yield* this.selectAll(workspace)))
  }

  private *selectAll(workspace: GraphWorkspace): Work<readonly StoredGraphRow[]> {
    const { database } = this
    const selected: StoredGraphRow[] = []
    for (const table of ['graph_entity', 'graph_relationship', 'graph_node', 'graph_link'] as const) {
      const rowIds = yield* selectRowIds(database, table, workspace)
      yield* addInSteps(selected, yield* this.selectRows(workspace, table, rowIds), (row) => row)
    }
    const imports = database.all<[number, Millis]>('SELECT home, at FROM graph_adopted WHERE home = ?', workspace.id)
    for (const [workspaceId, at] of imports) selected.push({ rowId: workspaceId, row: { adopted: at } })
    return selected
  }

  private *selectRows(
    workspace: GraphWorkspace,
    table: RowTable,
    rowIds: readonly number[],
  ): Work<readonly StoredGraphRow[]> {
    if (table === 'graph_entity') return yield* this.selectEntities(workspace, rowIds)
    if (table === 'graph_relationship') return yield* this.selectRelationships(workspace, rowIds)
    const selected: StoredGraphRow[] = []
    if (table === 'graph_link') {
      const links = yield* selectLinksInSteps(this.database, workspace, { rowIds })
      yield* addInSteps(selected, links, ({ rowId, row }) => ({ rowId, row: { link: row } }))
    } else {
      const nodes = yield* selectNodesInSteps(this.database, workspace, { rowIds })
      yield* addInSteps(selected, nodes, ({ rowId, row }) => ({ rowId, row: { node: row } }))
    }
    return selected
  }

  private *selectEntities(workspace: GraphWorkspace, rowIds: readonly number[]): Work<readonly StoredGraphRow[]> {
    const found: StoredGraphRow[] = []
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

  private *selectRelationships(workspace: GraphWorkspace, rowIds: readonly number[]): Work<readonly StoredGraphRow[]> {
    const found: StoredGraphRow[] = []
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

/** Row ids as a JSON list, with the digests of the rows: after a commit, others can have got the ids. */
type IdentifiedRows = { readonly ids: string; readonly digests: readonly string[] }
const hasDigest = '+ref IN (SELECT value FROM json_each(?))'
const isRow = `${inHome} AND ${hasRowId} AND ${hasDigest}`
const isObservation = `EXISTS (SELECT 1 FROM graph_node WHERE graph_node.place = node AND ${inHome}) AND ${hasRowId} AND ${hasDigest}`
const valuesOf = ({ scope, id }: Key, { ids, digests }: IdentifiedRows) =>
  [scope, id, ids, JSON.stringify(digests)] as const
