import type { Millis } from '../../domain/entry.ts'
import type { Work } from '../../domain/work.ts'
import { deleteByEndsInSteps, deleteRowsInSteps } from '../../stores/sqlite/graph.ts'
import { checkEntity, checkRelationship, createConflictError, planEntity, planRelationship } from '../plan.ts'
import { columns, type Row, relationshipId, serializeEntity, serializeRelationship } from '../rows.ts'
import type { EntityDraft, EntityRow, GraphChange, Origin, RelationshipDraft, RelationshipRow } from '../types.ts'
import { parseWorkspace } from '../workspace.ts'
import type { GraphDatabase } from './database.ts'
import { rowWork } from './nodeRows.ts'
import { chunks, lookupWork } from './rowIds.ts'
import type { GraphWorkspace, GraphWorkspaces } from './workspaces.ts'

type ExpectedEntity = NonNullable<GraphChange['expected']>[number]

/**
 * Applies a change; call it inside `writeInParts`. Only the deletion of relationships, after the change was checked,
 * can be several transactions. Rows with unchanged content are not written.
 */
export function* writeChange(
  database: GraphDatabase,
  workspaces: GraphWorkspaces,
  workspaceName: string,
  change: GraphChange,
  at: Millis,
): Work<{ written: number; unchanged: number; dropped: number }> {
  const { entities = [], relationships = [], deleteEntities = [], deleteRelationships = [], expected = [] } = change
  let workspace = workspaces.findOrCreate(workspaceName, at)
  yield* assertUnchanged(database, workspace, expected)
  yield* checkDrafts(entities, relationships)
  const counts = { written: 0, unchanged: 0, dropped: 0 }
  const select = (kind: 'entity' | 'relationship', id: string): readonly number[] => {
    const sql = `SELECT place FROM graph_${kind} WHERE home = ? AND ref = ?`
    return database.all<[number]>(sql, workspace.id, workspace.cipher.digest(kind, id)).map(([rowId]) => rowId)
  }
  // Relationships go first: those deleted along with their entities would not be counted.
  for (const id of deleteRelationships) {
    const stored = select('relationship', id)
    counts.dropped += yield* deleteRowsInSteps(database.database, 'graph_relationship', stored)
    yield rowWork
  }
  for (const chunk of chunks(deleteEntities)) {
    const stored = selectStored(database, workspace, chunk)
    yield chunk.length * rowWork
    yield* deleteByEndsInSteps(database.database, 'graph_relationship', parseWorkspace(workspaceName), stored)
  }
  // Another process may have written between two transactions.
  workspace = workspaces.findOrCreate(workspaceName, at)
  yield* assertUnchanged(database, workspace, expected)
  for (const id of deleteEntities) {
    counts.dropped += yield* deleteRowsInSteps(database.database, 'graph_entity', select('entity', id))
    yield rowWork
  }
  for (const draft of entities) {
    counts[writeEntity(database, workspace, draft, at) ? 'written' : 'unchanged']++
    yield rowWork
  }
  for (const draft of relationships) {
    counts[writeRelationship(database, workspace, draft, at) ? 'written' : 'unchanged']++
    yield rowWork
  }
  return counts
}

/** Returns the digests of the entities that exist. */
function selectStored(
  database: GraphDatabase,
  { id: workspaceId, cipher }: GraphWorkspace,
  ids: readonly string[],
): readonly string[] {
  const sql = 'SELECT ref FROM graph_entity WHERE home = ? AND ref IN (SELECT value FROM json_each(?))'
  const digests = JSON.stringify(ids.map((id) => cipher.digest('entity', id)))
  return database.all<[string]>(sql, workspaceId, digests).map(([digest]) => digest)
}

function* assertUnchanged(
  database: GraphDatabase,
  { id: workspaceId, cipher }: GraphWorkspace,
  expected: readonly ExpectedEntity[],
): Work<void> {
  for (const { id, updatedAt } of expected) {
    const sql = 'SELECT updated FROM graph_entity WHERE home = ? AND ref = ?'
    const [updated] = database.get<[Millis]>(sql, workspaceId, cipher.digest('entity', id)) ?? []
    if (updated !== updatedAt) throw createConflictError(id)
    yield lookupWork
  }
}

function* checkDrafts(entities: readonly EntityDraft[], relationships: readonly RelationshipDraft[]): Work<void> {
  for (const entity of entities) {
    checkEntity(entity)
    yield 1
  }
  for (const relationship of relationships) {
    checkRelationship(relationship)
    yield 1
  }
}

