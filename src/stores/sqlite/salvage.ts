import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { never } from '../../domain/session.ts'
import { connectWriter } from './connect.ts'
import { graphKey, graphReworded, graphRows, graphTables } from './graph.ts'

/** Tables in an order in which what is referred to comes first, with what their rows are ordered by. */
const tables = [
  ['session', 'id'],
  ['message', 'place'],
  ['derived', 'place'],
  ['vector', 'place'],
  ['quarantine', 'place'],
] as const
/** Small tables without such an order; they are taken as far as they can be read. */
const rest = ['tombstone', 'removal', 'operation'] as const

/** Copies every row that can still be read from a damaged file into an empty one. */
export function salvage(from: string, to: string): { readonly kept: number; readonly lost: number } {
  const [old, fresh] = [new DatabaseSync(from), connectWriter(to)]
  let [kept, lost] = [0, 0]
  try {
    fresh.exec('PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE')
    for (const [table, order] of tables) {
      const found = salvageTable(old, fresh, table, order)
      kept += found.kept
      lost += found.lost
    }
    for (const table of rest) kept += copyWhatCanBeRead(old, fresh, table)
    for (const [table] of tables.slice(1)) fresh.exec(orphaned(table))
    for (const found of salvageGraph(old, fresh)) {
      kept += found.kept
      lost += found.lost
    }
    fresh.exec('DELETE FROM operation WHERE session NOT IN (SELECT id FROM session)')
    fresh.exec("UPDATE meta SET value = (SELECT coalesce(max(stamp), 0) + 1 FROM session) WHERE name = 'stamp'; COMMIT")
    return { kept, lost }
  } finally {
    old.close()
    fresh.close()
  }
}

/** A session's own row may be lost while its messages are there: they are found again under a name of their own. */
const orphaned = (table: string): string => `
  INSERT INTO session (id, scope, name, ${lostColumns})
  SELECT DISTINCT session, 'recovered', 'session-' || session, ${lostValues} FROM ${table} WHERE session NOT IN (SELECT id FROM session)`

const lostColumns =
  'epoch, revision, stamp, removals, learnt, started, touched, expires, messages, last, weight, asked, gaps'
const lostValues = `0, 1, 1, 0, 1, 0, 0, ${never}, 0, 0, 0, NULL, '[]'`

/** Graphs whose own session is lost are found again in a scope of their own, like sessions. What nodes are searched by is made anew. */
function* salvageGraph(
  old: DatabaseSync,
  fresh: DatabaseSync,
): Iterable<{ readonly kept: number; readonly lost: number }> {
  if (prepared(old, 'SELECT 1 FROM graph_entity') === undefined) return
  fresh.exec(graphTables)
  for (const table of graphRows) yield salvageTable(old, fresh, table, 'place')
  for (const table of ['graph_origin', 'graph_adopted']) yield { kept: copyWhatCanBeRead(old, fresh, table), lost: 0 }
  for (const table of ['graph_entity', 'graph_relationship', 'graph_node', 'graph_link', 'graph_adopted'])
    fresh.exec(homeless(table))
  fresh.exec(`
    DELETE FROM graph_origin WHERE entity NOT IN (SELECT place FROM graph_entity);
    DELETE FROM graph_observation WHERE node NOT IN (SELECT place FROM graph_node);
    ${graphReworded}`)
}

const homeless = (table: string): string => `
  INSERT INTO session (id, scope, name, ${lostColumns})
  SELECT DISTINCT home, 'recovered-' || home, '${graphKey('recovered').id}', ${lostValues} FROM ${table} WHERE home NOT IN (SELECT id FROM session)`

function salvageTable(
  old: DatabaseSync,
  fresh: DatabaseSync,
  table: string,
  order: string,
): { kept: number; lost: number } {
  const next = prepared(old, `SELECT * FROM ${table} WHERE ${order} > ? ORDER BY ${order} LIMIT 1`)
  const insert = inserter(fresh, table)
  if (next === undefined) return { kept: 0, lost: 1 }
  let [kept, lost] = [0, 0]
  for (let after = 0; ; ) {
    const row = read(next, after)
    if (row === 'unreadable') {
      lost++
      const beyond = readableAfter(next, after)
      if (beyond === undefined) return { kept, lost }
      after = beyond
      continue
    }
    if (row === undefined) return { kept, lost }
    kept += insert(row)
    after = row[order] as number
  }
}

type Row = Readonly<Record<string, SQLInputValue>>

function read(statement: StatementSync, after: number): Row | undefined | 'unreadable' {
  try {
    return statement.get(after) as Row | undefined
  } catch {
    return 'unreadable'
  }
}

/** The smallest number after which something can be read again: found by doubling, then by halving. */
function readableAfter(statement: StatementSync, bad: number): number | undefined {
  let step = 1
  while (read(statement, bad + step) === 'unreadable') {
    step *= 2
    if (bad + step > Number.MAX_SAFE_INTEGER) return undefined
  }
  let [low, high] = [bad + Math.floor(step / 2), bad + step]
  while (low + 1 < high) {
    const middle = Math.floor((low + high) / 2)
    if (read(statement, middle) === 'unreadable') low = middle
    else high = middle
  }
  return read(statement, high) === undefined ? undefined : high
}

function copyWhatCanBeRead(old: DatabaseSync, fresh: DatabaseSync, table: string): number {
  const insert = inserter(fresh, table)
  let kept = 0
  try {
    for (const row of old.prepare(`SELECT * FROM ${table}`).iterate()) kept += insert(row as Row)
  } catch {
    // What follows cannot be read; what came before is kept.
  }
  return kept
}

/** Puts a row into a table, if it still keeps the table's rules. */
function inserter(database: DatabaseSync, table: string): (row: Row) => number {
  const columns = (database.prepare(`PRAGMA table_info(${table})`).all() as { name: string }[]).map(({ name }) => name)
  const insert = database.prepare(
    `INSERT OR IGNORE INTO ${table} (${columns.map((name) => `"${name}"`).join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
  )
  return (row) => {
    try {
      return Number(insert.run(...columns.map((name) => row[name] ?? null)).changes)
    } catch {
      return 0
    }
  }
}

function prepared(database: DatabaseSync, sql: string): StatementSync | undefined {
  try {
    return database.prepare(sql)
  } catch {
    return undefined
  }
}
