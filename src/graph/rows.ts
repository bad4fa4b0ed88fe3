import { hash } from 'node:crypto'
import type { Entity, EntityDraft, Relationship, RelationshipDraft } from './graph.ts'
import type { Seal } from './seal.ts'

/** A row of either table: what it is looked up by, what it says, when it was first and last written. */
export type Row = readonly [place: number, ref: string, body: string, created: number, updated: number]
export const columns = 'place, ref, body, created, updated'

/** What an entity was drawn from: a message of a session, or with '' the session as a whole. */
export type Origin = readonly [session: string, message: string]

/** An entity and a relationship with everything that is known of them. */
export type EntityRow = Entity & { readonly origins: readonly Origin[] }
export type RelationshipRow = Omit<Relationship, 'id'> & { readonly session?: string }

/** What an entity or a relationship says, as it stands in a row's body. */
export const entityText = ({ type, id, properties }: EntityDraft): string => JSON.stringify({ type, id, properties })
export const relationshipText = ({ from, to, type, properties = {} }: RelationshipDraft): string =>
  JSON.stringify({ id: relationshipId({ from, to, type }), type, from, to, properties })

/** The same three are the same relationship. */
export const relationshipId = ({ from, type, to }: Pick<Relationship, 'from' | 'type' | 'to'>): string =>
  `rel_${hash('sha256', JSON.stringify([from, type, to]), 'buffer')
    .subarray(0, 16)
    .toString('base64url')}`

export function entityOf([, ref, body, createdAt, updatedAt]: Row, seal: Seal): Entity {
  const { type, id, properties } = JSON.parse(seal.take(body, ref)) as EntityDraft
  return { type, id, properties, createdAt, updatedAt }
}

export function relationshipOf([, ref, body, createdAt, updatedAt]: Row, seal: Seal): Relationship {
  const { id, from, to, type, properties } = JSON.parse(seal.take(body, ref)) as Relationship
  return { id, from, to, type, properties, createdAt, updatedAt }
}
