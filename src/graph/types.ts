import type { Json, Millis } from '../domain/entry.ts'
import type { Work } from '../domain/work.ts'
import type { ForgetOptions } from '../memory/forget.ts'

export type Entity = {
  readonly type: string
  readonly id: string
  readonly properties: Readonly<Record<string, Json>>
  readonly createdAt: Millis
  readonly updatedAt: Millis
}

/** The id is derived from `from`, `type` and `to`: equal triples are the same relationship. */
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
 * Entity to write. `session` is the session it belongs to and `sources` the ids of the messages it was derived from;
 * erasing those erases it. Without a session, an existing entity keeps its sessions and sources.
 */
export type EntityDraft = Pick<Entity, 'type' | 'id' | 'properties'> & {
  readonly session?: string
  readonly sources?: readonly string[]
}
export type RelationshipDraft = Pick<Relationship, 'from' | 'to' | 'type'> & {
  readonly properties?: Relationship['properties']
  readonly session?: string
}

/**
 * Condition on a property. `eq` and `ne` compare type and value, `contains` looks into a text or a list, `in` takes a
 * list, `exists` takes true (the default) or false. The lists of a query have at most 10,000 values in all.
 */
export type Filter = {
  readonly property: string
  readonly op: 'eq' | 'ne' | 'lt' | 'lte' | 'gt' | 'gte' | 'contains' | 'in' | 'exists'
  readonly value?: Json
}

/** Sorts by a property, or by `id`, `type`, `createdAt` or `updatedAt`. */
export type Sort = { readonly by: string; readonly order?: 'asc' | 'desc' }

/**
 * `limit` is 100 by default and at most 1,000, or `Infinity` for one consistent read of all rows. Without `sort`, rows
 * come in insertion order.
 */
export type GraphPageOptions = {
  readonly filters?: readonly Filter[]
  readonly sort?: readonly Sort[]
  readonly limit?: number
  readonly offset?: number
}
export type EntityQuery = GraphPageOptions & { readonly types?: readonly string[]; readonly session?: string }
export type RelationshipQuery = GraphPageOptions & {
  readonly from?: string
  readonly to?: string
  readonly types?: readonly string[]
  readonly session?: string
}

export type GraphChange = {
  readonly entities?: readonly EntityDraft[]
  readonly relationships?: readonly RelationshipDraft[]
  /** Ids of entities to delete with their relationships, before anything is written. */
  readonly deleteEntities?: readonly string[]
  /** Ids of relationships to delete, before anything is written. */
  readonly deleteRelationships?: readonly string[]
  /**
   * Optimistic lock: `updatedAt` of entities as they were read, undefined for absent ones. A mismatch throws
   * `conflict`.
   */
  readonly expected?: readonly { readonly id: string; readonly updatedAt: Millis | undefined }[]
}

/** Entities and relationships, isolated by workspace. */
export interface Graph {
  /**
   * Applies a change atomically and durably. Unchanged rows are not written; `dropped` counts the rows that existed.
   * In a graph of SQLite, thousands of relationships of deleted entities are deleted before the rest, unless the change
   * is refused.
   */
  write(
    workspace: string,
    change: GraphChange,
  ): Promise<{ readonly written: number; readonly unchanged: number; readonly dropped: number }>
  getEntity(workspace: string, id: string): Promise<Entity | undefined>
  queryEntities(
    workspace: string,
    query?: EntityQuery,
  ): Promise<{ readonly entities: readonly Entity[]; readonly total: number }>
  queryRelationships(
    workspace: string,
    query?: RelationshipQuery,
  ): Promise<{ readonly relationships: readonly Relationship[]; readonly total: number }>
  /**
   * Erases everything of a session, or the whole workspace with its nodes. Returns the number of erased entities and
   * nodes.
   */
  erase(workspace: string, session?: string, options?: ForgetOptions): Promise<number>
  close(): Promise<void>
}

