import type { DatabaseSync } from 'node:sqlite'
import { MemoryError } from '../../domain/error.ts'
import { type Key, parseStoredKey, type Scope } from '../../domain/key.ts'
import { type Prepared, prepare } from './prepare.ts'

/** The engine's own session of a scope that its graph belongs to: whoever forgets the scope forgets it too, and the graph with it. */
export const graphKey = (scope: Scope): Key => parseStoredKey(`${scope}::graph`)

/** The newest form of the tables; a change is a new one. */
const format = 2

/**
 * The tables of a graph, made when one is first opened on a file. `home` is the session above. What is looked up is a
 * digest (`ref`, `kind`, `source`, `target`), what is said stands in `body`; `lower` is what it is searched by, and left
 * out where the store is encrypted. A row written later has a larger number than those that are there.
 */
export const graphTables = `
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

  -- The messages an entity was drawn from; one that was drawn from a session as a whole has the message ''.
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

  -- Workspaces into which a file of the reference memory server was taken at a start.
  CREATE TABLE graph_adopted (home INTEGER PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE, at REAL NOT NULL) STRICT;

  ${words('graph_node')}
  ${words('graph_observation')}

  INSERT INTO meta VALUES ('graph', ${format});
`

/**
 * An index of every three letters of a table's `lower`: in which rows they stand, not where. It follows the table by hand:
 * by a trigger it would be put in order after every row.
 */
function words(table: Indexed): string {
  return `
  CREATE VIRTUAL TABLE ${table}_words
    USING fts5 (lower, content = '${table}', content_rowid = 'place', tokenize = 'trigram case_sensitive 1', columnsize = 0, detail = none);`
}

/** The tables that hold rows of their own, what is referred to first; whatever else there is follows from them. */
export const graphRows = [
  'graph_entity',
  'graph_relationship',
  'graph_node',
  'graph_observation',
  'graph_link',
] as const

type Indexed = 'graph_node' | 'graph_observation'
type Values = readonly (string | number)[]

/** Makes the index of a table anew, with nothing of what was in it before. */
const rebuild = (table: Indexed): string => `INSERT INTO ${table}_words (${table}_words) VALUES ('rebuild');`
export const graphReworded = rebuild('graph_node') + rebuild('graph_observation')

/** Deletes rows of a table, and of its index: there a mark says that they are gone, until it is wiped. */
export function deleteIndexed(database: DatabaseSync, table: Indexed, where: string, ...values: Values): number {
  const count = (from: string, ...values: Values): number =>
    Number(database.prepare(`SELECT count(*) AS many ${from}`).get(...values)?.many)
  const indexed = count(`FROM ${table} WHERE ${where} AND lower IS NOT NULL`, ...values)
  // The index of what is left is then made sooner than that many marks.
  const isMost = indexed > 0 && indexed * 2 > count(`FROM ${table}`)
  if (indexed > 0 && !isMost) unindex(database, table, where, ...values)
  const { changes } = database.prepare(`DELETE FROM ${table} WHERE ${where}`).run(...values)
  if (isMost) database.exec(rebuild(table))
  return Number(changes)
}

/** Takes the letters of what was deleted out of the indexes: everything that is left in them is written anew, a page at a time. */
export function wipeIndexes(database: DatabaseSync): void {
  for (const table of ['graph_node', 'graph_observation'])
    database.exec(`INSERT INTO ${table}_words (${table}_words) VALUES ('optimize')`)
}

/** Takes rows of a table out of its index, before they are deleted or say something else. */
export function unindex(database: DatabaseSync, table: Indexed, where: string, ...values: Values): void {
  const rows = `FROM ${table} WHERE ${where} AND lower IS NOT NULL`
  database
    .prepare(`INSERT INTO ${table}_words (${table}_words, rowid, lower) SELECT 'delete', place, lower ${rows}`)
    .run(...values)
}

/** Deletes nodes with their observations; how many nodes. */
export function deleteNodes(database: DatabaseSync, where: string, ...values: Values): number {
  deleteIndexed(database, 'graph_observation', `node IN (SELECT place FROM graph_node WHERE ${where})`, ...values)
  return deleteIndexed(database, 'graph_node', where, ...values)
}

