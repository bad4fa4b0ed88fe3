import { MemoryError } from '../domain/error.ts'
import type { Clock, EraseListener } from '../domain/ports.ts'
import { deleteNodes, GraphEraser, graphKey, wipeIndexes } from '../stores/sqlite/graph.ts'
import { GraphArchive } from './archive.ts'
import type { GraphCipher } from './cipher.ts'
import type { GraphDatabase } from './database.ts'
import type { GraphMasking } from './maskedGraph.ts'
import { SqliteNodeStore } from './nodes.ts'
import { type Clause, filterCondition, joinWithAnd, matchesFilter, orderBy, parsePage, sortRows } from './query.ts'
import { columns, parseEntity, parseRelationship, type Row } from './rows.ts'
import type {
  Entity,
  EntityQuery,
  Graph,
  GraphChange,
  GraphPageOptions,
  Relationship,
  RelationshipQuery,
} from './types.ts'
import type { GraphWorkspace, GraphWorkspaces } from './workspaces.ts'
import { writeChange } from './write.ts'

/** Attempts to truncate the write-ahead log while other connections are active. */
const maxTruncateAttempts = 10
const truncateRetryMs = 50

type QueryTarget<T> = {
  readonly table: string
  readonly parse: (row: Row, cipher: GraphCipher) => T
  /** Conditions on indexed columns, which hold digests and so work on encrypted rows too. */
  readonly conditions: (workspace: GraphWorkspace) => readonly Clause[]
}

/** Graph in the SQLite file of a store, or in memory. */
export class SqliteGraph implements Graph {
  readonly nodes: SqliteNodeStore
  readonly archive: GraphArchive
  private readonly database: GraphDatabase
  private readonly workspaces: GraphWorkspaces
  private readonly clock: Clock
  private readonly masking: GraphMasking
  private unsubscribe: () => void = () => undefined

  constructor(database: GraphDatabase, workspaces: GraphWorkspaces, clock: Clock, masking: GraphMasking) {
    this.database = database
    this.workspaces = workspaces
    this.clock = clock
    this.masking = masking
    this.nodes = new SqliteNodeStore(database, workspaces, clock, masking)
    this.archive = new GraphArchive(database, workspaces, clock)
  }

  async write(workspaceName: string, change: GraphChange): ReturnType<Graph['write']> {
    this.masking.checkWorkspace(workspaceName)
    const masked = await this.masking.maskChange(workspaceName, change)
    return this.database.writeInSteps(() => {
      const at = this.clock()
      return writeChange(this.database, this.workspaces.findOrCreate(workspaceName, at), masked, at)
    })
  }

  async getEntity(workspaceName: string, id: string): Promise<Entity | undefined> {
    const maskedId = await this.masking.mask(workspaceName, id)
    return this.database.read(() => {
      const workspace = this.workspaces.find(workspaceName)
      if (workspace === undefined) return undefined
      const row = this.database.get<Row>(
        `SELECT ${columns} FROM graph_entity WHERE home = ? AND ref = ?`,
        workspace.id,
        workspace.cipher.digest('entity', maskedId),
      )
      return row && parseEntity(row, workspace.cipher)
    })
  }

  async queryEntities(workspaceName: string, unmasked: EntityQuery = {}): ReturnType<Graph['queryEntities']> {
    const query = await this.masking.mask(workspaceName, unmasked)
    const { rows, total } = await this.query(workspaceName, query, {
      table: 'graph_entity',
      parse: parseEntity,
      conditions: (workspace) => entityConditions(workspace, query),
    })
    return { entities: rows, total }
  }

  async queryRelationships(
    workspaceName: string,
    unmasked: RelationshipQuery = {},
  ): ReturnType<Graph['queryRelationships']> {
    const query = await this.masking.mask(workspaceName, unmasked)
    const { rows, total } = await this.query(workspaceName, query, {
      table: 'graph_relationship',
      parse: parseRelationship,
      conditions: (workspace) => relationshipConditions(workspace, query),
    })
    return { relationships: rows, total }
  }

  async erase(workspaceName: string, session?: string): Promise<number> {
    const erased = await this.database.write(() => {
      const workspace = this.workspaces.find(workspaceName)
      if (workspace === undefined) return 0
      return session === undefined
        ? this.eraseAll(workspace)
        : new GraphEraser(this.database.database).erase({ ...graphKey(workspaceName), id: session })
    })
    await this.truncateWal(workspaceName)
    return erased
  }

  /** Erases the rows that contain one of the texts, ignoring case. Returns them as kind and row id. */
  async forget(workspaceName: string, texts: readonly string[]): Promise<readonly string[]> {
    const deleted = await this.database.write(() => {
      const workspace = this.workspaces.find(workspaceName)
      if (workspace === undefined) return []
      const deletedRows = this.archive.deleteContaining(workspace, texts)
      wipeIndexes(this.database.database)
      return deletedRows
    })
    await this.truncateWal(workspaceName)
    return deleted
  }