/** Entity in the format of the reference memory server. */
export type GraphNode = { readonly name: string; readonly entityType: string; readonly observations: readonly string[] }
/** Relation in the format of the reference memory server. */
export type GraphLink = { readonly from: string; readonly to: string; readonly relationType: string }
export type NodeGraph = { readonly entities: readonly GraphNode[]; readonly relations: readonly GraphLink[] }

export type NodeReadOptions = {
  /** Rejects with `bad-option` if the texts of the result have more characters as JSON. Unlimited by default. */
  readonly maxCharacters?: number | undefined
}

/**
 * Graph behind the nine tools of the reference memory server (@modelcontextprotocol/server-memory), with identical
 * results.
 */
export interface NodeStore {
  /** Returns the entities whose names did not exist before this call. */
  createEntities(workspace: string, entities: readonly GraphNode[]): Promise<readonly GraphNode[]>
  createRelations(workspace: string, relations: readonly GraphLink[]): Promise<readonly GraphLink[]>
  /** Rejects, and adds nothing, if one of the entities does not exist. */
  addObservations(
    workspace: string,
    observations: readonly { readonly entityName: string; readonly contents: readonly string[] }[],
  ): Promise<readonly { readonly entityName: string; readonly addedObservations: readonly string[] }[]>
  deleteEntities(workspace: string, entityNames: readonly string[]): Promise<void>
  deleteObservations(
    workspace: string,
    deletions: readonly { readonly entityName: string; readonly observations: readonly string[] }[],
  ): Promise<void>
  deleteRelations(workspace: string, relations: readonly GraphLink[]): Promise<void>
  readGraph(workspace: string, options?: NodeReadOptions): Promise<NodeGraph>
  searchNodes(workspace: string, query: string, options?: NodeReadOptions): Promise<NodeGraph>
  openNodes(workspace: string, names: readonly string[], options?: NodeReadOptions): Promise<NodeGraph>
  /**
   * Imports a graph into a workspace without nodes, at most once, so that later deletions are final. Returns whether it
   * did.
   */
  importOnce(workspace: string, graph: NodeGraph): Promise<boolean>
}

/** Message an entity was derived from; an empty message id stands for the session as a whole. */
export type Origin = readonly [session: string, message: string]
/** Entity with the messages it was derived from. */
export type EntityRow = Entity & { readonly origins: readonly Origin[] }
/** Relationship with the session it belongs to. */
export type RelationshipRow = Omit<Relationship, 'id'> & { readonly session?: string }

/** Exported piece of a graph. `adopted` is the time at which a file of the reference memory server was imported. */
export type GraphRow =
  | { readonly entity: EntityRow }
  | { readonly relationship: RelationshipRow }
  | { readonly node: GraphNode }
  | { readonly link: GraphLink }
  | { readonly adopted: Millis }

/** Stored row with its id, which increases with every inserted row. */
export type StoredRow<T> = { readonly rowId: number; readonly row: T }
export type StoredGraphRow = StoredRow<GraphRow>

/**
 * Row to insert or, with a row id, to replace. Replacing a node sets its type and adds the observations to the existing
 * ones.
 */
export type GraphWrite = { readonly row: GraphRow; readonly rowId?: number }

/** Reads and writes the whole graph of a workspace, for export and import. */
export interface GraphArchive {
  /** Returns a consistent snapshot, each kind of row in insertion order. */
  readAll(workspace: string): Promise<readonly StoredGraphRow[]>
  /**
   * Passes all rows to `decide` and applies the writes it returns, in one transaction. Returns the number of writes.
   * `decide` is called again if the transaction has to be repeated.
   */
  update(workspace: string, decide: (stored: readonly StoredGraphRow[]) => Work<readonly GraphWrite[]>): Promise<number>
}

/** Graph of a store: entities and relationships, nodes of the reference memory server, and the archive of both. */
export interface StoreGraph extends Graph {
  readonly nodes: NodeStore
  readonly archive: GraphArchive
  /** Erases the rows that contain one of the texts, ignoring case. Returns them as kind and number: `entity 1`. */
  forget(workspace: string, texts: readonly string[], options?: ForgetOptions): Promise<readonly string[]>
}
