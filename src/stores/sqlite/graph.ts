import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { MemoryError } from '../../domain/error.ts'
import { graphKey, type Key, type Scope } from '../../domain/key.ts'
import { runSync, type Work } from '../../domain/work.ts'
import { type PreparedStatements, prepareStatements } from './prepare.ts'

/** Newest format of the graph tables; every schema change increments it. */
const graphFormat = 4

/** Indexes of the rows without a search text, which every search reads. */
const indexesOfLongTexts = `
  CREATE INDEX graph_node_long ON graph_node (home) WHERE lower IS NULL;
  CREATE INDEX graph_observation_long ON graph_observation (node) WHERE lower IS NULL;`

/** Indexes of the rows of a workspace in insertion order, which are selected range by range. */
const indexesOfWorkspaces = `
  CREATE INDEX graph_entity_home ON graph_entity (home);
  CREATE INDEX graph_relationship_home ON graph_relationship (home);
  CREATE INDEX graph_node_home ON graph_node (home);
  CREATE INDEX graph_link_home ON graph_link (home);`

/**
 * Tables of a graph, created when one is first opened on a file. `home` is the session of `graphKey`. Lookup columns
 * (`ref`, `kind`, `source`, `target`) are digests; `body` holds the content; `lower` is the search text, NULL in an
 * encrypted store and for a long text. `place` increases with every inserted row.
 */
export const graphSchema = `
  CREATE TABLE graph_entity (
    place INTEGER PRIMARY KEY,
    home INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    ref TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    UNIQUE (home, ref)
  ) STRICT;
  CREATE INDEX graph_entity_kind ON graph_entity (home, kind);

  -- Messages an entity was extracted from; message '' means the session as a whole.
  CREATE TABLE graph_origin (
    entity INTEGER NOT NULL REFERENCES graph_entity (place) ON DELETE CASCADE,
    session TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (entity, session, message)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX graph_origin_session ON graph_origin (session, message);

  CREATE TABLE graph_relationship (
    place INTEGER PRIMARY KEY,
    home INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    ref TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    kind TEXT NOT NULL,
    session TEXT,
    body TEXT NOT NULL,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    UNIQUE (home, ref)
  ) STRICT;
  CREATE INDEX graph_relationship_source ON graph_relationship (home, source);
  CREATE INDEX graph_relationship_target ON graph_relationship (home, target);
  CREATE INDEX graph_relationship_kind ON graph_relationship (home, kind);
  CREATE INDEX graph_relationship_session ON graph_relationship (home, session);
  CREATE TRIGGER graph_entity_gone AFTER DELETE ON graph_entity BEGIN
    DELETE FROM graph_relationship WHERE home = old.home AND source = old.ref;
    DELETE FROM graph_relationship WHERE home = old.home AND target = old.ref;
  END;

  CREATE TABLE graph_node (
    place INTEGER PRIMARY KEY,
    home INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    ref TEXT NOT NULL,
    body TEXT NOT NULL,
    lower TEXT
  ) STRICT;
  CREATE INDEX graph_node_ref ON graph_node (home, ref);

  CREATE TABLE graph_observation (
    place INTEGER PRIMARY KEY,
    node INTEGER NOT NULL REFERENCES graph_node (place) ON DELETE CASCADE,
    ref TEXT NOT NULL,
    body TEXT NOT NULL,
    lower TEXT
  ) STRICT;
  CREATE INDEX graph_observation_ref ON graph_observation (node, ref);
  CREATE INDEX graph_observation_node ON graph_observation (node);

  CREATE TABLE graph_link (
    place INTEGER PRIMARY KEY,
    home INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    ref TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX graph_link_ref ON graph_link (home, ref);
  CREATE INDEX graph_link_source ON graph_link (home, source);
  CREATE INDEX graph_link_target ON graph_link (home, target);

  -- Workspaces that have imported a file of the reference memory server.
  CREATE TABLE graph_adopted (home INTEGER PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE, at REAL NOT NULL) STRICT;

  ${trigramIndex('graph_node')}
  ${trigramIndex('graph_observation')}
  ${indexesOfLongTexts}
  ${indexesOfWorkspaces}

  INSERT INTO meta VALUES ('graph', ${graphFormat});
`

