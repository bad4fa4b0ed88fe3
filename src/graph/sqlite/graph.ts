import { graphKey } from '../../domain/key.ts'
import type { Clock, EraseListener } from '../../domain/ports.ts'
import type { Work } from '../../domain/work.ts'
import type { ForgetOptions } from '../../memory/forget.ts'
import { deleteNodesInSteps, deleteWhereInSteps, GraphEraser, inHome } from '../../stores/sqlite/graph.ts'
import type { GraphCipher } from '../cipher.ts'
import { checkFilters, compileFilters, PageCollector, parsePage } from '../query.ts'
import { columns, parseEntity, parseRelationship, type Row } from '../rows.ts'
import type {
  Entity,
  EntityQuery,
  Graph,
  GraphChange,
  GraphPageOptions,
  Relationship,
  RelationshipQuery,
  StoreGraph,
} from '../types.ts'
import { SqliteGraphArchive } from './archive.ts'
import type { GraphDatabase } from './database.ts'
import { readPages, rowWork } from './nodeRows.ts'
import { SqliteNodeStore } from './nodes.ts'
import { filterRowIds, type RowTable, selectEntityIdsOfSession, selectRowIds } from './rowIds.ts'
import type { GraphWorkspace, GraphWorkspaces } from './workspaces.ts'
import { writeChange } from './write.ts'

type QueryTarget<T> = {
  readonly table: RowTable
  readonly parse: (row: Row, cipher: GraphCipher) => T
  /** Selects row ids by indexed columns, which hold digests and so work on encrypted rows too. */
  readonly select: (workspace: GraphWorkspace) => Work<readonly number[]>
}

/** Graph in the SQLite file of a store, or in memory. */
export class SqliteGraph implements StoreGraph {
  readonly nodes: SqliteNodeStore
  readonly archive: SqliteGraphArchive
  private readonly database: GraphDatabase
  private readonly workspaces: GraphWorkspaces
  private readonly clock: Clock
  private readonly erasures = new Set<Promise<unknown>>()
  private unsubscribe: () => void = () => undefined

  constructor(database: GraphDatabase, workspaces: GraphWorkspaces, clock: Clock) {
    this.database = database
    this.workspaces = workspaces
    this.clock = clock
    this.nodes = new SqliteNodeStore(database, workspaces, clock)
    this.archive = new SqliteGraphArchive(database, workspaces, clock)
  }

  async write(workspaceName: string, change: GraphChange): ReturnType<Graph['write']> {
    const { database, workspaces } = this
    const counts = await database.writeInParts(() =>
      writeChange(database, workspaces, workspaceName, change, this.clock()),
    )
    if (counts.dropped > 0) this.database.noteErasure()
    return counts
  }

  getEntity(workspaceName: string, id: string): Promise<Entity | undefined> {
    return this.database.read(() => {
      const workspace = this.workspaces.find(workspaceName)
      if (workspace === undefined) return undefined
      const row = this.database.get<Row>(
        `SELECT ${columns} FROM graph_entity WHERE home = ? AND ref = ?`,
        workspace.id,
        workspace.cipher.digest('entity', id),
      )
      return row && parseEntity(row, workspace.cipher)
    })
  }

  async queryEntities(workspaceName: string, query: EntityQuery = {}): ReturnType<Graph['queryEntities']> {
    const { rows, total } = await this.query(workspaceName, query, {
      table: 'graph_entity',
      parse: parseEntity,
      select: (workspace) => selectEntityIds(this.database, workspace, query),
    })
    return { entities: rows, total }
  }

  async queryRelationships(
    workspaceName: string,
    query: RelationshipQuery = {},
  ): ReturnType<Graph['queryRelationships']> {
    const { rows, total } = await this.query(workspaceName, query, {
      table: 'graph_relationship',
      parse: parseRelationship,
      select: (workspace) => selectRelationshipIds(this.database, workspace, query),
    })
    return { relationships: rows, total }
  }

  erase(workspaceName: string, session?: string, { deferWipe }: ForgetOptions = {}): Promise<number> {
    const work = () => this.eraseInSteps(workspaceName, session)
    return this.finishBeforeClose(deferWipe, () =>
      session === undefined ? this.nodes.eraseInSteps(work) : this.database.eraseInSteps(work),
    )
  }

  /** Erases the rows that contain one of the texts, ignoring case. Returns them as kind and row id. */
  forget(
    workspaceName: string,
    texts: readonly string[],
    { deferWipe }: ForgetOptions = {},
  ): Promise<readonly string[]> {
    return this.finishBeforeClose(deferWipe, async () => {
      // Finds what was written before the call.
      await this.database.write(() => undefined)
      const found = await this.archive.findContaining(workspaceName, texts)
      return this.nodes.eraseInSteps(() => this.archive.deleteContaining(workspaceName, texts, found))
    })
  }

