import { isDeepStrictEqual } from 'node:util'
import type { Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { serializeEntity, serializeRelationship } from './rows.ts'
import type { EntityDraft, EntityRow, Origin, RelationshipDraft, RelationshipRow } from './types.ts'

/** Stored row that a draft is compared with. */
type StoredBody = {
  /** Decrypted JSON. */
  readonly body: string
  readonly createdAt: Millis
  readonly updatedAt: Millis
}
export type StoredEntity = StoredBody & { readonly selectOrigins: () => readonly Origin[] }
export type StoredRelationship = StoredBody & { readonly session: string | null }

/** Entity to insert or replace, or the origins that an entity with the same content gains. */
export type EntityPlan = { readonly put: EntityRow } | { readonly addOrigins: readonly Origin[] }

/** Throws `bad-option` for an invalid draft. */
export function checkEntity(draft: EntityDraft): void {
  assertNotEmpty('id', draft.id)
  assertNotEmpty('type', draft.type)
  originsOf(draft)
}

/** Throws `bad-option` for an invalid draft. */
export function checkRelationship({ from, to, type }: RelationshipDraft): void {
  for (const [name, value] of Object.entries({ from, to, type })) assertNotEmpty(name, value)
}

/** Decides how to write an entity. Throws `bad-option` for an invalid draft. */
export function planEntity(draft: EntityDraft, stored: StoredEntity | undefined, at: Millis): EntityPlan {
  checkEntity(draft)
  const { type, id, properties } = draft
  const origins = originsOf(draft)
  // An entity derived from two sessions stays until both are erased.
  if (stored !== undefined && isSameJson(stored.body, serializeEntity(draft))) return { addOrigins: origins }
  return {
    put: {
      ...{ type, id, properties, ...nextTimes(stored, at) },
      // An update without a session keeps the origins, so that erasing them still erases the entity.
      origins: stored !== undefined && draft.session === undefined ? stored.selectOrigins() : origins,
    },
  }
}

/** Decides how to write a relationship; undefined if it is stored already. Throws `bad-option` for an invalid draft. */
export function planRelationship(
  draft: RelationshipDraft,
  stored: StoredRelationship | undefined,
  at: Millis,
): RelationshipRow | undefined {
  checkRelationship(draft)
  const { from, to, type, properties = {} } = draft
  const session = draft.session ?? stored?.session ?? null
  if (stored?.session === session && isSameJson(stored.body, serializeRelationship(draft))) return undefined
  const relationship = { from, to, type, properties, ...nextTimes(stored, at) }
  return session === null ? relationship : { ...relationship, session }
}

export const createConflictError = (id: string): MemoryError =>
  new MemoryError(
    'conflict',
    `Entity ${id} was changed by another writer since it was read. Read it again and repeat the change.`,
  )

/**
 * `updatedAt` increases with every change, also within a millisecond or when the clock goes back, because `expected`
 * compares it.
 */
const nextTimes = (stored: StoredBody | undefined, at: Millis): Pick<EntityRow, 'createdAt' | 'updatedAt'> =>
  stored === undefined
    ? { createdAt: at, updatedAt: at }
    : { createdAt: stored.createdAt, updatedAt: Math.max(at, stored.updatedAt + 1) }

function originsOf({ id, session, sources = [] }: EntityDraft): readonly Origin[] {
  if (session !== undefined) return (sources.length === 0 ? [''] : sources).map((message) => [session, message])
  if (sources.length === 0) return []
  throw new MemoryError('bad-option', `Entity ${id} has sources but no session. Give the session of the messages.`, {
    param: 'session',
  })
}

/** Ignores the order of properties. */
const isSameJson = (stored: string, text: string): boolean =>
  stored === text || isDeepStrictEqual(JSON.parse(stored), JSON.parse(text))

function assertNotEmpty(param: string, value: string): void {
  if (value === '') throw new MemoryError('bad-option', `${param} is empty. Give a name.`, { param })
}
