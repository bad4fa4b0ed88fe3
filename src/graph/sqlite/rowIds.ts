import type { Work } from '../../domain/work.ts'
import { hasRowId } from '../../stores/sqlite/graph.ts'
import { isInSearchText } from '../nodeRows.ts'
import type { GraphDatabase } from './database.ts'
import type { GraphWorkspace } from './workspaces.ts'

type Values = readonly (string | number)[]

/** Tables with the rows of workspaces. */
export type RowTable = 'graph_entity' | 'graph_relationship' | 'graph_node' | 'graph_link'

/** Row ids that one statement looks at: 2 ms of work in an index, and up to 20 ms in a table. */
const maxIdsPerStatement = 16_384
/** Cost of looking at them, in characters, even if none meets the condition. */
const rangeWork = 1_024
/** Row ids, digests or rows that one statement is given. */
const maxGivenValues = 100
/** Cost of looking up a row, in characters. */
export const lookupWork = 10

export function* chunks<T>(values: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < values.length; at += maxGivenValues) yield values.slice(at, at + maxGivenValues)
}

/**
 * Selects the row ids of a workspace that meet a condition on indexed columns, in insertion order. Interruptible work.
 */
export function* selectRowIds(
  database: GraphDatabase,
  table: RowTable,
  { id }: Pick<GraphWorkspace, 'id'>,
  condition = 'TRUE',
  values: Values = [],
): Work<readonly number[]> {
  const ofWorkspace = `FROM ${table} WHERE home = ?`
  const [first] = database.get<[number | null]>(`SELECT min(place) ${ofWorkspace}`, id) ?? []
  const [last] = database.get<[number | null]>(`SELECT max(place) ${ofWorkspace}`, id) ?? []
  const selected: number[] = []
  const inRange = `SELECT json_group_array(place) ${ofWorkspace} AND ${condition} AND place BETWEEN ? AND ?`
  for (let from = first ?? 1; from <= (last ?? 0); from += maxIdsPerStatement) {
    // One JSON text, sorted here, takes a quarter of the time of as many rows.
    const found = getIds(database, inRange, id, ...values, from, from + maxIdsPerStatement - 1)
    for (const rowId of Float64Array.from(found).sort()) selected.push(rowId)
    yield rangeWork + found.length
  }
  return selected
}

/** Returns those of the row ids that are in a workspace and meet a condition, in the same order. Interruptible work. */
export function* filterRowIds(
  database: GraphDatabase,
  table: RowTable,
  { id }: Pick<GraphWorkspace, 'id'>,
  rowIds: readonly number[],
  condition = 'TRUE',
  values: Values = [],
): Work<readonly number[]> {
  const sql = `SELECT json_group_array(place) FROM ${table} WHERE home = ? AND ${condition} AND ${hasRowId}`
  const filtered: number[] = []
  for (const chunk of chunks(rowIds)) {
    const found = getIds(database, sql, id, ...values, JSON.stringify(chunk))
    for (const rowId of Float64Array.from(found).sort()) filtered.push(rowId)
    yield chunk.length
  }
  return filtered
}

/** Selects the row ids of the nodes with one of the digests, in insertion order. Interruptible work. */
export function* selectNodeIds(
  database: GraphDatabase,
  workspace: GraphWorkspace,
  digests: readonly string[],
): Work<readonly number[]> {
  const found: number[] = []
  for (const chunk of chunks(digests)) yield* addRowIds(database, workspace, 'graph_node', 'ref', chunk, found)
  return yield* sortRowIds(found)
}

/**
 * Selects the row ids of the links with one of the nodes, given by their digests, at an end, in insertion order.
 * Interruptible work.
 */
export function* selectLinkIds(
  database: GraphDatabase,
  workspace: GraphWorkspace,
  digests: readonly string[],
): Work<readonly number[]> {
  const found: number[] = []
  for (const end of ['source', 'target'] as const)
    for (const chunk of chunks(digests)) yield* addRowIds(database, workspace, 'graph_link', end, chunk, found)
  return yield* sortRowIds(found)
}

/** Adds the row ids of rows with one of the digests in an indexed column: many may have the same one. */
function* addRowIds(
  database: GraphDatabase,
  workspace: GraphWorkspace,
  table: RowTable,
  column: 'ref' | 'source' | 'target',
  digests: readonly string[],
  found: number[],
): Work<void> {
  const some = `SELECT place FROM ${table} WHERE home = ? AND ${column} IN (SELECT value FROM json_each(?)) LIMIT ${maxIdsPerStatement}`
  const sql = `SELECT json_group_array(place) FROM (${some})`
  const rowIds = getIds(database, sql, workspace.id, JSON.stringify(digests))
  yield digests.length * lookupWork + rowIds.length
  if (rowIds.length < maxIdsPerStatement) for (const rowId of rowIds) found.push(rowId)
  else if (digests.length === 1)
    for (const rowId of yield* selectRowIds(database, table, workspace, `${column} = ?`, digests)) found.push(rowId)
  else {
    const middle = digests.length >> 1
    yield* addRowIds(database, workspace, table, column, digests.slice(0, middle), found)
    yield* addRowIds(database, workspace, table, column, digests.slice(middle), found)
  }
}

/** Selects the row ids of the entities of a session, in insertion order, of all workspaces. Interruptible work. */
export function* selectEntityIdsOfSession(database: GraphDatabase, session: string): Work<readonly number[]> {
  const found: number[] = []
  const sql = `SELECT message, entity FROM graph_origin WHERE session = ? AND (message, entity) > (?, ?)
    ORDER BY message, entity LIMIT ${maxRowsPerStatement}`
  for (let last: readonly [string, number] = ['', 0]; ; ) {
    const page = database.all<[string, number]>(sql, session, ...last)
    for (const [, entity] of page) found.push(entity)
    yield page.length
    const end = page.at(-1)
    if (end === undefined || page.length < maxRowsPerStatement) return yield* sortRowIds(found)
    last = end
  }
}

