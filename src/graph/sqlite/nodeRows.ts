import { runSync, type Work } from '../../domain/work.ts'
import { removeFromIndex } from '../../stores/sqlite/graph.ts'
import type { GraphCipher } from '../cipher.ts'
import {
  isInSearchText,
  nodeContains,
  parseAll,
  type ResultLimit,
  serializeLink,
  serializeNode,
  serializeObservation,
} from '../nodeRows.ts'
import type { GraphLink, GraphNode, StoredRow } from '../types.ts'
import type { GraphDatabase } from './database.ts'
import type { GraphWorkspace } from './workspaces.ts'

type Values = readonly (string | number)[]

/** Cost of inserting a row and of looking one up, in characters. */
export const rowWork = 40
export const lookupWork = 10

/** Inserts a node with its observations. Call it inside a transaction. */
export function* insertNodeInSteps(
  database: GraphDatabase,
  workspace: GraphWorkspace,
  { name, entityType, observations }: GraphNode,
): Work<void> {
  const row = limitSearchText(serializeNode(workspace.cipher, { name, entityType }))
  const rowId = insertIndexed(database, 'graph_node', { home: workspace.id, ...row })
  yield rowWork + name.length
  for (const text of observations) {
    insertObservation(database, workspace, { rowId, row: { name } }, text)
    yield rowWork + text.length
  }
}

/** `insertNodeInSteps` without pauses. */
export const insertNode = (...args: Parameters<typeof insertNodeInSteps>): void => runSync(insertNodeInSteps(...args))

/** Updates the type of a node if it differs. */
export function updateNodeType(
  database: GraphDatabase,
  workspace: GraphWorkspace,
  { rowId, row }: StoredRow<GraphNode>,
): void {
  const [stored] = runSync(selectNodesInSteps(database, workspace, { where: 'place = ?', values: [rowId] }))
  if (stored?.row.entityType === row.entityType) return
  const { body, lower } = limitSearchText(serializeNode(workspace.cipher, row))
  removeFromIndex(database.database, 'graph_node', 'place = ?', rowId)
  database.run('UPDATE graph_node SET body = ?, lower = ? WHERE place = ?', body, lower, rowId)
  if (lower !== null) database.run('INSERT INTO graph_node_words (rowid, lower) VALUES (?, ?)', rowId, lower)
}

/** Inserts an observation of a node, without a check for duplicates. */
export function insertObservation(
  database: GraphDatabase,
  workspace: GraphWorkspace,
  { rowId, row }: StoredRow<Pick<GraphNode, 'name'>>,
  text: string,
): void {
  const observation = limitSearchText(serializeObservation(workspace.cipher, row.name, text))
  insertIndexed(database, 'graph_observation', { node: rowId, ...observation })
}

/** Inserts a link, without a check for duplicates. */
export function insertLink(database: GraphDatabase, { id, cipher }: GraphWorkspace, link: GraphLink): void {
  const { ref, source, target, body } = serializeLink(cipher, link)
  const sql = 'INSERT INTO graph_link (home, ref, source, target, body) VALUES (?, ?, ?, ?, ?)'
  database.run(sql, id, ref, source, target, body)
}

/** Texts of more characters have no search text: SQLite would index a megabyte in one piece of 50 to 500 ms. */
const maxSearchTextCharacters = 8_192

/** Removes the search text of a long row, which is a candidate of every search instead. */
const limitSearchText = <T extends { readonly lower: string | null }>(row: T): T =>
  row.lower !== null && row.lower.length > maxSearchTextCharacters ? { ...row, lower: null } : row

/** Inserts a row, and its search text, if it has one, into the trigram index. Returns the row id. */
function insertIndexed(
  database: GraphDatabase,
  table: string,
  row: Readonly<Record<string, string | number | null>> & { readonly lower: string | null },
): number {
  const { rowId } = database.run(
    `INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (?, ?, ?, ?)`,
    ...Object.values(row),
  )
  if (row.lower !== null) database.run(`INSERT INTO ${table}_words (rowid, lower) VALUES (?, ?)`, rowId, row.lower)
  return rowId
}

/** Rows to select. */
type Selection = {
  readonly where: string
  readonly values: Values
  /** Text that a node must contain, in lower case; all contain the empty one. */
  readonly text?: string
  readonly limit?: ResultLimit
}