/**
 * SQL for a trigram index over a table's `lower`, with row numbers but without positions (`detail = none`). It is
 * updated explicitly: a trigger would merge the index after every row.
 */
function trigramIndex(table: IndexedTable): string {
  return `
  CREATE VIRTUAL TABLE ${table}_words
    USING fts5 (lower, content = '${table}', content_rowid = 'place', tokenize = 'trigram case_sensitive 1', columnsize = 0, detail = none);`
}

/** Tables with primary data, referenced ones first; the others can be rebuilt from them. */
export const graphDataTables = [
  'graph_entity',
  'graph_relationship',
  'graph_node',
  'graph_observation',
  'graph_link',
] as const

type IndexedTable = 'graph_node' | 'graph_observation'
type Values = readonly (string | number)[]

/** SQL that rebuilds the index of a table from its rows. */
const rebuildIndex = (table: IndexedTable): string => `INSERT INTO ${table}_words (${table}_words) VALUES ('rebuild');`
export const rebuildGraphIndexes = rebuildIndex('graph_node') + rebuildIndex('graph_observation')

/** Deleted rows from which on it is worth counting those that remain. */
const minRowsToRebuild = 500

/**
 * Deletes rows of a table and of its index; returns their number. The index keeps deletion markers until `wipeIndexes`.
 */
function deleteIndexed(database: DatabaseSync, table: IndexedTable, where: string, ...values: Values): number {
  const count = (from: string, ...values: Values): number =>
    Number(database.prepare(`SELECT count(*) AS count ${from}`).get(...values)?.count)
  const indexed = count(`FROM ${table} WHERE ${where} AND lower IS NOT NULL`, ...values)
  // Rebuilding the index of the remaining rows is then faster than writing that many markers.
  const shouldRebuild = indexed >= minRowsToRebuild && indexed * 2 > count(`FROM ${table}`)
  if (indexed > 0 && !shouldRebuild) removeFromIndex(database, table, where, ...values)
  const { changes } = database.prepare(`DELETE FROM ${table} WHERE ${where}`).run(...values)
  if (shouldRebuild) database.exec(rebuildIndex(table))
  return Number(changes)
}

/** Pages of an index merged by one statement: about a millisecond of work. */
const mergedPages = 16
/** Cost of deleting a row, in characters. */
const deletionWork = 40

/**
 * Yielded instead of a cost, after up to 200 deleted rows, where a deletion may commit and continue in another
 * transaction, before which others may write: it uses no row ids from before.
 */
export const commitPoint = Number.POSITIVE_INFINITY

/** Removes the trigrams of deleted rows from the indexes by merging each into a single segment. */
const wipeIndexes = (database: DatabaseSync): void => runSync(wipeIndexesInSteps(database))

/** `wipeIndexes` as interruptible work. */
export function* wipeIndexesInSteps(database: DatabaseSync): Work<void> {
  for (const table of ['graph_node', 'graph_observation']) {
    // By default, a merge of fewer than four segments ends early if others add as many between two steps.
    database.exec(`INSERT INTO ${table}_words (${table}_words, rank) VALUES ('usermerge', 2)`)
    const merge = database.prepare(`INSERT INTO ${table}_words (${table}_words, rank) VALUES ('merge', ?)`)
    const total = database.prepare('SELECT total_changes() AS changes')
    const countChanges = (): number => Number(total.get()?.changes)
    // A negative number begins a merge of all segments, a positive one continues it. The statement itself is a change.
    let pages = -mergedPages
    for (let before = Number.NEGATIVE_INFINITY; countChanges() - before >= 2; ) {
      before = countChanges()
      merge.run(pages)
      pages = mergedPages
      yield commitPoint
    }
  }
}

