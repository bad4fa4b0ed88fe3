import type { Json, Millis } from '../domain/entry.ts'

export type Entity = {
  readonly type: string
  readonly id: string
  readonly properties: Readonly<Record<string, Json>>
  readonly createdAt: Millis
  readonly updatedAt: Millis
}

/** The id is made of `from`, `type` and `to`: the same three are the same relationship. */
export type Relationship = {
  readonly id: string
  readonly from: string
  readonly to: string
  readonly type: string
  readonly properties: Readonly<Record<string, Json>>
  readonly createdAt: Millis
  readonly updatedAt: Millis
}

/**
 * What is written: `session` is the session it belongs to, `sources` are the messages of it that it was drawn from;
 * forgetting those forgets it. Without a session, what was there before stays with those it belonged to.
 */
export type EntityDraft = Pick<Entity, 'type' | 'id' | 'properties'> & {
  readonly session?: string
  readonly sources?: readonly string[]
}
export type RelationshipDraft = Pick<Relationship, 'from' | 'to' | 'type'> & {
  readonly properties?: Relationship['properties']
  readonly session?: string
}

/** What a property must be: `eq` of a kind and equal, `ne` anything else, `contains` a text or list with it, `in` one of a list, `exists` there (or, with false, not). */
export type Filter = {
  readonly property: string
  readonly op: 'eq' | 'ne' | 'lt' | 'lte' | 'gt' | 'gte' | 'contains' | 'in' | 'exists'
  readonly value?: Json
}

/** By a property, or by `id`, `type`, `createdAt` or `updatedAt`. */
export type Sort = { readonly by: string; readonly order?: 'asc' | 'desc' }

/** `limit` is 100 when left out and at most 1,000; what is not sorted comes as it was written first. */
export type Page = {
  readonly filters?: readonly Filter[]
  readonly sort?: readonly Sort[]
  readonly limit?: number
  readonly offset?: number
}
export type EntityQuery = Page & { readonly types?: readonly string[]; readonly session?: string }
export type RelationshipQuery = Page & {
  readonly from?: string
  readonly to?: string
  readonly types?: readonly string[]
  readonly session?: string
}

export type GraphChange = {
  readonly entities?: readonly EntityDraft[]
  readonly relationships?: readonly RelationshipDraft[]
  /** Ids of entities that go, with their relationships; before anything is written. */
  readonly drop?: readonly string[]
  /** Ids of relationships that go; before anything is written. */
  readonly dropRelationships?: readonly string[]
  /** Entities as they were read, without a time those that were not there: if one has changed since, nothing happens (`conflict`). */
  readonly expected?: readonly { readonly id: string; readonly updatedAt: Millis | undefined }[]
}

/** Entities and relationships of workspaces; one never sees another's. */
export interface Graph {
  /** Atomic, and durable before it resolves; rows that are the same already are not written again. `dropped` tells how many of those named were there. */
  write(
    workspace: string,
    change: GraphChange,
  ): Promise<{ readonly written: number; readonly unchanged: number; readonly dropped: number }>
  entity(workspace: string, id: string): Promise<Entity | undefined>
  entities(
    workspace: string,
    query?: EntityQuery,
  ): Promise<{ readonly entities: readonly Entity[]; readonly total: number }>
  relationships(
    workspace: string,
    query?: RelationshipQuery,
  ): Promise<{ readonly relationships: readonly Relationship[]; readonly total: number }>
  /** Forgets everything of a session, or of the whole workspace, its nodes too; how many entities and nodes went. */
  erase(workspace: string, session?: string): Promise<number>
  close(): Promise<void>
}

/** An entity as the reference memory server has it. */
export type Node = { readonly name: string; readonly entityType: string; readonly observations: readonly string[] }
/** A relation as the reference memory server has it. */
export type Link = { readonly from: string; readonly to: string; readonly relationType: string }
export type NodeGraph = { readonly entities: readonly Node[]; readonly relations: readonly Link[] }

/** The graph behind the nine tools of the reference memory server, with its results to the letter. */
export interface Nodes {
  /** Resolves to those whose names were not there before this call. */
  createEntities(workspace: string, entities: readonly Node[]): Promise<readonly Node[]>
  createRelations(workspace: string, relations: readonly Link[]): Promise<readonly Link[]>
  /** Rejects, and adds nothing, if one of the entities is not there. */
  addObservations(
    workspace: string,
    observations: readonly { readonly entityName: string; readonly contents: readonly string[] }[],
  ): Promise<readonly { readonly entityName: string; readonly addedObservations: readonly string[] }[]>
  deleteEntities(workspace: string, entityNames: readonly string[]): Promise<void>
  deleteObservations(
    workspace: string,
    deletions: readonly { readonly entityName: string; readonly observations: readonly string[] }[],
  ): Promise<void>
  deleteRelations(workspace: string, relations: readonly Link[]): Promise<void>
  readGraph(workspace: string): Promise<NodeGraph>
  searchNodes(workspace: string, query: string): Promise<NodeGraph>
  openNodes(workspace: string, names: readonly string[]): Promise<NodeGraph>
  /** Adds all of it to the end, also what is there already: for what the reference has written. */
  take(workspace: string, graph: NodeGraph): Promise<void>
  /** Takes it as the beginning of a workspace that has no nodes, once: what is deleted later does not come back. Resolves to whether it was taken. */
  adopt(workspace: string, graph: NodeGraph): Promise<boolean>
}

export { openGraph } from './open.ts'
