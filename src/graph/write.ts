import { isDeepStrictEqual } from 'node:util'
import type { Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { GraphFile } from './file.ts'
import type { EntityDraft, GraphChange, RelationshipDraft } from './graph.ts'
import type { Home } from './home.ts'
import { columns, type EntityRow, entityText, type Origin, type RelationshipRow, type Row, relationshipId, relationshipText } from './rows.ts'

/** Writes a change, inside a transaction: only rows that say something else by now. */
export function writeChange(file: GraphFile, home: Home, change: GraphChange, at: Millis): { written: number; unchanged: number; dropped: number } {
  const { entities = [], relationships = [], drop = [] } = change
  const dropped = drop.filter((id) => file.run('DELETE FROM graph_entity WHERE home = ? AND ref = ?', home.id, home.seal.ref('entity', id)).changes > 0).length
  const changed = [...entities.map((draft) => writeEntity(file, home, draft, at)), ...relationships.map((draft) => writeRelationship(file, home, draft, at))]
  const written = changed.filter(Boolean).length
  return { written, unchanged: changed.length - written, dropped }
}

/** Whether anything had to be written. */
function writeEntity(file: GraphFile, { id: home, seal }: Home, draft: EntityDraft, at: Millis): boolean {
  refuseBlank('id', draft.id)
  refuseBlank('type', draft.type)
  const origins = originsOf(draft)
  const ref = seal.ref('entity', draft.id)
  const text = entityText(draft)
  const row = file.one<Row>(`SELECT ${columns} FROM graph_entity WHERE home = ? AND ref = ?`, home, ref)
  if (row !== undefined && isSame(seal.take(row[2], ref), text)) {
    // Two sessions say the same: it stays for as long as either of them.
    addOrigins(file, row[0], origins)
    return false
  }
  putEntity(file, { id: home, seal }, { ...draft, createdAt: row?.[3] ?? at, updatedAt: at, origins }, row?.[0])
  return true
}

/** Writes an entity with everything that is known of it: a new one, or in the place of another. */
export function putEntity(file: GraphFile, { id: home, seal }: Home, entity: EntityRow, before?: number): void {
  const [ref, kind] = [seal.ref('entity', entity.id), seal.ref('type', entity.type)]
  const values = [kind, seal.put(entityText(entity), ref), entity.createdAt, entity.updatedAt]
  const place = before ?? file.run('INSERT INTO graph_entity (kind, body, created, updated, home, ref) VALUES (?, ?, ?, ?, ?, ?)', ...values, home, ref).place
  if (before !== undefined) {
    file.run('UPDATE graph_entity SET kind = ?, body = ?, created = ?, updated = ? WHERE place = ?', ...values, before)
    // What was said before is gone, and what it was drawn from has no part in this.
    file.run('DELETE FROM graph_origin WHERE entity = ?', before)
  }
  addOrigins(file, place, entity.origins)
}

function writeRelationship(file: GraphFile, { id: home, seal }: Home, draft: RelationshipDraft, at: Millis): boolean {
  const { from, to, type, session = null } = draft
  for (const [name, value] of Object.entries({ from, to, type })) refuseBlank(name, value)
  const ref = seal.ref('relationship', relationshipId(draft))
  const text = relationshipText(draft)
  const where = 'FROM graph_relationship WHERE home = ? AND ref = ?'
  const row = file.one<Row>(`SELECT ${columns} ${where}`, home, ref)
  const [belonged] = file.one<[string | null]>(`SELECT session ${where}`, home, ref) ?? [null]
  if (row !== undefined && belonged === session && isSame(seal.take(row[2], ref), text)) return false
  const known = { from, to, type, properties: draft.properties ?? {}, createdAt: row?.[3] ?? at, updatedAt: at }
  putRelationship(file, { id: home, seal }, session === null ? known : { ...known, session }, row?.[0])
  return true
}

/** Writes a relationship with everything that is known of it: a new one, or in the place of another. */
export function putRelationship(file: GraphFile, { id: home, seal }: Home, relationship: RelationshipRow, before?: number): void {
  const { from, to, type, session = null, createdAt, updatedAt } = relationship
  const ref = seal.ref('relationship', relationshipId(relationship))
  const values = [session, seal.put(relationshipText(relationship), ref), createdAt, updatedAt]
  if (before !== undefined) {
    file.run('UPDATE graph_relationship SET session = ?, body = ?, created = ?, updated = ? WHERE place = ?', ...values, before)
    return
  }
  const [source, target, kind] = [seal.ref('entity', from), seal.ref('entity', to), seal.ref('type', type)]
  file.run(
    'INSERT INTO graph_relationship (session, body, created, updated, home, ref, source, target, kind) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    ...[...values, home, ref, source, target, kind],
  )
}

function originsOf({ id, session, sources = [] }: EntityDraft): readonly Origin[] {
  if (session !== undefined) return (sources.length === 0 ? [''] : sources).map((message) => [session, message])
  if (sources.length === 0) return []
  throw new MemoryError('bad-option', `Entity ${id} names messages it was drawn from, but no session. Give the session too.`, { param: 'session' })
}

function addOrigins(file: GraphFile, entity: number, origins: readonly Origin[]): void {
  for (const origin of origins) file.run('INSERT OR IGNORE INTO graph_origin (entity, session, message) VALUES (?, ?, ?)', entity, ...origin)
}

/** The order of properties says nothing. */
const isSame = (before: string, text: string): boolean => before === text || isDeepStrictEqual(JSON.parse(before), JSON.parse(text))

function refuseBlank(param: string, value: string): void {
  if (value === '') throw new MemoryError('bad-option', `${param} is empty; it must name something.`, { param })
}
