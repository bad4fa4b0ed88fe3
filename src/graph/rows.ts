import { hash } from 'node:crypto'
import type { GraphCipher } from './cipher.ts'
import type { Entity, EntityDraft, Relationship, RelationshipDraft } from './types.ts'

/** Row of `graph_entity` or `graph_relationship`: lookup digest, JSON body, times of the first and the last write. */
export type Row = readonly [rowId: number, digest: string, body: string, created: number, updated: number]
export const columns = 'place, ref, body, created, updated'

/** Message an entity was derived from; an empty message id stands for the session as a whole. */
export type Origin = readonly [session: string, message: string]

/** Entity with the messages it was derived from. */
export type EntityRow = Entity & { readonly origins: readonly Origin[] }
/** Relationship with the session it belongs to. */
export type RelationshipRow = Omit<Relationship, 'id'> & { readonly session?: string }

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