/** Selects nodes with their observations, in insertion order. Interruptible work. */
export function* selectNodesInSteps(
  database: GraphDatabase,
  { cipher }: GraphWorkspace,
  { where, values, text = '', limit }: Selection,
): Work<readonly StoredRow<GraphNode>[]> {
  const selected: StoredRow<GraphNode>[] = []
  const rowIds = selectRowIds(database, 'graph_node', where, values)
  yield rowIds.length
  for (const rows of readPages<BodyRow>(database, 'graph_node', bodyColumns, rowIds)) {
    const nodes = new Map<number, { readonly digest: string; readonly row: GraphNode; readonly texts: string[] }>()
    for (const [index, row] of parseRows<GraphNode>(rows, cipher).entries()) {
      const [rowId, digest] = rows[index] as BodyRow
      const { name, entityType } = row
      const texts: string[] = []
      nodes.set(rowId, { digest, row: { name, entityType, observations: texts }, texts })
      // Without a text all nodes are selected, and the limit ends the read early.
      if (text === '') limit?.addNode(row)
    }
    yield rows.length * rowWork
    for (const observations of readObservations(database, [...nodes.keys()])) {
      const bodies = observations.map(([node, , body]) => cipher.decrypt(body, nodes.get(node)?.digest ?? ''))
      const parsed = parseAll<string>(bodies)
      for (const [index, [node]] of observations.entries()) nodes.get(node)?.texts.push(parsed[index] as string)
      if (text === '') limit?.add(parsed)
      yield observations.length * rowWork
    }
    for (const [rowId, { row, texts }] of nodes) {
      if (text === '' || nodeContains(row, text)) {
        if (text !== '') limit?.add([row.name, row.entityType, ...texts])
        selected.push({ rowId, row })
      }
      const comparedCharacters = text === '' ? 0 : texts.reduce((sum, { length }) => sum + length, 0)
      yield lookupWork + comparedCharacters
    }
  }
  return selected
}

/** Row id, digest and content of a row. */
type BodyRow = readonly [rowId: number, digest: string, body: string]
const bodyColumns = 'place, ref, body'
/** Observation with the row id of its node. */
type ObservationRow = readonly [node: number, rowId: number, body: string]

/** Rows and characters read by one statement: a few milliseconds of work. */
const maxPageRows = 200
const maxPageCharacters = 65_536

/** Tables read by row ids. */
export type RowTable = 'graph_entity' | 'graph_relationship' | 'graph_node' | 'graph_link'

export function selectRowIds(
  database: GraphDatabase,
  table: RowTable,
  where: string,
  values: Values,
): readonly number[] {
  // One JSON text, sorted here, takes a quarter of the time of as many rows.
  const [json] = database.get<[string]>(`SELECT json_group_array(place) FROM ${table} WHERE ${where}`, ...values) ?? [
    '[]',
  ]
  return [...Float64Array.from(JSON.parse(json) as number[]).sort()]
}

/** Reads columns of rows by their ids, page by page. The last column is the content. */
export function* readPages<T extends readonly [...unknown[], body: string]>(
  database: GraphDatabase,
  table: RowTable,
  columns: string,
  rowIds: readonly number[],
): Generator<readonly T[]> {
  const sql = `SELECT ${columns} FROM ${table} WHERE ${hasRowId} ORDER BY place`
  for (let at = 0; at < rowIds.length; ) {
    const page = JSON.stringify(rowIds.slice(at, at + maxPageRows))
    const { rows, isComplete } = database.take<T>(createPageLimit(), sql, page)
    yield rows
    at += isComplete ? maxPageRows : rows.length
  }
}

/**
 * Reads the observations of nodes in insertion order, page by page. The order is that of the index: no sort is needed.
 */
function* readObservations(database: GraphDatabase, nodes: readonly number[]): Generator<readonly ObservationRow[]> {
  const select = 'SELECT node, place, body FROM graph_observation INDEXED BY graph_observation_node'
  const ofNodes = `${select} WHERE node IN (SELECT value FROM json_each(?)) ORDER BY node, place`
  const ofOneNode = `${select} WHERE node = ? AND place > ? ORDER BY place`
  for (let at = 0; at < nodes.length; ) {
    let page = database.take<ObservationRow>(createPageLimit(), ofNodes, JSON.stringify(nodes.slice(at)))
    yield page.rows
    const [node] = page.rows.at(-1) ?? []
    if (page.isComplete || node === undefined) return
    while (!page.isComplete) {
      const [, last] = page.rows.at(-1) as ObservationRow
      page = database.take<ObservationRow>(createPageLimit(), ofOneNode, node, last)
      yield page.rows
    }
    at = nodes.indexOf(node) + 1
  }
}

/** Returns a function that is true for the row with which a page is full. */
function createPageLimit(): (row: readonly [...unknown[], body: string]) => boolean {
  let [rows, characters] = [0, 0]
  return (row) => {
    rows++
    characters += (row.at(-1) as string).length
    return rows >= maxPageRows || characters >= maxPageCharacters
  }
}