/** Removes rows from a table's index; must be called before they are deleted or their text changes. */
export function removeFromIndex(database: DatabaseSync, table: IndexedTable, where: string, ...values: Values): void {
  const rows = `FROM ${table} WHERE ${where} AND lower IS NOT NULL`
  database
    .prepare(`INSERT INTO ${table}_words (${table}_words, rowid, lower) SELECT 'delete', place, lower ${rows}`)
    .run(...values)
}

/** Rows and bytes deleted by one statement: the trigrams of 64 KB take up to 20 ms. */
const rowsPerDeletion = 200
const bytesPerDeletion = 65_536

type RowTable = 'graph_entity' | 'graph_relationship' | 'graph_link' | IndexedTable
/** Rows with one of the row ids, given as a JSON list. */
export const hasRowId = 'place IN (SELECT value FROM json_each(?))'

/** Splits row ids of a table into as many as one statement deletes. */
function* chunksToDelete(
  database: DatabaseSync,
  table: RowTable,
  rowIds: readonly number[],
): Generator<readonly number[]> {
  const isIndexed = table === 'graph_node' || table === 'graph_observation'
  const bytes = isIndexed ? 'octet_length(body) + ifnull(octet_length(lower), 0)' : 'octet_length(body)'
  const select = database.prepare(`SELECT place, ${bytes} AS bytes FROM ${table} WHERE ${hasRowId}`)
  for (let at = 0; at < rowIds.length; at += rowsPerDeletion) {
    let [chunk, chunkBytes]: [number[], number] = [[], 0]
    for (const row of select.all(JSON.stringify(rowIds.slice(at, at + rowsPerDeletion)))) {
      if (chunkBytes > bytesPerDeletion) {
        yield chunk
        ;[chunk, chunkBytes] = [[], 0]
      }
      chunk.push(Number(row.place))
      chunkBytes += Number(row.bytes)
    }
    if (chunk.length > 0) yield chunk
  }
}

/**
 * Deletes rows by their ids in steps, and from the index of their table; returns their number. The relationships of
 * entities should be deleted before: the trigger deletes those of each entity in one piece.
 */
export function* deleteRowsInSteps(database: DatabaseSync, table: RowTable, rowIds: readonly number[]): Work<number> {
  let deleted = 0
  for (const chunk of chunksToDelete(database, table, rowIds)) {
    const ids = JSON.stringify(chunk)
    if (table === 'graph_node' || table === 'graph_observation') deleteIndexed(database, table, hasRowId, ids)
    else database.prepare(`DELETE FROM ${table} WHERE ${hasRowId}`).run(ids)
    deleted += chunk.length
    yield chunk.length * deletionWork
  }
  return deleted
}

/**
 * Deletes the relationships or links of a workspace that have one of the digests at an end, in steps; returns their
 * number.
 */
export function* deleteByEndsInSteps(
  database: DatabaseSync,
  table: 'graph_relationship' | 'graph_link',
  { scope, id }: Key,
  digests: readonly string[],
): Work<number> {
  let deleted = 0
  for (const end of ['source', 'target'])
    deleted += yield* deleteWhereInSteps(
      database,
      table,
      `${inHome} AND ${end} IN (SELECT value FROM json_each(?))`,
      ...[scope, id, JSON.stringify(digests)],
    )
  return deleted
}

/** Deletes nodes with their observations in steps; returns the number of nodes. */
export function* deleteNodesInSteps(database: DatabaseSync, where: string, ...values: Values): Work<number> {
  const ofNodes = 'node IN (SELECT value FROM json_each(?))'
  for (let deleted = 0; ; ) {
    const nodes = selectToDelete(database, 'graph_node', where, ...values)
    if (nodes.length === 0) return deleted
    const observations = selectToDelete(database, 'graph_observation', ofNodes, JSON.stringify(nodes))
    if (observations.length > 0) yield* deleteRowsInSteps(database, 'graph_observation', observations)
    else deleted += yield* deleteRowsInSteps(database, 'graph_node', nodes)
    yield commitPoint
  }
}

