import type { SQLInputValue, StatementSync } from 'node:sqlite'
import { graphKey } from '../../domain/key.ts'
import { noExpiry } from '../../domain/session.ts'
import { connectWriter } from './connect.ts'
import { graphDataTables, graphSchema, rebuildGraphIndexes } from './graph.ts'
import { DatabaseSync } from './nodeSqlite.ts'

/** Tables that are read row by row, referenced ones first, with their ordering column. */
const orderedTables = [
  ['session', 'id'],
  ['message', 'place'],
  ['derived', 'place'],
  ['vector', 'place'],
  ['quarantine', 'place'],
] as const
/** Small tables without an ordering column; they are copied up to the first unreadable row. */
const unorderedTables = ['tombstone', 'removal', 'operation', 'record'] as const

/** Number of copied rows, and of row ranges that could not be read. */
export type SalvageResult = { readonly copiedRows: number; readonly unreadableRanges: number }

/** Copies every readable row of a damaged file into an empty one. */
export function salvage(from: string, to: string): SalvageResult {
  const [source, target] = [new DatabaseSync(from), connectWriter(to, 'checked')]
  let [copied, unreadable] = [0, 0]
  try {
    target.exec('PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE')
    for (const [table, order] of orderedTables) {
      const result = salvageTable(source, target, table, order)
      copied += result.copiedRows
      unreadable += result.unreadableRanges
    }
    for (const table of unorderedTables) copied += copyReadableRows(source, target, table)
    if (tryPrepare(source, 'SELECT 1 FROM table_row') !== undefined)
      for (const table of ['table_row', 'row_quarantine']) {
        const result = salvageTable(source, target, table, 'place')
        copied += result.copiedRows
        unreadable += result.unreadableRanges
      }
    for (const [table] of orderedTables.slice(1)) target.exec(restoreSessions(table))
    for (const result of salvageGraph(source, target)) {
      copied += result.copiedRows
      unreadable += result.unreadableRanges
    }
    target.exec('DELETE FROM operation WHERE session NOT IN (SELECT id FROM session)')
    target.exec('DELETE FROM record WHERE session NOT IN (SELECT id FROM session)')
    copyMarker(source, target)
    target.exec(
      "UPDATE meta SET value = (SELECT coalesce(max(stamp), 0) + 1 FROM session) WHERE name = 'stamp'; COMMIT",
    )
    return { copiedRows: copied, unreadableRanges: unreadable }
  } finally {
    source.close()
    target.close()
  }
}

/** Keeps the encryption marker, which is also recognized by the keys of sessions if it is unreadable. */
function copyMarker(source: DatabaseSync, target: DatabaseSync): void {
  if (tryPrepare(source, 'SELECT 1 FROM master_key') !== undefined) copyReadableRows(source, target, 'master_key')
  const hasKeys = target.prepare("SELECT 1 FROM derived WHERE id = '#key' AND kind = 'encrypted'").get() !== undefined
  const hasProofs = target.prepare('SELECT 1 FROM master_key').get() !== undefined
  if (hasKeys || hasProofs) target.exec("UPDATE meta SET value = 1 WHERE name = 'encrypted'")
}

/** SQL that creates placeholder sessions, in the scope `recovered`, for rows whose session row is lost. */
const restoreSessions = (table: string): string => `
  INSERT INTO session (id, scope, name, ${placeholderColumns})
  SELECT DISTINCT session, 'recovered', 'session-' || session, ${placeholderValues} FROM ${table} WHERE session NOT IN (SELECT id FROM session)`

const placeholderColumns =
  'epoch, revision, stamp, removals, learnt, started, touched, expires, messages, last, weight, asked, gaps'
const placeholderValues = `0, 1, 1, 0, 1, 0, 0, ${noExpiry}, 0, 0, 0, NULL, '[]'`

/** Copies the graph tables and rebuilds their indexes. Graphs whose session is lost get a scope `recovered-N`. */
function* salvageGraph(source: DatabaseSync, target: DatabaseSync): Iterable<SalvageResult> {
  if (tryPrepare(source, 'SELECT 1 FROM graph_entity') === undefined) return
  target.exec(graphSchema)
  for (const table of graphDataTables) yield salvageTable(source, target, table, 'place')
  for (const table of ['graph_origin', 'graph_adopted'])
    yield { copiedRows: copyReadableRows(source, target, table), unreadableRanges: 0 }
  for (const table of ['graph_entity', 'graph_relationship', 'graph_node', 'graph_link', 'graph_adopted'])
    target.exec(restoreGraphHomes(table))
  target.exec(`
    DELETE FROM graph_origin WHERE entity NOT IN (SELECT place FROM graph_entity);
    DELETE FROM graph_observation WHERE node NOT IN (SELECT place FROM graph_node);
    ${rebuildGraphIndexes}`)
}

const restoreGraphHomes = (table: string): string => `
  INSERT INTO session (id, scope, name, ${placeholderColumns})
  SELECT DISTINCT home, 'recovered-' || home, '${graphKey('recovered').id}', ${placeholderValues} FROM ${table} WHERE home NOT IN (SELECT id FROM session)`

function salvageTable(source: DatabaseSync, target: DatabaseSync, table: string, order: string): SalvageResult {
  const next = tryPrepare(source, `SELECT * FROM ${table} WHERE ${order} > ? ORDER BY ${order} LIMIT 1`)
  const insert = createInserter(target, table)
  if (next === undefined) return { copiedRows: 0, unreadableRanges: 1 }
  let [copied, unreadable] = [0, 0]
  for (let after = 0; ; ) {
    const row = readNext(next, after)
    if (row === 'unreadable') {
      unreadable++
      const beyond = findReadable(next, after)
      if (beyond === undefined) return { copiedRows: copied, unreadableRanges: unreadable }
      after = beyond
      continue
    }
    if (row === undefined) return { copiedRows: copied, unreadableRanges: unreadable }
    copied += insert(row)
    after = row[order] as number
  }
}

type Row = Readonly<Record<string, SQLInputValue>>

function readNext(statement: StatementSync, after: number): Row | undefined | 'unreadable' {
  try {
    return statement.get(after) as Row | undefined
  } catch {
    return 'unreadable'
  }
}

/** Finds the smallest key after which a row can be read again, by doubling the step and then bisecting. */
function findReadable(statement: StatementSync, bad: number): number | undefined {
  let step = 1
  while (readNext(statement, bad + step) === 'unreadable') {
    step *= 2
    if (bad + step > Number.MAX_SAFE_INTEGER) return undefined
  }
  let [low, high] = [bad + Math.floor(step / 2), bad + step]
  while (low + 1 < high) {
    const middle = Math.floor((low + high) / 2)
    if (readNext(statement, middle) === 'unreadable') low = middle
    else high = middle
  }
  return readNext(statement, high) === undefined ? undefined : high
}

function copyReadableRows(source: DatabaseSync, target: DatabaseSync, table: string): number {
  const insert = createInserter(target, table)
  let copied = 0
  try {
    for (const row of source.prepare(`SELECT * FROM ${table}`).iterate()) copied += insert(row as Row)
  } catch {
    // The rest of the table is unreadable.
  }
  return copied
}

/** Returns a function that inserts a row and returns 1, or 0 if the row violates a constraint. */
function createInserter(database: DatabaseSync, table: string): (row: Row) => number {
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

function tryPrepare(database: DatabaseSync, sql: string): StatementSync | undefined {
  try {
    return database.prepare(sql)
  } catch {
    return undefined
  }
}