  /** Runs an erasure and, unless that is deferred, wipes the file. Lets `close` wait for it. */
  private async finishBeforeClose<T>(deferWipe: boolean | undefined, erase: () => Promise<T>): Promise<T> {
    const erasure = erase().then(async (erased) => {
      if (deferWipe !== true) await this.database.wipe()
      return erased
    })
    this.erasures.add(erasure)
    try {
      return await erasure
    } finally {
      this.erasures.delete(erasure)
    }
  }

  /** Erases whatever a store erases, for a graph that is not in the store's file. */
  followErasures(eraseListeners: Set<EraseListener>): void {
    const listener: EraseListener = {
      onErase: async (key, entries) =>
        void (await this.database.writeInSteps(() =>
          new GraphEraser(this.database.database).eraseInSteps(key, entries),
        )),
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
    await Promise.allSettled(this.erasures)
    try {
      await this.nodes.wipe()
    } finally {
      await this.database.close()
      this.workspaces.close()
    }
  }

  private *eraseInSteps(workspaceName: string, session: string | undefined): Work<number> {
    if (this.workspaces.find(workspaceName) === undefined) return 0
    const { database } = this.database
    const { scope, id } = graphKey(workspaceName)
    if (session !== undefined) return yield* new GraphEraser(database).eraseInSteps({ ...graphKey(scope), id: session })
    const nodes = yield* deleteNodesInSteps(database, inHome, scope, id)
    yield* deleteWhereInSteps(database, 'graph_relationship', inHome, scope, id)
    yield* deleteWhereInSteps(database, 'graph_link', inHome, scope, id)
    return nodes + (yield* deleteWhereInSteps(database, 'graph_entity', inHome, scope, id))
  }

  /** Filters and sorts by properties in JavaScript, which gives the same result for encrypted rows. */
  private query<T extends Entity | Relationship>(
    workspaceName: string,
    page: GraphPageOptions,
    { table, parse, select }: QueryTarget<T>,
  ): Promise<{ readonly rows: readonly T[]; readonly total: number }> {
    const { limit, offset } = parsePage(page)
    const { filters = [], sort = [] } = page
    checkFilters(filters)
    const { database, workspaces } = this
    return database.readInSteps(function* (): Work<{ readonly rows: readonly T[]; readonly total: number }> {
      const workspace = workspaces.find(workspaceName)
      if (workspace === undefined) return { rows: [], total: 0 }
      const rowIds = yield* select(workspace)
      const matches = yield* compileFilters(filters)
      const isFiltered = filters.length + sort.length > 0
      const collector = new PageCollector<T>(isFiltered ? { limit, offset, sort } : { limit, offset: 0 })
      const candidates = isFiltered ? rowIds : rowIds.slice(offset, offset + limit)
      for (const rows of readPages<QueriedRow>(database, table, queriedColumns, candidates)) {
        for (const [rowId, digest, created, updated, body] of rows) {
          const row = parse([rowId, digest, body, created, updated], workspace.cipher)
          if (yield* matches(row)) collector.add(row)
          yield rowWork
        }
      }
      return { rows: yield* collector.finish(), total: isFiltered ? collector.total : rowIds.length }
    })
  }
}

/** Columns of a row with its content as the last one. */
type QueriedRow = readonly [rowId: number, digest: string, created: number, updated: number, body: string]
const queriedColumns = 'place, ref, created, updated, body'

function* selectEntityIds(
  database: GraphDatabase,
  workspace: GraphWorkspace,
  { types, session }: EntityQuery,
): Work<readonly number[]> {
  const { sql, values } = joinWithAnd(typeCondition(workspace.cipher, types))
  if (session === undefined) return yield* selectRowIds(database, 'graph_entity', workspace, sql, values)
  const ofSession = yield* selectEntityIdsOfSession(database, session)
  return yield* filterRowIds(database, 'graph_entity', workspace, ofSession, sql, values)
}

function selectRelationshipIds(
  database: GraphDatabase,
  workspace: GraphWorkspace,
  { from, to, types, session }: RelationshipQuery,
): Work<readonly number[]> {
  const { cipher } = workspace
  const { sql, values } = joinWithAnd([
    ...typeCondition(cipher, types),
    ...(from === undefined ? [] : [{ sql: 'source = ?', values: [cipher.digest('entity', from)] }]),
    ...(to === undefined ? [] : [{ sql: 'target = ?', values: [cipher.digest('entity', to)] }]),
    ...(session === undefined ? [] : [{ sql: 'session = ?', values: [session] }]),
  ])
  return selectRowIds(database, 'graph_relationship', workspace, sql, values)
}

/** SQL condition with its parameters in order. */
type Condition = { readonly sql: string; readonly values: readonly (string | number)[] }

const joinWithAnd = (conditions: readonly Condition[]): Condition => ({
  sql: ['TRUE', ...conditions.map(({ sql }) => sql)].join(' AND '),
  values: conditions.flatMap(({ values }) => values),
})

const typeCondition = (cipher: GraphCipher, types: readonly string[] | undefined): readonly Condition[] =>
  types === undefined
    ? []
    : [
        {
          sql: 'kind IN (SELECT value FROM json_each(?))',
          values: [JSON.stringify(types.map((type) => cipher.digest('type', type)))],
        },
      ]
