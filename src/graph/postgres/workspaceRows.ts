import { getOrCompute } from '../../domain/keyed.ts'
import type { SqlSession } from '../../domain/ports.ts'
import { inSchema } from '../../stores/postgres/sql/shared.ts'
import { escapeText, unescapeText } from '../../stores/postgres/text.ts'
import type { GraphCipher } from '../cipher.ts'
import type { Row } from '../rows.ts'
import type { Origin } from '../types.ts'

type RowKind = 'entity' | 'relationship' | 'node' | 'observation' | 'link' | 'adopted'
type Value = string | number | null

/** Columns of a stored row. `node` is the place of the node of an observation. */
export type StoredCells = readonly [...Row, session: string | null, node: number | null, kind: RowKind]
const columns = 'place, ref, body, created, updated, session, node, kind'

/** Place and digest of a row, and the place of the node of an observation. */
type RowKey = readonly [place: number, ref: string, node: number | null]

/** Columns of a row to insert, or of an existing row to replace. */
export type RowValues = {
  readonly place: number
  readonly kind: RowKind
  readonly ref: string
  readonly body: string
  readonly type?: string
  readonly source?: string
  readonly target?: string
  readonly node?: number
  readonly session?: string
  readonly lower?: string | null
  readonly created?: number
  readonly updated?: number
}

/** Columns that have an index. */
type LookupColumn = 'ref' | 'place' | 'node' | 'source' | 'target'
type OriginCells = readonly [entity: number, session: string, message: string]

/** Rows per statement: a few milliseconds of work on this side. */
const rowsPerStatement = 500

/** Rows of one workspace in a transaction. Conditions may use the parameters from `$2` on; `$1` is the scope. */
export class WorkspaceRows {
  readonly cipher: GraphCipher
  private readonly session: SqlSession
  private readonly schema: string
  private readonly scope: string

  constructor(session: SqlSession, schema: string, scope: string, cipher: GraphCipher) {
    this.session = session
    this.schema = schema
    this.scope = scope
    this.cipher = cipher
  }

  /** Runs a statement on tables of the schema `tk`. */
  async query<T>(sql: string, ...values: readonly Value[]): Promise<readonly T[]> {
    const rows = await this.session.query(inSchema(sql)(this.schema), [this.scope, ...values])
    return rows as unknown as readonly T[]
  }

  async count(condition: string, ...values: readonly Value[]): Promise<number> {
    const sql = `SELECT count(*) FROM tk.graph_row WHERE scope = $1 AND ${condition}`
    const [row] = await this.query<[number]>(sql, ...values)
    return row?.[0] ?? 0
  }

  /** Reads rows in insertion order, page by page, so that other work runs meanwhile. */
  async *scan(condition: string, ...values: readonly Value[]): AsyncGenerator<readonly StoredCells[]> {
    await this.query(
      `DECLARE graph_rows NO SCROLL CURSOR FOR
        SELECT ${columns} FROM tk.graph_row WHERE scope = $1 AND ${condition} ORDER BY place`,
      ...values,
    )
    for (;;) {
      const page = await this.session.query(`FETCH ${rowsPerStatement} FROM graph_rows`)
      yield (page as unknown as readonly StoredCells[]).map(unescapeCells)
      if (page.length < rowsPerStatement) break
    }
    await this.session.query('CLOSE graph_rows')
  }

  async selectPage(
    condition: string,
    values: readonly Value[],
    limit: number,
    offset: number,
  ): Promise<readonly StoredCells[]> {
    const rows = await this.query<StoredCells>(
      `SELECT ${columns} FROM tk.graph_row WHERE scope = $1 AND ${condition} ORDER BY place LIMIT ${limit} OFFSET ${offset}`,
      ...values,
    )
    return rows.map(unescapeCells)
  }

  /** Selects the rows that have one of the values in a column, in insertion order. */
  async selectBy(column: LookupColumn, values: Iterable<string | number>, kind: RowKind): Promise<StoredCells[]> {
    return (await this.lookUp<StoredCells>(columns, column, values, kind)).map(unescapeCells)
  }

  /** Like `selectBy`, without the content. */
  selectKeys(column: LookupColumn, values: Iterable<string | number>, kind: RowKind): Promise<RowKey[]> {
    return this.lookUp<RowKey>('place, ref, node', column, values, kind)
  }

  async findPlaces(column: LookupColumn, values: Iterable<string | number>, kind: RowKind): Promise<readonly number[]> {
    return (await this.selectKeys(column, values, kind)).map(([place]) => place)
  }

  /**
   * Looks up each value in the index of its column. `OFFSET 0` keeps the planner from another way, which without
   * statistics takes seconds.
   */
  private async lookUp<T extends readonly [place: number, ...unknown[]]>(
    selected: string,
    column: LookupColumn,
    values: Iterable<string | number>,
    kind: RowKind,
  ): Promise<T[]> {
    const found: T[] = []
    const type = column === 'place' || column === 'node' ? 'bigint' : 'text'
    for (const chunk of chunks([...new Set(values)]))
      found.push(
        ...(await this.query<T>(
          `SELECT ${selected} FROM json_array_elements_text($2::json) v CROSS JOIN LATERAL (
            SELECT * FROM tk.graph_row WHERE scope = $1 AND ${column} = v.value::${type}
              ${column === 'ref' ? 'AND kind = $3' : ''} OFFSET 0) t WHERE kind = $3`,
          JSON.stringify(chunk),
          kind,
        )),
      )
    return found.sort(([left], [right]) => left - right)
  }

