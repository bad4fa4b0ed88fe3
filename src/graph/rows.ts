import { hash } from 'node:crypto'
import { MemoryError } from '../domain/error.ts'
import type { GraphCipher } from './cipher.ts'
import type { Entity, EntityDraft, Relationship, RelationshipDraft, RelationshipRow } from './types.ts'

/** Row of `graph_entity` or `graph_relationship`: lookup digest, JSON body, times of the first and the last write. */
export type Row = readonly [rowId: number, digest: string, body: string, created: number, updated: number]
export const columns = 'place, ref, body, created, updated'

export const serializeEntity = ({ type, id, properties }: EntityDraft): string =>
  JSON.stringify({ type, id, properties })
export const serializeRelationship = ({ from, to, type, properties = {} }: RelationshipDraft): string =>
  JSON.stringify({ id: relationshipId({ from, to, type }), type, from, to, properties })

/** Derives the id from `from`, `type` and `to`. */
export const relationshipId = ({ from, type, to }: Pick<Relationship, 'from' | 'type' | 'to'>): string =>
  `rel_${hash('sha256', JSON.stringify([from, type, to]), 'buffer')
    .subarray(0, 16)
    .toString('base64url')}`

export function parseEntity([, digest, body, createdAt, updatedAt]: Row, cipher: GraphCipher): Entity {
  const { type, id, properties } = JSON.parse(cipher.decrypt(body, digest)) as EntityDraft
  return { type, id, properties, createdAt, updatedAt }
}

export function parseRelationship([, digest, body, createdAt, updatedAt]: Row, cipher: GraphCipher): Relationship {
  const { id, from, to, type, properties } = JSON.parse(cipher.decrypt(body, digest)) as Relationship
  return { id, from, to, type, properties, createdAt, updatedAt }
}

export type RowWithSession = readonly [...Row, session: string | null]

export function parseRelationshipRow(
  [rowId, digest, body, created, updated, session]: RowWithSession,
  cipher: GraphCipher,
): RelationshipRow {
  const { id: _, ...relationship } = parseRelationship([rowId, digest, body, created, updated], cipher)
  return session === null ? relationship : { ...relationship, session }
}

/** Error for a row that is not valid JSON; `database` is the name of its database. */
export const createDamagedRowError = (database: string, cause: SyntaxError): MemoryError =>
  new MemoryError(
    'corrupt',
    `A row of the graph in ${database} is damaged. Restore a backup, or write the row again.`,
    { cause },
  )