const parseRows = <T>(rows: readonly BodyRow[], cipher: GraphCipher): readonly T[] =>
  parseAll<T>(rows.map(([, digest, body]) => cipher.decrypt(body, digest)))

/** Returns the row ids of the observations of nodes that meet a condition. Interruptible work. */
export function* findObservationsInSteps(
  database: GraphDatabase,
  { cipher }: GraphWorkspace,
  nodes: readonly number[],
  condition: (text: string) => boolean,
): Work<readonly number[]> {
  const found: number[] = []
  for (const chunk of chunks(nodes)) {
    const sql = `SELECT place, ref FROM graph_node WHERE ${hasRowId}`
    const digests = new Map(database.all<[number, string]>(sql, JSON.stringify(chunk)))
    for (const rows of readObservations(database, chunk)) {
      for (const [node, rowId, body] of rows) {
        const text = JSON.parse(cipher.decrypt(body, digests.get(node) ?? '')) as string
        if (condition(text)) found.push(rowId)
      }
      yield rows.length * rowWork
    }
  }
  return found
}

/** Selects links in insertion order. Interruptible work. */
export function* selectLinksInSteps(
  database: GraphDatabase,
  { cipher }: GraphWorkspace,
  { where, values, limit }: Omit<Selection, 'text'>,
): Work<readonly StoredRow<GraphLink>[]> {
  const selected: StoredRow<GraphLink>[] = []
  const rowIds = selectRowIds(database, 'graph_link', where, values)
  yield rowIds.length
  for (const rows of readPages<BodyRow>(database, 'graph_link', bodyColumns, rowIds)) {
    for (const [index, row] of parseRows<GraphLink>(rows, cipher).entries()) {
      limit?.addLink(row)
      selected.push({ rowId: rows[index]?.[0] as number, row })
    }
    yield rows.length * rowWork
  }
  return selected
}

/** Characters of a query that go to the trigram index; more would not narrow the candidates further. */
const maxIndexedChars = 24

/**
 * Builds a condition on `graph_node` that selects a superset of the nodes containing a lower-case text. Parameter 1 is
 * the workspace id; `values` are the parameters from 2 on. A text of one or two characters is in most nodes.
 */
export function candidateCondition(lowerCaseText: string): {
  readonly where: string
  readonly values: readonly string[]
} {
  const chars = [...lowerCaseText].slice(0, maxIndexedChars)
  if (!isInSearchText(lowerCaseText) || chars.length < 3) return { where: 'home = ?1', values: [] }
  const trigrams = chars.slice(2).map((_, index) => quote(chars.slice(index, index + 3).join('')))
  return { where: containsCondition, values: [lowerCaseText, trigrams.join(' AND ')] }
}

/** Restricts a table to rows that contain the text and all of its trigrams, in any order. */
const contains = (table: string): string =>
  `instr(lower, ?2) > 0 AND place IN (SELECT rowid FROM ${table}_words WHERE ${table}_words MATCH ?3)`

/**
 * Matches nodes by their own row or by an observation, and those with a row without a search text. The unary plus keeps
 * SQLite from scanning all nodes of the workspace.
 */
const containsCondition = `+home = ?1 AND place IN (
  SELECT place FROM graph_node WHERE ${contains('graph_node')}
  UNION SELECT node FROM graph_observation WHERE ${contains('graph_observation')}
  UNION SELECT place FROM graph_node WHERE home = ?1 AND lower IS NULL
  UNION SELECT node FROM graph_observation WHERE lower IS NULL)`

const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`

/** Links with one of the nodes, given as a JSON list of digests, at an end. */
export const linksOfNodes = `place IN (
  SELECT place FROM graph_link WHERE home = ?1 AND source IN (SELECT value FROM json_each(?2))
  UNION SELECT place FROM graph_link WHERE home = ?1 AND target IN (SELECT value FROM json_each(?2)))`

/** Rows with one of the row ids, given as a JSON list. */
export const hasRowId = 'place IN (SELECT value FROM json_each(?))'

/** Deletes rows by their ids. Interruptible work. */
export function* deleteRowsInSteps(database: GraphDatabase, table: RowTable, rowIds: readonly number[]): Work<void> {
  for (const chunk of chunks(rowIds)) {
    database.run(`DELETE FROM ${table} WHERE ${hasRowId}`, JSON.stringify(chunk))
    yield chunk.length * rowWork
  }
}

/** Rows deleted by one statement. */
const rowsPerDeletion = 200

export function* chunks<T>(values: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < values.length; at += rowsPerDeletion) yield values.slice(at, at + rowsPerDeletion)
}