/** Deletes rows other than nodes in steps; returns their number. */
export function* deleteWhereInSteps(
  database: DatabaseSync,
  table: RowTable,
  where: string,
  ...values: Values
): Work<number> {
  for (let deleted = 0; ; ) {
    const rowIds = selectToDelete(database, table, where, ...values)
    if (rowIds.length === 0) return deleted
    deleted += yield* deleteRowsInSteps(database, table, rowIds)
    yield commitPoint
  }
}

/** Selects some of the rows that meet a condition, as many as are deleted at a time. */
const selectToDelete = (database: DatabaseSync, table: RowTable, where: string, ...values: Values): readonly number[] =>
  database
    .prepare(`SELECT place FROM ${table} WHERE ${where} LIMIT ${rowsPerDeletion}`)
    .all(...values)
    .map(({ place }) => Number(place))

/** Deletes nodes with their observations; returns the number of nodes. */
function deleteNodes(database: DatabaseSync, where: string, ...values: Values): number {
  deleteIndexed(database, 'graph_observation', `node IN (SELECT place FROM graph_node WHERE ${where})`, ...values)
  return deleteIndexed(database, 'graph_node', where, ...values)
}

/** Creates or upgrades the graph tables in one transaction. Throws `bad-store` for tables of a newer release. */
export function prepareGraph(database: DatabaseSync, path: string): void {
  if (checkFormat(database, path) === graphFormat) return
  database.exec('BEGIN IMMEDIATE')
  try {
    // Another process may have done it while this one waited for the lock.
    const found = checkFormat(database, path)
    if (found === undefined) database.exec(graphSchema)
    else for (let format = found; format < graphFormat; format++) database.exec(upgrades[format] ?? '')
    database.exec('COMMIT')
  } catch (error) {
    database.exec('ROLLBACK')
    throw error
  }
}

const setFormat = `UPDATE meta SET value = value + 1 WHERE name = 'graph';`

/** SQL that upgrades tables by the format they have. Format 1 had indexes with positions, three times as large. */
const upgrades: Readonly<Record<number, string>> = {
  1: `
    DROP TABLE graph_node_words;
    DROP TABLE graph_observation_words;
    ${trigramIndex('graph_node')}
    ${trigramIndex('graph_observation')}
    ${rebuildGraphIndexes}
    ${setFormat}`,
  2: indexesOfLongTexts + setFormat,
  3: indexesOfWorkspaces + setFormat,
}

/** Reads the format of the graph tables of a file; undefined if it has none. */
export const readGraphFormat = (database: DatabaseSync): number | undefined =>
  (database.prepare("SELECT value FROM meta WHERE name = 'graph'").get() as { value: number } | undefined)?.value

function checkFormat(database: DatabaseSync, path: string): number | undefined {
  const version = readGraphFormat(database)
  if (version === undefined || version <= graphFormat) return version
  throw new MemoryError(
    'bad-store',
    `The graph in ${path} was written by a newer Threadkeep (format ${version}; this version supports up to ${graphFormat}). Update Threadkeep.`,
  )
}

