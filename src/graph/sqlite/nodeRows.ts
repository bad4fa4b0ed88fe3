import { runSync, type Work } from '../../domain/work.ts'
import { hasRowId, removeFromIndex } from '../../stores/sqlite/graph.ts'
import type { GraphCipher } from '../cipher.ts'
import {
  nodeContains,
  parseAll,
  type ResultLimit,
  serializeLink,
  serializeNode,
  serializeObservation,
} from '../nodeRows.ts'
import type { GraphLink, GraphNode, StoredRow } from '../types.ts'
import type { GraphDatabase } from './database.ts'
import { chunks, lookupWork, type RowTable } from './rowIds.ts'
import type { GraphWorkspace } from './workspaces.ts'

/** Cost of inserting a row, in characters. */
export const rowWork = 40

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
  const [stored] = runSync(selectNodesInSteps(database, workspace, { rowIds: [rowId] }))
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
  readonly rowIds: readonly number[]
  /** Text that a node must contain, in lower case; all contain the empty one. */
  readonly text?: string
  readonly limit?: ResultLimit
}

/** Selects nodes with their observations, in the order of their row ids. Interruptible work. */
export function* selectNodesInSteps(
  database: GraphDatabase,
  { cipher }: GraphWorkspace,
  { rowIds, text = '', limit }: Selection,
): Work<readonly StoredRow<GraphNode>[]> {
  const selected: StoredRow<GraphNode>[] = []
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

/** Selects links in the order of their row ids. Interruptible work. */
export function* selectLinksInSteps(
  database: GraphDatabase,
  { cipher }: GraphWorkspace,
  { rowIds, limit }: Omit<Selection, 'text'>,
): Work<readonly StoredRow<GraphLink>[]> {
  const selected: StoredRow<GraphLink>[] = []
  for (const rows of readPages<BodyRow>(database, 'graph_link', bodyColumns, rowIds)) {
    for (const [index, row] of parseRows<GraphLink>(rows, cipher).entries()) {
      limit?.addLink(row)
      selected.push({ rowId: rows[index]?.[0] as number, row })
    }
    yield rows.length * rowWork
  }
  return selected
}