  /** Erases whatever a store erases, for a graph that is not in the store's file. */
  followErasures(eraseListeners: Set<EraseListener>): void {
    const listener: EraseListener = {
      onErase: (key, entries) =>
        this.database.write(() => void new GraphEraser(this.database.database).erase(key, entries)),
      forget: async (scope, texts) => {
        if (texts !== undefined) return this.forget(scope, texts)
        return (await this.erase(scope)) === 0 ? [] : ['graph']
      },
    }
    eraseListeners.add(listener)
    this.unsubscribe = () => eraseListeners.delete(listener)
  }

  async close(): Promise<void> {
    this.unsubscribe()
    await this.masking.settled()
    try {
      await this.nodes.wipe()
    } finally {
      await this.database.close()
      this.workspaces.close()
    }
  }

  /** Removes erased content from the write-ahead log. */
  private async truncateWal(workspaceName: string): Promise<void> {
    for (let attempts = 1; !(await this.database.truncateWal()); attempts++) {
      if (attempts === maxTruncateAttempts)
        throw new MemoryError(
          'busy',
          `The data is erased, but another reader blocks the cleanup of the log of ${workspaceName}. Erase it again in a moment.`,
        )
      // A transaction of this process that has paused ends meanwhile.
      await new Promise((resolve) => setTimeout(resolve, truncateRetryMs))
    }
  }

  private eraseAll({ id }: GraphWorkspace): number {
    const nodes = deleteNodes(this.database.database, 'home = ?', id)
    wipeIndexes(this.database.database)
    const [entities] = ['graph_entity', 'graph_relationship', 'graph_link'].map(
      (table) => this.database.run(`DELETE FROM ${table} WHERE home = ?`, id).changes,
    )
    return nodes + (entities as number)
  }

  /** Filters and sorts by properties in SQL, or in JavaScript after decryption if the workspace is encrypted. */
  private query<T extends Entity | Relationship>(
    workspaceName: string,
    page: GraphPageOptions,
    { table, parse, conditions }: QueryTarget<T>,
  ): Promise<{ readonly rows: readonly T[]; readonly total: number }> {
    const { limit, offset } = parsePage(page)
    const filters = page.filters ?? []
    const filterConditions = filters.map(filterCondition)
    return this.database.read(() => {
      const workspace = this.workspaces.find(workspaceName)
      if (workspace === undefined) return { rows: [], total: 0 }
      const { cipher } = workspace
      const where = joinWithAnd([...conditions(workspace), ...(cipher.isPlaintext ? filterConditions : [])])
      const order = orderBy(cipher.isPlaintext ? page.sort : [])
      const select = `SELECT ${columns} FROM ${table} WHERE ${where.sql} ORDER BY ${order.sql}`
      if (!cipher.isPlaintext) {
        const rows = this.database.all<Row>(select, ...where.values).map((row) => parse(row, cipher))
        const matching = rows.filter((row) => filters.every((filter) => matchesFilter(row, filter)))
        return { rows: sortRows(matching, page.sort).slice(offset, offset + limit), total: matching.length }
      }
      const rows = this.database.all<Row>(`${select} LIMIT ? OFFSET ?`, ...where.values, ...order.values, limit, offset)
      const count = `SELECT count(*) FROM ${table} WHERE ${where.sql}`
      const [total] = this.database.get<[number]>(count, ...where.values) ?? [0]
      return { rows: rows.map((row) => parse(row, cipher)), total }
    })
  }
}

function entityConditions({ id, cipher }: GraphWorkspace, { types, session }: EntityQuery): readonly Clause[] {
  return [
    { sql: 'home = ?', values: [id] },
    ...typeCondition(cipher, types),
    ...(session === undefined
      ? []
      : [{ sql: 'place IN (SELECT entity FROM graph_origin WHERE session = ?)', values: [session] }]),
  ]
}

function relationshipConditions(
  { id, cipher }: GraphWorkspace,
  { from, to, types, session }: RelationshipQuery,
): readonly Clause[] {
  return [
    { sql: 'home = ?', values: [id] },
    ...typeCondition(cipher, types),
    ...(from === undefined ? [] : [{ sql: 'source = ?', values: [cipher.digest('entity', from)] }]),
    ...(to === undefined ? [] : [{ sql: 'target = ?', values: [cipher.digest('entity', to)] }]),
    ...(session === undefined ? [] : [{ sql: 'session = ?', values: [session] }]),
  ]
}

const typeCondition = (cipher: GraphCipher, types: readonly string[] | undefined): readonly Clause[] =>
  types === undefined
    ? []
    : [
        {
          sql: 'kind IN (SELECT value FROM json_each(?))',
          values: [JSON.stringify(types.map((type) => cipher.digest('type', type)))],
        },
      ]
