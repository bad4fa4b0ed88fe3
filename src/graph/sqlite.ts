import { MemoryError } from '../domain/error.ts'
import type { Clock } from '../domain/ports.ts'
import type { Heard, Listener } from '../stores/capabilities.ts'
import { deleteNodes, GraphEraser, graphKey, wipeIndexes } from '../stores/sqlite/graph.ts'
import { Archive } from './archive.ts'
import type { GraphFile } from './file.ts'
import type { Entity, EntityQuery, Graph, GraphChange, Page, Relationship, RelationshipQuery } from './graph.ts'
import type { Home, Homes } from './home.ts'
import { inOrder, isMatch } from './match.ts'
import { SqliteNodes } from './nodes.ts'
import { allOf, boundsOf, type Clause, conditionOf, orderOf } from './query.ts'
import { columns, entityOf, type Row, relationshipOf } from './rows.ts'
import type { Seal } from './seal.ts'
import { writeChange } from './write.ts'

/** So often a log is tried to be cleaned while others read or write. */
const patienceToClean = 10

/** A graph in the tables of a store's file. */
export class SqliteGraph implements Graph {
  readonly nodes: SqliteNodes
  readonly archive: Archive
  private readonly file: GraphFile
  private readonly homes: Homes
  private readonly clock: Clock
  private unfollow: () => void = () => undefined

  constructor(file: GraphFile, homes: Homes, clock: Clock) {
    this.file = file
    this.homes = homes
    this.clock = clock
    this.nodes = new SqliteNodes(file, homes, clock)
    this.archive = new Archive(file, homes, clock)
  }

  write(workspace: string, change: GraphChange): ReturnType<Graph['write']> {
    return this.file.write(() => {
      const at = this.clock()
      return writeChange(this.file, this.homes.make(workspace, at), change, at)
    })
  }

  entity(workspace: string, id: string): Promise<Entity | undefined> {
    return this.file.read(() => {
      const home = this.homes.find(workspace)
      const row =
        home &&
        this.file.one<Row>(
          `SELECT ${columns} FROM graph_entity WHERE home = ? AND ref = ?`,
          home.id,
          home.seal.ref('entity', id),
        )
      return row && entityOf(row, home.seal)
    })
  }

  async entities(workspace: string, query: EntityQuery = {}): ReturnType<Graph['entities']> {
    const { rows, total } = await this.page(workspace, 'graph_entity', query, entityOf, (home) =>
      ofEntities(home, query),
    )
    return { entities: rows, total }
  }

  async relationships(workspace: string, query: RelationshipQuery = {}): ReturnType<Graph['relationships']> {
    const { rows, total } = await this.page(workspace, 'graph_relationship', query, relationshipOf, (home) =>
      ofRelationships(home, query),
    )
    return { relationships: rows, total }
  }

  async erase(workspace: string, session?: string): Promise<number> {
    const gone = await this.file.write(() => {
      const home = this.homes.find(workspace)
      if (home === undefined) return 0
      return session === undefined
        ? this.eraseAll(home)
        : new GraphEraser(this.file.database).erase({ ...graphKey(workspace), id: session })
    })
    await this.clean(workspace)
    return gone
  }

  /** Forgets whatever says one of these texts, in whichever case; which rows, by their numbers. */
  async forget(workspace: string, texts: readonly string[]): Promise<readonly string[]> {
    const gone = await this.file.write(() => {
      const home = this.homes.find(workspace)
      if (home === undefined) return []
      const gone = this.archive.forget(home, texts)
      wipeIndexes(this.file.database)
      return gone
    })
    await this.clean(workspace)
    return gone
  }

  /** Forgets what a store forgets, for a graph that does not lie in its file. */
  follow({ listeners }: Heard): void {
    const listener: Listener = {
      erased: (key, entries) => this.file.write(() => void new GraphEraser(this.file.database).erase(key, entries)),
      forget: async (scope, texts) =>
        texts !== undefined ? this.forget(scope, texts) : (await this.erase(scope)) === 0 ? [] : ['graph'],
    }
    listeners.add(listener)
    this.unfollow = () => listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.unfollow()
    try {
      await this.nodes.wipe()
    } finally {
      await this.file.close()
      this.homes.close()
    }
  }