/** Returns whether anything had to be written. */
function writeEntity(database: GraphDatabase, workspace: GraphWorkspace, draft: EntityDraft, at: Millis): boolean {
  const { cipher } = workspace
  const digest = cipher.digest('entity', draft.id)
  const row = database.get<Row>(`SELECT ${columns} FROM graph_entity WHERE home = ? AND ref = ?`, workspace.id, digest)
  const stored = row && { ...parseBody(row, workspace), selectOrigins: () => selectOrigins(database, row[0]) }
  const plan = planEntity(draft, stored, at)
  if ('put' in plan) putEntity(database, workspace, plan.put, row?.[0])
  else if (row !== undefined) insertOrigins(database, row[0], plan.addOrigins)
  return 'put' in plan
}

/** Inserts an entity, or replaces the row with the given id. */
export function putEntity(
  database: GraphDatabase,
  { id: workspaceId, cipher }: GraphWorkspace,
  entity: EntityRow,
  existingRowId?: number,
): void {
  const [digest, kind] = [cipher.digest('entity', entity.id), cipher.digest('type', entity.type)]
  const values = [kind, cipher.encrypt(serializeEntity(entity), digest), entity.createdAt, entity.updatedAt]
  if (existingRowId === undefined) {
    const { rowId } = database.run(
      'INSERT INTO graph_entity (kind, body, created, updated, home, ref) VALUES (?, ?, ?, ?, ?, ?)',
      ...values,
      workspaceId,
      digest,
    )
    insertOrigins(database, rowId, entity.origins)
    return
  }
  database.run(
    'UPDATE graph_entity SET kind = ?, body = ?, created = ?, updated = ? WHERE place = ?',
    ...values,
    existingRowId,
  )
  // The new content was not derived from the origins of the old.
  database.run('DELETE FROM graph_origin WHERE entity = ?', existingRowId)
  insertOrigins(database, existingRowId, entity.origins)
}

/** Returns whether anything had to be written. */
function writeRelationship(
  database: GraphDatabase,
  workspace: GraphWorkspace,
  draft: RelationshipDraft,
  at: Millis,
): boolean {
  const digest = workspace.cipher.digest('relationship', relationshipId(draft))
  const where = 'FROM graph_relationship WHERE home = ? AND ref = ?'
  const row = database.get<Row>(`SELECT ${columns} ${where}`, workspace.id, digest)
  const [session] = database.get<[string | null]>(`SELECT session ${where}`, workspace.id, digest) ?? [null]
  const relationship = planRelationship(draft, row && { ...parseBody(row, workspace), session }, at)
  if (relationship !== undefined) putRelationship(database, workspace, relationship, row?.[0])
  return relationship !== undefined
}

/** Inserts a relationship, or replaces the row with the given id. */
export function putRelationship(
  database: GraphDatabase,
  { id: workspaceId, cipher }: GraphWorkspace,
  relationship: RelationshipRow,
  existingRowId?: number,
): void {
  const { from, to, type, session = null, createdAt, updatedAt } = relationship
  const digest = cipher.digest('relationship', relationshipId(relationship))
  const values = [session, cipher.encrypt(serializeRelationship(relationship), digest), createdAt, updatedAt]
  if (existingRowId !== undefined) {
    database.run(
      'UPDATE graph_relationship SET session = ?, body = ?, created = ?, updated = ? WHERE place = ?',
      ...values,
      existingRowId,
    )
    return
  }
  const [source, target, kind] = [
    cipher.digest('entity', from),
    cipher.digest('entity', to),
    cipher.digest('type', type),
  ]
  database.run(
    'INSERT INTO graph_relationship (session, body, created, updated, home, ref, source, target, kind) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    ...[...values, workspaceId, digest, source, target, kind],
  )
}

function insertOrigins(database: GraphDatabase, entityRowId: number, origins: readonly Origin[]): void {
  for (const origin of origins)
    database.run(
      'INSERT OR IGNORE INTO graph_origin (entity, session, message) VALUES (?, ?, ?)',
      entityRowId,
      ...origin,
    )
}

const selectOrigins = (database: GraphDatabase, entityRowId: number): readonly Origin[] =>
  database.all<Origin>('SELECT session, message FROM graph_origin WHERE entity = ?', entityRowId)

const parseBody = ([, digest, body, createdAt, updatedAt]: Row, { cipher }: GraphWorkspace) => ({
  body: cipher.decrypt(body, digest),
  createdAt,
  updatedAt,
})
