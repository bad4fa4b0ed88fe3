import { isDeepStrictEqual } from 'node:util'
import type { Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { GraphFile } from './file.ts'
import type { EntityDraft, GraphChange, RelationshipDraft } from './graph.ts'
import type { Home } from './home.ts'
import {
  columns,
  type EntityRow,
  entityText,
  type Origin,
  type RelationshipRow,
  type Row,
  relationshipId,
  relationshipText,
} from './rows.ts'

type Expected = NonNullable<GraphChange['expected']>[number]

/** Writes a change, inside a transaction: only rows that say something else by now. */
export function writeChange(
  file: GraphFile,
  home: Home,
  change: GraphChange,
  at: Millis,
): { written: number; unchanged: number; dropped: number } {
  const { entities = [], relationships = [], drop = [], dropRelationships = [], expected = [] } = change
  for (const one of expected) refuseChanged(file, home, one)
  const isGone = (kind: 'entity' | 'relationship') => (id: string) =>
    file.run(`DELETE FROM graph_${kind} WHERE home = ? AND ref = ?`, home.id, home.seal.ref(kind, id)).changes > 0
  // Those that are named go first: those that go with their entities would not be counted.
  const dropped = [...dropRelationships.filter(isGone('relationship')), ...drop.filter(isGone('entity'))].length
  const changed = [
    ...entities.map((draft) => writeEntity(file, home, draft, at)),
    ...relationships.map((draft) => writeRelationship(file, home, draft, at)),
  ]
  const written = changed.filter(Boolean).length
  return { written, unchanged: changed.length - written, dropped }
}

function refuseChanged(file: GraphFile, { id: home, seal }: Home, { id, updatedAt }: Expected): void {
  const [updated] =
    file.one<[Millis]>('SELECT updated FROM graph_entity WHERE home = ? AND ref = ?', home, seal.ref('entity', id)) ??
    []
  if (updated === updatedAt) return
  throw new MemoryError(
    'conflict',
    `Entity ${id} is not as it was read: somebody else has written meanwhile. Read it again, and write what follows from that.`,
  )
}

/** Whether anything had to be written. */
function writeEntity(file: GraphFile, { id: home, seal }: Home, draft: EntityDraft, at: Millis): boolean {
  refuseBlank('id', draft.id)
  refuseBlank('type', draft.type)
  const drawn = originsOf(draft)
  const ref = seal.ref('entity', draft.id)
  const text = entityText(draft)
  const row = file.one<Row>(`SELECT ${columns} FROM graph_entity WHERE home = ? AND ref = ?`, home, ref)
  if (row !== undefined && isSame(seal.take(row[2], ref), text)) {
    // Two sessions say the same: it stays for as long as either of them.
    addOrigins(file, row[0], drawn)
    return false
  }
  // Whoever writes over something without saying where it is from does not keep it from being forgotten.
  const origins = row !== undefined && draft.session === undefined ? heldOrigins(file, row[0]) : drawn
  putEntity(
    file,
    { id: home, seal },
    { ...draft, createdAt: row?.[3] ?? at, updatedAt: laterThan(row, at), origins },
    row?.[0],
  )
  return true
}

/** Writes an entity with everything that is known of it: a new one, or in the place of another. */
export function putEntity(file: GraphFile, { id: home, seal }: Home, entity: EntityRow, before?: number): void {
  const [ref, kind] = [seal.ref('entity', entity.id), seal.ref('type', entity.type)]
  const values = [kind, seal.put(entityText(entity), ref), entity.createdAt, entity.updatedAt]
  const place =
    before ??
    file.run(
      'INSERT INTO graph_entity (kind, body, created, updated, home, ref) VALUES (?, ?, ?, ?, ?, ?)',
      ...values,
      home,
      ref,
    ).place
  if (before !== undefined) {
    file.run('UPDATE graph_entity SET kind = ?, body = ?, created = ?, updated = ? WHERE place = ?', ...values, before)
    // What was said before is gone, and what it was drawn from has no part in this.
    file.run('DELETE FROM graph_origin WHERE entity = ?', before)
  }
  addOrigins(file, place, entity.origins)
}

function writeRelationship(file: GraphFile, { id: home, seal }: Home, draft: RelationshipDraft, at: Millis): boolean {
  const { from, to, type } = draft
  for (const [name, value] of Object.entries({ from, to, type })) refuseBlank(name, value)
  const ref = seal.ref('relationship', relationshipId(draft))
  const text = relationshipText(draft)
  const where = 'FROM graph_relationship WHERE home = ? AND ref = ?'
  const row = file.one<Row>(`SELECT ${columns} ${where}`, home, ref)
  const [belonged] = file.one<[string | null]>(`SELECT session ${where}`, home, ref) ?? [null]
  const session = draft.session ?? belonged
  if (row !== undefined && belonged === session && isSame(seal.take(row[2], ref), text)) return false
  const known = {
    from,
    to,
    type,
    properties: draft.properties ?? {},
    createdAt: row?.[3] ?? at,
    updatedAt: laterThan(row, at),
  }
  putRelationship(file, { id: home, seal }, session === null ? known : { ...known, session }, row?.[0])
  return true
}

/** Writes a relationship with everything that is known of it: a new one, or in the place of another. */
export function putRelationship(
  file: GraphFile,
  { id: home, seal }: Home,
  relationship: RelationshipRow,
  before?: number,
): void {
  const { from, to, type, session = null, createdAt, updatedAt } = relationship
  const ref = seal.ref('relationship', relationshipId(relationship))
  const values = [session, seal.put(relationshipText(relationship), ref), createdAt, updatedAt]
  if (before !== undefined) {
    file.run(
      'UPDATE graph_relationship SET session = ?, body = ?, created = ?, updated = ? WHERE place = ?',
      ...values,
      before,
    )
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
  throw new MemoryError(
    'bad-option',
    `Entity ${id} names messages it was drawn from, but no session. Give the session too.`,
    { param: 'session' },
  )
}

function addOrigins(file: GraphFile, entity: number, origins: readonly Origin[]): void {
  for (const origin of origins)
    file.run('INSERT OR IGNORE INTO graph_origin (entity, session, message) VALUES (?, ?, ?)', entity, ...origin)
}

const heldOrigins = (file: GraphFile, entity: number): readonly Origin[] =>
  file.all<Origin>('SELECT session, message FROM graph_origin WHERE entity = ?', entity)

/** Another time with every change, also within a millisecond and when the clock goes back: whoever has read the row before can tell. */
const laterThan = (row: Row | undefined, at: Millis): Millis => (row === undefined ? at : Math.max(at, row[4] + 1))

/** The order of properties says nothing. */
const isSame = (before: string, text: string): boolean =>
  before === text || isDeepStrictEqual(JSON.parse(before), JSON.parse(text))

function refuseBlank(param: string, value: string): void {
  if (value === '') throw new MemoryError('bad-option', `${param} is empty; it must name something.`, { param })
}