  /** Reserves places for new rows, in ascending order. */
  async reservePlaces(count: number): Promise<readonly number[]> {
    if (count === 0) return []
    const rows = await this.session.query(
      `SELECT nextval('${this.schema}.graph_place') FROM generate_series(1, $1::int)`,
      [count],
    )
    return rows.map(([place]) => place as number)
  }

  async insert(rows: readonly RowValues[]): Promise<void> {
    for (const chunk of chunks(rows))
      await this.query(
        `INSERT INTO tk.graph_row (scope, place, kind, ref, body, type, source, target, node, session, lower, created, updated)
          SELECT $1, r.place, r.kind, r.ref, r.body, r.type, r.source, r.target, r.node, r.session, r.lower, r.created, r.updated
          FROM json_to_recordset($2::json) AS r(${recordColumns})`,
        serializeRows(chunk),
      )
  }

  /** Replaces the content of rows by their places. */
  async update(rows: readonly RowValues[]): Promise<void> {
    for (const chunk of chunks(rows))
      await this.query(
        `UPDATE tk.graph_row t SET body = r.body, type = r.type, session = r.session, lower = r.lower,
            created = r.created, updated = r.updated
          FROM json_to_recordset($2::json) AS r(${recordColumns}) WHERE t.scope = $1 AND t.place = r.place`,
        serializeRows(chunk),
      )
  }

  async deleteRows(places: readonly number[]): Promise<void> {
    for (const chunk of chunks(places)) {
      const sql = `DELETE FROM tk.graph_row WHERE scope = $1 AND place = ${anyNumber('$2')}`
      await this.query(sql, JSON.stringify(chunk))
    }
  }

  /** Deletes entities with their relationships and origins. */
  async deleteEntities(places: readonly number[]): Promise<void> {
    const refs = (await this.selectKeys('place', places, 'entity')).map(([, ref]) => ref)
    await this.deleteOrigins(places)
    await this.deleteRows([...places, ...(await this.findWithEnd(refs, 'relationship'))])
  }

  /** Deletes nodes with their observations. */
  async deleteNodes(places: readonly number[]): Promise<void> {
    await this.deleteRows([...places, ...(await this.findPlaces('node', places, 'observation'))])
  }

  /** Returns the places of the relationships or links with one of the digests at an end, in insertion order. */
  async findWithEnd(digests: readonly string[], kind: 'relationship' | 'link'): Promise<readonly number[]> {
    const places = new Set([
      ...(await this.findPlaces('source', digests, kind)),
      ...(await this.findPlaces('target', digests, kind)),
    ])
    return [...places].sort((left, right) => left - right)
  }

  /** Selects the origins of entities, given by their places; of all entities without places. */
  async selectOrigins(places?: readonly number[]): Promise<ReadonlyMap<number, readonly Origin[]>> {
    const select = 'SELECT entity, session, message FROM tk.graph_origin WHERE scope = $1'
    const order = 'ORDER BY entity, session, message'
    const rows: OriginCells[] = []
    if (places === undefined) for (const row of await this.query<OriginCells>(`${select} ${order}`)) rows.push(row)
    else
      for (const chunk of chunks(places)) {
        const sql = `${select} AND entity = ${anyNumber('$2')} ${order}`
        for (const row of await this.query<OriginCells>(sql, JSON.stringify(chunk))) rows.push(row)
      }
    const origins = new Map<number, Origin[]>()
    for (const [entity, session, message] of rows)
      getOrCompute(origins, entity, () => []).push([unescapeText(session), unescapeText(message)])
    return origins
  }

  async deleteOrigins(places: readonly number[]): Promise<void> {
    for (const chunk of chunks(places)) {
      const sql = `DELETE FROM tk.graph_origin WHERE scope = $1 AND entity = ${anyNumber('$2')}`
      await this.query(sql, JSON.stringify(chunk))
    }
  }

  /** Adds origins to entities; those that exist are left. */
  async insertOrigins(origins: readonly (readonly [place: number, origin: Origin])[]): Promise<void> {
    for (const chunk of chunks(origins))
      await this.query(
        `INSERT INTO tk.graph_origin (scope, entity, session, message)
          SELECT $1, r.entity, r.session, r.message
          FROM json_to_recordset($2::json) AS r(entity bigint, session text, message text) ON CONFLICT DO NOTHING`,
        JSON.stringify(
          chunk.map(([entity, [session, message]]) => ({
            entity,
            session: escapeText(session),
            message: escapeText(message),
          })),
        ),
      )
  }
}

/** SQL of a comparison with any element of a JSON list in a parameter; written so that indexes are used. */
export const anyText = (parameter: string): string => `ANY (ARRAY(SELECT json_array_elements_text(${parameter}::json)))`
const anyNumber = (parameter: string): string =>
  `ANY (ARRAY(SELECT json_array_elements_text(${parameter}::json)::bigint))`

const unescapeCells = ([place, ref, body, created, updated, session, node, kind]: StoredCells): StoredCells => [
  ...([place, ref, body, created, updated] as const),
  session === null ? null : unescapeText(session),
  node,
  kind,
]

const recordColumns = `place bigint, kind text, ref text, body text, type text, source text, target text, node bigint,
  session text, lower text, created float8, updated float8`

const serializeRows = (rows: readonly RowValues[]): string =>
  JSON.stringify(rows.map((row) => (row.session === undefined ? row : { ...row, session: escapeText(row.session) })))

function* chunks<T>(values: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < values.length; start += rowsPerStatement)
    yield values.slice(start, start + rowsPerStatement)
}
