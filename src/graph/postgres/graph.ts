import { runInSlices, type Work } from '../../domain/work.ts'
import { escapeText } from '../../stores/postgres/text.ts'
import { yieldToEventLoop, yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import type { GraphCipher } from '../cipher.ts'
import { allRows, checkFilters, compileFilters, PageCollector, parsePage } from '../query.ts'
import { parseEntity, parseRelationship, type Row } from '../rows.ts'
import type {
  Entity,
  EntityQuery,
  Graph,
  GraphArchive,
  GraphChange,
  GraphPageOptions,
  NodeStore,
  Relationship,
  RelationshipQuery,
  StoreGraph,
} from '../types.ts'
import { deleteContaining, PostgresGraphArchive } from './archive.ts'
import { PostgresNodeStore } from './nodes.ts'
import { anyText, type StoredCells, type WorkspaceRows } from './workspaceRows.ts'
import type { PostgresWorkspaces } from './workspaces.ts'
import { writeChange } from './write.ts'

/** Cost of looking at a row, in characters. */
const rowWork = 40

/** Conditions on columns that hold digests, which work on encrypted rows too, and the values of their parameters. */
class Conditions {
  readonly values: string[] = []
  private readonly terms: string[]

  constructor(first: string) {
    this.terms = [first]
  }

  /** Adds a condition on a value, unless it is undefined. */
  add(value: string | undefined, condition: (parameter: string) => string): this {
    if (value === undefined) return this
    this.values.push(value)
    // The first parameter is the scope.
    this.terms.push(condition(`$${this.values.length + 1}`))
    return this
  }

  get sql(): string {
    return this.terms.join(' AND ')
  }
}

/** Graph in the PostgreSQL database of a store. */
export class PostgresGraph implements StoreGraph {
  readonly nodes: NodeStore
  readonly archive: GraphArchive
  private readonly workspaces: PostgresWorkspaces

  constructor(workspaces: PostgresWorkspaces) {
    this.workspaces = workspaces
    this.nodes = new PostgresNodeStore(workspaces)
    this.archive = new PostgresGraphArchive(workspaces)
  }

  write(workspace: string, change: GraphChange): ReturnType<Graph['write']> {
    return this.workspaces.write(workspace, (rows, at) => writeChange(rows, change, at))
  }

  getEntity(workspace: string, id: string): Promise<Entity | undefined> {
    return this.workspaces.read<Entity | undefined>(workspace, undefined, async (rows) => {
      const [cells] = await rows.selectBy('ref', [rows.cipher.digest('entity', id)], 'entity')
      return cells && parseEntity(toRow(cells), rows.cipher)
    })
  }

  async queryEntities(workspace: string, query: EntityQuery = {}): ReturnType<Graph['queryEntities']> {
    const { rows, total } = await this.query(workspace, query, parseEntity, (cipher) =>
      new Conditions("kind = 'entity'")
        .add(digestTypes(cipher, query.types), (types) => `type = ${anyText(types)}`)
        .add(
          escapeSession(query.session),
          (session) =>
            `place = ANY (ARRAY(SELECT entity FROM tk.graph_origin WHERE scope = $1 AND session = ${session}))`,
        ),
    )
    return { entities: rows, total }
  }

  async queryRelationships(workspace: string, query: RelationshipQuery = {}): ReturnType<Graph['queryRelationships']> {
    const { rows, total } = await this.query(workspace, query, parseRelationship, (cipher) =>
      new Conditions("kind = 'relationship'")
        .add(digestTypes(cipher, query.types), (types) => `type = ${anyText(types)}`)
        .add(digestEntity(cipher, query.from), (from) => `source = ${from}`)
        .add(digestEntity(cipher, query.to), (to) => `target = ${to}`)
        .add(escapeSession(query.session), (session) => `session = ${session}`),
    )
    return { relationships: rows, total }
  }

  erase(workspace: string, session?: string): Promise<number> {
    return this.workspaces.change(workspace, 0, (rows) =>
      session === undefined ? eraseAll(rows) : eraseSession(rows, session),
    )
  }

  forget(workspace: string, texts: readonly string[]): Promise<readonly string[]> {
    return this.workspaces.change<readonly string[]>(workspace, [], (rows) => deleteContaining(rows, texts))
  }

  close(): Promise<void> {
    return this.workspaces.close()
  }

  /** Filters and sorts by properties in JavaScript, which gives the same result for encrypted rows. */
  private async query<T extends Entity | Relationship>(
    workspace: string,
    page: GraphPageOptions,
    parse: (row: Row, cipher: GraphCipher) => T,
    createConditions: (cipher: GraphCipher) => Conditions,
  ): Promise<{ readonly rows: readonly T[]; readonly total: number }> {
    const { limit, offset } = parsePage(page)
    const { filters = [], sort = [] } = page
    checkFilters(filters)
    return this.workspaces.read<{ rows: readonly T[]; total: number }>(
      workspace,
      { rows: [], total: 0 },
      async (rows) => {
        const { sql, values } = createConditions(rows.cipher)
        if (filters.length + sort.length === 0 && limit !== allRows) {
          const cells = await rows.selectPage(sql, values, limit, offset)
          return { rows: cells.map((row) => parse(toRow(row), rows.cipher)), total: await rows.count(sql, ...values) }
        }
        const collector = new PageCollector<T>({ limit, offset, sort })
        const matches = await runInSlices(compileFilters(filters), yieldWhenLong)
        const collect = function* (page: readonly StoredCells[]): Work<void> {
          for (const cells of page) {
            const row = parse(toRow(cells), rows.cipher)
            if (yield* matches(row)) collector.add(row)
            yield rowWork
          }
        }
        for await (const page of rows.scan(sql, ...values)) await runInSlices(collect(page), yieldWhenLong)
        return { rows: await runInSlices(collector.finish(), yieldToEventLoop), total: collector.total }
      },
    )
  }
}

const toRow = ([rowId, digest, body, created, updated]: StoredCells): Row => [rowId, digest, body, created, updated]

const digestTypes = (cipher: GraphCipher, types: readonly string[] | undefined): string | undefined =>
  types && JSON.stringify(types.map((type) => cipher.digest('type', type)))
const digestEntity = (cipher: GraphCipher, id: string | undefined): string | undefined =>
  id === undefined ? undefined : cipher.digest('entity', id)
const escapeSession = (session: string | undefined): string | undefined =>
  session === undefined ? undefined : escapeText(session)

/** Erases everything but the fact that a file was imported. Returns the number of entities and nodes. */
async function eraseAll(rows: WorkspaceRows): Promise<number> {
  const count = await rows.count("kind IN ('entity', 'node')")
  await rows.query('DELETE FROM tk.graph_origin WHERE scope = $1')
  await rows.query("DELETE FROM tk.graph_row WHERE scope = $1 AND kind <> 'adopted'")
  return count
}

/** Returns the number of entities. */
async function eraseSession(rows: WorkspaceRows, session: string): Promise<number> {
  const [row] = await rows.query<[number]>('SELECT tk.erase_from_graph($1, $2, NULL)', escapeText(session))
  return row?.[0] ?? 0
}