/** Makes the tables of a graph, all or none, if the file has none, and brings older ones to the newest form; those of a newer release are refused. */
export function prepareGraph(database: DatabaseSync, path: string): void {
  if (formatOf(database, path) === format) return
  database.exec('BEGIN IMMEDIATE')
  try {
    // Somebody else may have done it while this process waited.
    const found = formatOf(database, path)
    if (found === undefined) database.exec(graphTables)
    else if (found < format) database.exec(indexedAnew)
    database.exec('COMMIT')
  } catch (error) {
    database.exec('ROLLBACK')
    throw error
  }
}

/** The first form had indexes that also told where letters stand: three times as large. */
const indexedAnew = `
  DROP TABLE graph_node_words;
  DROP TABLE graph_observation_words;
  ${words('graph_node')}
  ${words('graph_observation')}
  ${graphReworded}
  UPDATE meta SET value = ${format} WHERE name = 'graph';
`

/** The form of the tables in a file; undefined if it has none. */
export const foundIn = (database: DatabaseSync): number | undefined =>
  (database.prepare("SELECT value FROM meta WHERE name = 'graph'").get() as { value: number } | undefined)?.value

function formatOf(database: DatabaseSync, path: string): number | undefined {
  const version = foundIn(database)
  if (version === undefined || version <= format) return version
  throw new MemoryError(
    'bad-store',
    `The graph in ${path} was written by a newer Threadkeep (format ${version}; this one knows up to ${format}). Update Threadkeep.`,
  )
}

const home = 'SELECT id FROM session WHERE scope = ?1 AND name = ?2'
const statements = {
  left: `DELETE FROM graph_origin WHERE session = ?3 AND entity IN (SELECT place FROM graph_entity WHERE home = (${home}))`,
  drawn: `DELETE FROM graph_origin WHERE session = ?3 AND entity IN (
    SELECT o.entity FROM graph_origin o JOIN graph_entity e ON e.place = o.entity WHERE o.session = ?3 AND o.message = ?4 AND e.home = (${home}))`,
  touched: `SELECT DISTINCT e.place FROM graph_origin o JOIN graph_entity e ON e.place = o.entity WHERE o.session = ?3 AND e.home = (${home})`,
  rootless: 'DELETE FROM graph_entity WHERE place = ? AND NOT EXISTS (SELECT 1 FROM graph_origin WHERE entity = place)',
  unrelated: `DELETE FROM graph_relationship WHERE session = ?3 AND home = (${home})`,
} as const

/** Takes along what a graph has drawn from what is forgotten: an entity goes with the last session that says the same. */
export class GraphEraser {
  private readonly database: DatabaseSync
  private prepared: Prepared<typeof statements> | undefined

  constructor(database: DatabaseSync) {
    this.database = database
  }

  /** Forgets what was drawn from a session, or only what was drawn from these messages of it; how many entities went. */
  erase({ scope, id }: Key, messages?: readonly string[]): number {
    const sql = this.statements()
    if (sql === undefined) return 0
    const graph = graphKey(scope).id
    // Its other rows go with their session.
    if (id === graph && messages === undefined) return this.eraseNodes(scope, graph)
    const where = [scope, graph, id] as const
    const touched = sql.touched.all(...where) as unknown as [number][]
    if (messages === undefined) {
      sql.left.run(...where)
      sql.unrelated.run(...where)
    } else for (const message of messages) sql.drawn.run(...where, message)
    return touched.reduce((gone, [place]) => gone + Number(sql.rootless.run(place).changes), 0)
  }

  private eraseNodes(scope: Scope, graph: string): number {
    const gone = deleteNodes(this.database, `home = (${home})`, scope, graph)
    wipeIndexes(this.database)
    return gone
  }

  /** Somebody may open a graph on the file at any time. */
  private statements(): Prepared<typeof statements> | undefined {
    if (this.prepared === undefined && foundIn(this.database) !== undefined)
      this.prepared = prepare(this.database, statements)
    return this.prepared
  }
}
