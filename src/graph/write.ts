import { isDeepStrictEqual } from 'node:util'
import type { Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { GraphFile } from './file.ts'
import type { EntityDraft, GraphChange, RelationshipDraft } from './graph.ts'
import type { Home } from './home.ts'
import { columns, entityText, type Row, relationshipId, relationshipText } from './rows.ts'

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
  const kind = seal.ref('type', draft.type)
  const text = entityText(draft)
  const row = file.one<Row>(`SELECT ${columns} FROM graph_entity WHERE home = ? AND ref = ?`, home, ref)
  if (row !== undefined && isSame(seal.take(row[2], ref), text)) {
    // Two sessions say the same: it stays for as long as either of them.
    addOrigins(file, row[0], origins)
    return false
  }
  const body = seal.put(text, ref)
  const place =
    row?.[0] ?? file.run('INSERT INTO graph_entity (home, ref, kind, body, created, updated) VALUES (?, ?, ?, ?, ?, ?)', home, ref, kind, body, at, at).place
  if (row !== undefined) {
    file.run('UPDATE graph_entity SET kind = ?, body = ?, updated = ? WHERE place = ?', kind, body, at, place)
    // What was said before is gone, and what it was drawn from has no part in this.
    file.run('DELETE FROM graph_origin WHERE entity = ?', place)
  }
  addOrigins(file, place, origins)
  return true
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
  const body = seal.put(text, ref)
  if (row !== undefined) file.run('UPDATE graph_relationship SET body = ?, session = ?, updated = ? WHERE place = ?', body, session, at, row[0])
  else {
    const [source, target, kind] = [seal.ref('entity', from), seal.ref('entity', to), seal.ref('type', type)]
    file.run(
      'INSERT INTO graph_relationship (home, ref, source, target, kind, session, body, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
      ...[home, ref, source, target, kind, session, body, at, at],
    )
  }
  return true
}

type Origin = readonly [session: string, message: string]

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