  /** Nothing of what is forgotten stays in the log. */
  private async clean(workspace: string): Promise<void> {
    for (let tries = 1; !(await this.file.clean()); tries++) {
      if (tries === patienceToClean)
        throw new MemoryError(
          'busy',
          `It is forgotten, but a reader keeps the log of ${workspace} from being cleaned. Forget it again in a moment.`,
        )
    }
  }

  private eraseAll({ id }: Home): number {
    const nodes = deleteNodes(this.file.database, 'home = ?', id)
    wipeIndexes(this.file.database)
    const [entities] = ['graph_entity', 'graph_relationship', 'graph_link'].map(
      (table) => this.file.run(`DELETE FROM ${table} WHERE home = ?`, id).changes,
    )
    return nodes + (entities as number)
  }

  /** Rows by what is indexed, then by what they say: in SQL where it can be read there, else here. */
  private page<T extends Entity | Relationship>(
    workspace: string,
    table: string,
    query: Page,
    told: (row: Row, seal: Seal) => T,
    among: (home: Home) => readonly Clause[],
  ): Promise<{ readonly rows: readonly T[]; readonly total: number }> {
    const { limit, offset } = boundsOf(query)
    const conditions = (query.filters ?? []).map(conditionOf)
    return this.file.read(() => {
      const home = this.homes.find(workspace)
      if (home === undefined) return { rows: [], total: 0 }
      const { seal } = home
      const where = allOf([...among(home), ...(seal.isPlain ? conditions : [])])
      const order = orderOf(seal.isPlain ? query.sort : [])
      const select = `SELECT ${columns} FROM ${table} WHERE ${where.sql} ORDER BY ${order.sql}`
      if (seal.isPlain) {
        const rows = this.file.all<Row>(`${select} LIMIT ? OFFSET ?`, ...where.values, ...order.values, limit, offset)
        const [total] = this.file.one<[number]>(
          `SELECT count(*) FROM ${table} WHERE ${where.sql}`,
          ...where.values,
        ) ?? [0]
        return { rows: rows.map((row) => told(row, seal)), total }
      }
      const opened = this.file.all<Row>(select, ...where.values).map((row) => told(row, seal))
      const matching = opened.filter((row) => (query.filters ?? []).every((filter) => isMatch(row, filter)))
      return { rows: inOrder(matching, query.sort).slice(offset, offset + limit), total: matching.length }
    })
  }
}

function ofEntities({ id, seal }: Home, { types, session }: EntityQuery): readonly Clause[] {
  return [
    { sql: 'home = ?', values: [id] },
    ...ofTypes(seal, types),
    ...(session === undefined
      ? []
      : [{ sql: 'place IN (SELECT entity FROM graph_origin WHERE session = ?)', values: [session] }]),
  ]
}

function ofRelationships({ id, seal }: Home, { from, to, types, session }: RelationshipQuery): readonly Clause[] {
  return [
    { sql: 'home = ?', values: [id] },
    ...ofTypes(seal, types),
    ...(from === undefined ? [] : [{ sql: 'source = ?', values: [seal.ref('entity', from)] }]),
    ...(to === undefined ? [] : [{ sql: 'target = ?', values: [seal.ref('entity', to)] }]),
    ...(session === undefined ? [] : [{ sql: 'session = ?', values: [session] }]),
  ]
}

const ofTypes = (seal: Seal, types: readonly string[] | undefined): readonly Clause[] =>
  types === undefined
    ? []
    : [
        {
          sql: 'kind IN (SELECT value FROM json_each(?))',
          values: [JSON.stringify(types.map((type) => seal.ref('type', type)))],
        },
      ]
