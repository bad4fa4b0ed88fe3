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
  const row = serializeNode(workspace.cipher, { name, entityType })
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
  const { body, lower } = serializeNode(workspace.cipher, row)
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
  const observation = serializeObservation(workspace.cipher, row.name, text)
  insertIndexed(database, 'graph_observation', { node: rowId, ...observation })
}

/** Inserts a link, without a check for duplicates. */
export function insertLink(database: GraphDatabase, { id, cipher }: GraphWorkspace, link: GraphLink): void {
  const { ref, source, target, body } = serializeLink(cipher, link)
  const sql = 'INSERT INTO graph_link (home, ref, source, target, body) VALUES (?, ?, ?, ?, ?)'
  database.run(sql, id, ref, source, target, body)
}

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
  for (const rows of readPages(database, 'graph_node', rowIds)) {
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
      if (text !== '' && !nodeContains(row, text)) continue
      if (text !== '') limit?.add([row.name, row.entityType, ...texts])
      selected.push({ rowId, row })
      yield lookupWork
    }
  }
  return selected
}

/** Row id, digest and content of a row. */
type BodyRow = readonly [rowId: number, digest: string, body: string]
/** Observation with the row id of its node. */
type ObservationRow = readonly [node: number, rowId: number, body: string]

/** Rows and characters read by one statement: a few milliseconds of work. */
const maxPageRows = 200
const maxPageCharacters = 65_536

function selectRowIds(
  database: GraphDatabase,
  table: 'graph_node' | 'graph_link',
  where: string,
  values: Values,
): readonly number[] {
  const rows = database.all<[number]>(`SELECT place FROM ${table} WHERE ${where} ORDER BY place`, ...values)
  return rows.map(([rowId]) => rowId)
}

/** Reads rows by their ids, page by page. */
function* readPages(
  database: GraphDatabase,
  table: 'graph_node' | 'graph_link',
  rowIds: readonly number[],
): Generator<readonly BodyRow[]> {
  const sql = `SELECT place, ref, body FROM ${table} WHERE place IN (SELECT value FROM json_each(?)) ORDER BY place`
  for (let at = 0; at < rowIds.length; ) {
    const page = JSON.stringify(rowIds.slice(at, at + maxPageRows))
    const { rows, isComplete } = database.take<BodyRow>(createPageLimit(), sql, page)
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

/** Selects the observations of a node, in insertion order. */
export function selectObservations(
  database: GraphDatabase,
  { cipher }: GraphWorkspace,
  node: number,
): readonly StoredRow<string>[] {
  const rows = database.all<[number, string, string]>(
    'SELECT o.place, n.ref, o.body FROM graph_observation o JOIN graph_node n ON n.place = o.node WHERE o.node = ? ORDER BY o.place',
    node,
  )
  return rows.map(
    ([rowId, digest, body]): StoredRow<string> => ({
      rowId,
      row: JSON.parse(cipher.decrypt(body, digest)) as string,
    }),
  )
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
  for (const rows of readPages(database, 'graph_link', rowIds)) {
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
 * Matches nodes by their own row or by an observation. The unary plus keeps SQLite from scanning all nodes of the
 * workspace.
 */
const containsCondition = `+home = ?1 AND place IN (
  SELECT place FROM graph_node WHERE ${contains('graph_node')}
  UNION SELECT node FROM graph_observation WHERE ${contains('graph_observation')})`

const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`