/** Rows that one statement reads. */
const maxRowsPerStatement = 2_000

/** Characters of a query that are searched in the trigram index. */
const maxIndexedChars = 24
/** More trigrams would take 12 ms each per million rows if all of them were in most rows, but never in the same. */
const maxTrigrams = 3

/** Rows whose text is searched by one statement: 12 ms of the longest ones. */
const maxSearchedRows = 1_000

/**
 * Selects the row ids of a superset of the nodes that contain a lower-case text, in insertion order. Interruptible
 * work.
 */
export function* selectCandidateIds(
  database: GraphDatabase,
  workspace: GraphWorkspace,
  lowerCaseText: string,
): Work<readonly number[]> {
  const trigrams = chooseTrigrams(lowerCaseText)
  // Encrypted nodes have no index, and a text of one or two characters is in most nodes.
  if (!workspace.cipher.isPlaintext || !isInSearchText(lowerCaseText) || trigrams.length === 0)
    return yield* selectRowIds(database, 'graph_node', workspace)
  const found: number[] = []
  for (const source of [
    { table: 'graph_node', node: 'place', condition: 'home = ?1' },
    { table: 'graph_observation', node: 'node', condition: 'TRUE' },
  ] as const) {
    yield* addNodesOfLongTexts(database, source, workspace, found)
    yield* addNodesContaining(database, source, lowerCaseText, trigrams, found)
  }
  return yield* filterRowIds(database, 'graph_node', workspace, yield* sortRowIds(found))
}

/** Returns trigrams from the start to the end of a text; none if it is shorter. */
function chooseTrigrams(text: string): readonly string[] {
  const chars = [...text.slice(0, 2 * maxIndexedChars)].slice(0, maxIndexedChars)
  const last = chars.length - 3
  const starts = Array.from({ length: maxTrigrams }, (_, index) => Math.floor((index * last) / (maxTrigrams - 1)))
  return last < 0 ? [] : [...new Set(starts)].map((at) => chars.slice(at, at + 3).join(''))
}

/**
 * Table with a trigram index, and its column with the row id of the node. The condition restricts rows to the workspace
 * whose id is the first parameter, if the table can.
 */
type IndexedTable = {
  readonly table: 'graph_node' | 'graph_observation'
  readonly node: 'place' | 'node'
  readonly condition: string
}

/** Adds the nodes of rows without a search text, which are not in the trigram index. */
function* addNodesOfLongTexts(
  database: GraphDatabase,
  { table, node, condition }: IndexedTable,
  { id }: GraphWorkspace,
  found: number[],
): Work<void> {
  const long = `SELECT ${node} FROM ${table} INDEXED BY ${table}_long WHERE ${condition} AND lower IS NULL AND ${node} > ?2`
  const sql = `SELECT json_group_array(${node}) FROM (${long} ORDER BY ${node} LIMIT ${maxRowsPerStatement})`
  for (let last = 0; ; ) {
    const nodes = getIds(database, sql, id, last)
    for (const rowId of nodes) found.push(rowId)
    yield nodes.length
    if (nodes.length < maxRowsPerStatement) return
    last = nodes.at(-1) as number
  }
}

/** Adds the nodes of rows that contain a text and trigrams of it, of all workspaces. */
function* addNodesContaining(
  database: GraphDatabase,
  { table, node }: IndexedTable,
  text: string,
  trigrams: readonly string[],
  found: number[],
): Work<void> {
  // The index ignores a limit that is not an integer: parameters are floating-point numbers.
  const some = `SELECT rowid AS place FROM ${table}_words WHERE ${table}_words MATCH ? AND rowid > CAST(? AS INTEGER)
    ORDER BY rowid LIMIT ${maxSearchedRows}`
  const sql = `SELECT json_group_array(${node}) FILTER (WHERE instr(lower, ?) > 0), count(*), max(place)
    FROM (${some}) JOIN ${table} USING (place)`
  const match = trigrams.map((trigram) => `"${trigram.replaceAll('"', '""')}"`).join(' AND ')
  for (let last = 0; ; ) {
    const [json = '[]', count = 0, end] = database.get<[string, number, number]>(sql, text, match, last) ?? []
    for (const rowId of JSON.parse(json) as number[]) found.push(rowId)
    yield count * lookupWork
    if (end === undefined || count < maxSearchedRows) return
    last = end
  }
}

/** Sorts row ids and removes repeated ones. Interruptible work. */
function* sortRowIds(rowIds: readonly number[]): Work<readonly number[]> {
  const ranges = new Map<number, number[]>()
  for (const [index, rowId] of rowIds.entries()) {
    const range = Math.floor(rowId / maxIdsPerStatement)
    const known = ranges.get(range)
    if (known === undefined) ranges.set(range, [rowId])
    else known.push(rowId)
    if (index % maxIdsPerStatement === 0) yield rangeWork
  }
  const sorted: number[] = []
  for (const range of [...ranges.keys()].sort((a, b) => a - b)) {
    for (const rowId of new Set(Float64Array.from(ranges.get(range) ?? []).sort())) sorted.push(rowId)
    yield ranges.get(range)?.length ?? 0
  }
  return sorted
}

/** Returns the ids of a JSON list, which is the only value of a statement. */
function getIds(database: GraphDatabase, sql: string, ...values: Values): readonly number[] {
  const [json] = database.get<[string]>(sql, ...values) ?? ['[]']
  return JSON.parse(json) as number[]
}
