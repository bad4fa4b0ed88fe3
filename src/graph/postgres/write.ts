import type { Millis } from '../../domain/entry.ts'
import { runInSlices, type Work } from '../../domain/work.ts'
import { yieldToEventLoop } from '../../stores/yieldToEventLoop.ts'
import { createConflictError, planEntity, planRelationship } from '../plan.ts'
import { relationshipId, serializeEntity, serializeRelationship } from '../rows.ts'
import type { EntityDraft, EntityRow, GraphChange, Origin, RelationshipDraft, RelationshipRow } from '../types.ts'
import type { RowValues, StoredCells, WorkspaceRows } from './workspaceRows.ts'

/** Row to insert or, with a place, to replace. */
export type RowWrite<T> = { readonly row: T; readonly place?: number | undefined }

/** Cost of planning or encrypting a row, in characters. */
const rowWork = 40

/** Applies a change. Rows with unchanged content are not written. */
export async function writeChange(
  rows: WorkspaceRows,
  change: GraphChange,
  at: Millis,
): Promise<{ written: number; unchanged: number; dropped: number }> {
  const { entities = [], relationships = [], deleteEntities = [], deleteRelationships = [], expected = [] } = change
  await assertUnchanged(rows, expected)
  const find = (kind: 'entity' | 'relationship', ids: readonly string[]): Promise<readonly number[]> =>
    rows.findPlaces(
      'ref',
      ids.map((id) => rows.cipher.digest(kind, id)),
      kind,
    )
  // Relationships go first: those deleted along with their entities would not be counted.
  const goneRelationships = await find('relationship', deleteRelationships)
  await rows.deleteRows(goneRelationships)
  const goneEntities = await find('entity', deleteEntities)
  await rows.deleteEntities(goneEntities)
  const written = (await writeEntities(rows, entities, at)) + (await writeRelationships(rows, relationships, at))
  return {
    written,
    unchanged: entities.length + relationships.length - written,
    dropped: goneRelationships.length + goneEntities.length,
  }
}

async function assertUnchanged(rows: WorkspaceRows, expected: NonNullable<GraphChange['expected']>): Promise<void> {
  if (expected.length === 0) return
  const digests = expected.map(({ id }) => rows.cipher.digest('entity', id))
  const stored = await selectByDigest(rows, 'entity', digests)
  for (const [index, { id, updatedAt }] of expected.entries())
    if (stored.get(digests[index] as string)?.[4] !== updatedAt) throw createConflictError(id)
}

/** Entity as it is stored, or will be after the drafts before. */
type EntityState = {
  readonly place: number | undefined
  readonly body: string
  readonly createdAt: Millis
  readonly updatedAt: Millis
  readonly origins: readonly Origin[]
  /** Set if the row has to be written. */
  readonly put?: EntityRow
}

/** Returns the number of written entities. */
async function writeEntities(rows: WorkspaceRows, drafts: readonly EntityDraft[], at: Millis): Promise<number> {
  if (drafts.length === 0) return 0
  const { cipher } = rows
  const digests = drafts.map(({ id }) => cipher.digest('entity', id))
  const stored = await selectByDigest(rows, 'entity', digests)
  const origins = await rows.selectOrigins([...stored.values()].map(([place]) => place))
  const states = new Map<string, EntityState>()
  for (const [digest, [place, , body, createdAt, updatedAt]] of stored)
    states.set(digest, {
      ...{ place, body: cipher.decrypt(body, digest), createdAt, updatedAt },
      origins: origins.get(place) ?? [],
    })
  const addedOrigins: (readonly [place: number, origin: Origin])[] = []
  let written = 0
  const plan = function* (): Work<void> {
    for (const [index, draft] of drafts.entries()) {
      const digest = digests[index] as string
      const state = states.get(digest)
      const planned = planEntity(draft, state && { ...state, selectOrigins: () => state.origins }, at)
      if ('put' in planned) {
        const { put } = planned
        const { createdAt, updatedAt } = put
        const body = serializeEntity(put)
        states.set(digest, { place: state?.place, body, createdAt, updatedAt, origins: put.origins, put })
        written++
      } else if (state?.put !== undefined) {
        const merged = [...state.origins, ...planned.addOrigins]
        states.set(digest, { ...state, origins: merged, put: { ...state.put, origins: merged } })
      } else if (state?.place !== undefined) {
        const { place } = state
        for (const origin of planned.addOrigins) addedOrigins.push([place, origin])
        states.set(digest, { ...state, origins: [...state.origins, ...planned.addOrigins] })
      }
      yield rowWork
    }
  }
  await runInSlices(plan(), yieldToEventLoop)
  await rows.insertOrigins(addedOrigins)
  await putEntities(
    rows,
    [...states.values()].flatMap(({ place, put }) => (put === undefined ? [] : [{ row: put, place }])),
  )
  return written
}