const homeId = 'SELECT id FROM session WHERE scope = ? AND name = ?'
const nextOrigins = `ORDER BY message, entity LIMIT ${rowsPerDeletion}`
const statements = {
  home: homeId,
  originsOfSession: `SELECT message, entity FROM graph_origin WHERE session = ? AND (message, entity) > (?, ?) ${nextOrigins}`,
  originsOfMessage: `SELECT message, entity FROM graph_origin WHERE session = ? AND message = ? AND entity > ? ${nextOrigins}`,
  entitiesInHome: `SELECT place FROM graph_entity WHERE home = (${homeId}) AND ${hasRowId}`,
  deleteOrigins: 'DELETE FROM graph_origin WHERE session = ? AND entity IN (SELECT value FROM json_each(?))',
  withoutOtherOrigin: `SELECT place, ref FROM graph_entity WHERE ${hasRowId}
    AND NOT EXISTS (SELECT 1 FROM graph_origin WHERE entity = place AND session <> ?)`,
} as const
/** Row id of the session with the graph of a scope. It is looked up by each statement: a later session can get it. */
export const inHome = `home = (${homeId})`

/**
 * Erases graph data that was extracted from erased messages. An entity is deleted with the last message it was
 * extracted from.
 */
export class GraphEraser {
  private readonly database: DatabaseSync
  private prepared: PreparedStatements<typeof statements> | undefined

  constructor(database: DatabaseSync) {
    this.database = database
  }

  /**
   * Erases data extracted from a session, or only from these messages of it; returns the number of deleted entities.
   */
  erase(key: Key, messages?: readonly string[]): number {
    return runSync(this.eraseInSteps(key, messages))
  }

  /** `erase` as interruptible work. */
  *eraseInSteps({ scope, id }: Key, messages?: readonly string[]): Work<number> {
    const sql = this.statements()
    if (sql === undefined) return 0
    const workspace = graphKey(scope)
    const graph = workspace.id
    // Its other rows are deleted by foreign key cascade.
    if (id === graph && messages === undefined) return this.eraseNodes(scope, graph)
    if (sql.home.get(scope, graph) === undefined) return 0
    const home = [scope, graph] as const
    if (messages === undefined) {
      yield* deleteWhereInSteps(this.database, 'graph_relationship', `${inHome} AND session = ?`, ...home, id)
      return yield* this.eraseOrigins(workspace, sql.originsOfSession, id, '')
    }
    let deleted = 0
    for (const message of messages) deleted += yield* this.eraseOrigins(workspace, sql.originsOfMessage, id, message)
    return deleted
  }

  /**
   * Deletes the origins in a session of its entities, or of those from one message, and the entities that have no
   * other; returns the number of deleted entities.
   */
  private *eraseOrigins(key: Key, origins: StatementSync, session: string, message: string): Work<number> {
    const sql = this.statements()
    const home = [key.scope, key.id] as const
    let deleted = 0
    for (let last: readonly [message: string, entity: number] = [message, 0]; sql !== undefined; ) {
      const page = origins.all(session, ...last) as unknown as (typeof last)[]
      const inPage = JSON.stringify(page.map(([, entity]) => entity))
      const found = sql.entitiesInHome.all(...home, inPage) as unknown as [number][]
      const entities = JSON.stringify(found.map(([place]) => place))
      const left = sql.withoutOtherOrigin.all(entities, session) as unknown as [place: number, ref: string][]
      const digests = left.map(([, ref]) => ref)
      // Others may have written after these were deleted.
      if ((yield* deleteByEndsInSteps(this.database, 'graph_relationship', key, digests)) > 0) continue
      sql.deleteOrigins.run(session, entities)
      const rowIds = left.map(([place]) => place)
      deleted += yield* deleteRowsInSteps(this.database, 'graph_entity', rowIds)
      yield commitPoint
      const end = page.at(-1)
      if (end === undefined || page.length < rowsPerDeletion) break
      last = end
    }
    return deleted
  }

  private eraseNodes(scope: Scope, graph: string): number {
    const count = deleteNodes(this.database, inHome, scope, graph)
    wipeIndexes(this.database)
    return count
  }

  /** Prepared on demand: another process may create the graph tables at any time. */
  private statements(): PreparedStatements<typeof statements> | undefined {
    if (this.prepared === undefined && readGraphFormat(this.database) !== undefined)
      this.prepared = prepareStatements(this.database, statements)
    return this.prepared
  }
}