/** Inserts entities, or replaces the rows with the given places. */
export async function putEntities(rows: WorkspaceRows, writes: readonly RowWrite<EntityRow>[]): Promise<void> {
  const placed = await place(rows, writes)
  await putRows(rows, placed, ({ row, place }) => {
    const ref = rows.cipher.digest('entity', row.id)
    return {
      ...{ place, kind: 'entity', ref, type: rows.cipher.digest('type', row.type) },
      ...{ body: rows.cipher.encrypt(serializeEntity(row), ref), created: row.createdAt, updated: row.updatedAt },
    }
  })
  // The new content was not derived from the origins of the old.
  await rows.deleteOrigins(placed.filter(({ isNew }) => !isNew).map(({ place }) => place))
  await rows.insertOrigins(placed.flatMap(({ row, place }) => row.origins.map((origin) => [place, origin] as const)))
}

/** Returns the number of written relationships. */
async function writeRelationships(
  rows: WorkspaceRows,
  drafts: readonly RelationshipDraft[],
  at: Millis,
): Promise<number> {
  if (drafts.length === 0) return 0
  const { cipher } = rows
  const digests = drafts.map((draft) => cipher.digest('relationship', relationshipId(draft)))
  const stored = await selectByDigest(rows, 'relationship', digests)
  const states = new Map<string, Parameters<typeof planRelationship>[1] & object>()
  for (const [digest, [, , body, createdAt, updatedAt, session]] of stored)
    states.set(digest, { body: cipher.decrypt(body, digest), createdAt, updatedAt, session })
  const puts = new Map<string, RowWrite<RelationshipRow>>()
  let written = 0
  const plan = function* (): Work<void> {
    for (const [index, draft] of drafts.entries()) {
      const digest = digests[index] as string
      const row = planRelationship(draft, states.get(digest), at)
      if (row !== undefined) {
        const { createdAt, updatedAt, session = null } = row
        states.set(digest, { body: serializeRelationship(row), createdAt, updatedAt, session })
        puts.set(digest, { row, place: stored.get(digest)?.[0] })
        written++
      }
      yield rowWork
    }
  }
  await runInSlices(plan(), yieldToEventLoop)
  await putRelationships(rows, [...puts.values()])
  return written
}

/** Inserts relationships, or replaces the rows with the given places. */
export async function putRelationships(
  rows: WorkspaceRows,
  writes: readonly RowWrite<RelationshipRow>[],
): Promise<void> {
  const { cipher } = rows
  await putRows(rows, await place(rows, writes), ({ row, place }) => {
    const ref = cipher.digest('relationship', relationshipId(row))
    const [source, target] = [cipher.digest('entity', row.from), cipher.digest('entity', row.to)]
    return {
      ...{ place, kind: 'relationship', ref, source, target, type: cipher.digest('type', row.type) },
      ...{ body: cipher.encrypt(serializeRelationship(row), ref), created: row.createdAt, updated: row.updatedAt },
      ...(row.session === undefined ? {} : { session: row.session }),
    }
  })
}

type PlacedWrite<T> = { readonly row: T; readonly place: number; readonly isNew: boolean }

/** Gives new rows their places, in order. */
async function place<T>(rows: WorkspaceRows, writes: readonly RowWrite<T>[]): Promise<readonly PlacedWrite<T>[]> {
  const places = [...(await rows.reservePlaces(writes.filter(({ place }) => place === undefined).length))].reverse()
  return writes.map(({ row, place }) =>
    place === undefined ? { row, place: places.pop() as number, isNew: true } : { row, place, isNew: false },
  )
}

async function putRows<T>(
  rows: WorkspaceRows,
  writes: readonly PlacedWrite<T>[],
  serialize: (write: PlacedWrite<T>) => RowValues,
): Promise<void> {
  const inserted: RowValues[] = []
  const updated: RowValues[] = []
  const serializeAll = function* (): Work<void> {
    for (const write of writes) {
      ;(write.isNew ? inserted : updated).push(serialize(write))
      yield rowWork
    }
  }
  await runInSlices(serializeAll(), yieldToEventLoop)
  await rows.insert(inserted)
  await rows.update(updated)
}

async function selectByDigest(
  rows: WorkspaceRows,
  kind: 'entity' | 'relationship',
  digests: readonly string[],
): Promise<ReadonlyMap<string, StoredCells>> {
  const cells = await rows.selectBy('ref', digests, kind)
  return new Map(cells.map((row) => [row[1], row]))
}
