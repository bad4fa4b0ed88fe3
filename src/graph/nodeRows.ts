import { runSync, type Work } from '../domain/work.ts'
import { removeFromIndex } from '../stores/sqlite/graph.ts'
import type { GraphCipher } from './cipher.ts'
import type { GraphDatabase } from './database.ts'
import type { GraphLink, GraphNode } from './types.ts'
import type { GraphWorkspace } from './workspaces.ts'

type Values = readonly (string | number)[]
/** Stored row with its id. */
export type StoredRow<T> = { readonly rowId: number; readonly row: T }

export const nodeDigest = ({ cipher }: GraphWorkspace, name: string): string => cipher.digest('node', name)
export const linkDigest = ({ cipher }: GraphWorkspace, { from, to, relationType }: GraphLink): string =>
  cipher.digest('link', from, to, relationType)

/** Cost of inserting a row and of looking one up, in characters. */
export const rowWork = 40
export const lookupWork = 10

/** Inserts a node with its observations. Call it inside a transaction. */
export function* insertNodeInSteps(
  database: GraphDatabase,
  workspace: GraphWorkspace,
  { name, entityType, observations }: GraphNode,
): Work<void> {
  const row = {
    home: workspace.id,
    ref: nodeDigest(workspace, name),
    body: encryptNode(workspace, { name, entityType }),
  }
  const rowId = insertIndexed(database, workspace, 'graph_node', row, searchTextOf(name, entityType))
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
  const [stored] = selectNodes(database, workspace, 'place = ?', rowId)
  if (stored?.row.entityType === row.entityType) return
  const lower = workspace.cipher.isPlaintext ? searchTextOf(row.name, row.entityType) : null
  removeFromIndex(database.database, 'graph_node', 'place = ?', rowId)
  database.run('UPDATE graph_node SET body = ?, lower = ? WHERE place = ?', encryptNode(workspace, row), lower, rowId)
  if (lower !== null) database.run('INSERT INTO graph_node_words (rowid, lower) VALUES (?, ?)', rowId, lower)
}

/** Inserts an observation of a node, without a check for duplicates. */
export function insertObservation(
  database: GraphDatabase,
  workspace: GraphWorkspace,
  { rowId, row }: StoredRow<Pick<GraphNode, 'name'>>,
  text: string,
): void {
  const { cipher } = workspace
  const body = cipher.encrypt(JSON.stringify(text), nodeDigest(workspace, row.name))
  const observation = { node: rowId, ref: cipher.digest('observation', text), body }
  insertIndexed(database, workspace, 'graph_observation', observation, searchTextOf(text))
}

/** Inserts a link, without a check for duplicates. */
export function insertLink(
  database: GraphDatabase,
  workspace: GraphWorkspace,
  { from, to, relationType }: GraphLink,
): void {
  const digest = linkDigest(workspace, { from, to, relationType })
  const body = workspace.cipher.encrypt(JSON.stringify({ from, to, relationType }), digest)
  const values = [workspace.id, digest, nodeDigest(workspace, from), nodeDigest(workspace, to), body]
  database.run('INSERT INTO graph_link (home, ref, source, target, body) VALUES (?, ?, ?, ?, ?)', ...values)
}

const encryptNode = (workspace: GraphWorkspace, { name, entityType }: Pick<GraphNode, 'name' | 'entityType'>): string =>
  workspace.cipher.encrypt(JSON.stringify({ name, entityType }), nodeDigest(workspace, name))

/** Inserts a row and, unless the workspace is encrypted, its search text into the trigram index. Returns the row id. */
function insertIndexed(
  database: GraphDatabase,
  { cipher }: GraphWorkspace,
  table: string,
  row: Readonly<Record<string, string | number>>,
  searchText: string,
): number {
  const lower = cipher.isPlaintext ? searchText : null
  const { rowId } = database.run(
    `INSERT INTO ${table} (${Object.keys(row).join(', ')}, lower) VALUES (?, ?, ?, ?)`,
    ...Object.values(row),
    lower,
  )
  if (lower !== null) database.run(`INSERT INTO ${table}_words (rowid, lower) VALUES (?, ?)`, rowId, lower)
  return rowId
}

/** Selects nodes with their observations, in insertion order. */
export function selectNodes(
  database: GraphDatabase,
  { cipher }: GraphWorkspace,
  where: string,
  ...values: Values
): readonly StoredRow<GraphNode>[] {
  const rows = database.all<[number, string, string]>(
    `SELECT place, ref, body FROM graph_node WHERE ${where} ORDER BY place`,
    ...values,
  )
  const rowIds = JSON.stringify(rows.map(([rowId]) => rowId))
  const bodies = new Map(database.all<[number, string]>(observationsByNode, rowIds))
  const nodes = parseAll<GraphNode>(rows.map(([, digest, body]) => cipher.decrypt(body, digest)))
  const observations = parseAll<readonly string[]>(
    rows.map(([rowId, digest]) => `[${decryptObservations(bodies.get(rowId), digest, cipher)}]`),
  )
  return rows.map(([rowId], index): StoredRow<GraphNode> => {
    const { name, entityType } = nodes[index] as GraphNode
    return { rowId, row: { name, entityType, observations: observations[index] as readonly string[] } }
  })
}

/** Parses many JSON texts in one call, which takes half as long as one call each. */
function parseAll<T>(texts: readonly string[]): readonly T[] {
  const values = JSON.parse(`[${texts.join(',')}]`) as readonly T[]
  if (values.length === texts.length) return values
  throw new SyntaxError('a row holds several values')
}

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

/** Selects links in insertion order. */
export function selectLinks(
  database: GraphDatabase,
  { cipher }: GraphWorkspace,
  where: string,
  ...values: Values
): readonly StoredRow<GraphLink>[] {
  const rows = database.all<[number, string, string]>(
    `SELECT place, ref, body FROM graph_link WHERE ${where} ORDER BY place`,
    ...values,
  )
  const links = parseAll<GraphLink>(rows.map(([, digest, body]) => cipher.decrypt(body, digest)))
  return rows.map(([rowId], index): StoredRow<GraphLink> => ({ rowId, row: links[index] as GraphLink }))
}

/**
 * Concatenates the observations of each node in insertion order, which is the order of the index: no sort is needed.
 */
const observationsByNode = `SELECT node, group_concat(body, ',') FROM (
    SELECT node, body FROM graph_observation INDEXED BY graph_observation_node WHERE node IN (SELECT value FROM json_each(?)) ORDER BY node, place)
  GROUP BY node`

/** Decrypts comma-separated observation bodies to comma-separated JSON. Base64 ciphertexts contain no comma. */
function decryptObservations(bodies: string | undefined, digest: string, cipher: GraphCipher): string {
  if (bodies === undefined || cipher.isPlaintext) return bodies ?? ''
  return bodies
    .split(',')
    .map((body) => cipher.decrypt(body, digest))
    .join(',')
}

/** Characters of a query that go to the trigram index; more would not narrow the candidates further. */
const maxIndexedChars = 24

/** Builds the searched text of a row: lower-cased by JavaScript's rules, text by text, as the reference server does. */
const searchTextOf = (...texts: readonly string[]): string =>
  // SQLite's trigram index stops at a NUL.
  texts
    .map((text) => text.toLowerCase())
    .join('\n')
    .replaceAll('\0', '\ufffd')

/** True if the name, type or an observation of a node contains a lower-case text. */
export const nodeContains = ({ name, entityType, observations }: GraphNode, lowerCaseText: string): boolean =>
  [name, entityType, ...observations].some((text) => text.toLowerCase().includes(lowerCaseText))

/**
 * Builds a condition on `graph_node` that selects a superset of the nodes containing a lower-case text. Parameter 1 is
 * the workspace id; `values` are the parameters from 2 on.
 */
export function candidateCondition(lowerCaseText: string): {
  readonly where: string
  readonly values: readonly string[]
} {
  // A lone surrogate matches inside a JavaScript string but cannot be stored in the file, so scan all nodes.
  if (lowerCaseText === '' || !lowerCaseText.isWellFormed() || lowerCaseText.includes('\0'))
    return { where: 'home = ?1', values: [] }
  const chars = [...lowerCaseText].slice(0, maxIndexedChars)
  if (chars.length < 3) return { where: containsCondition('', ''), values: [lowerCaseText] }
  const trigrams = chars.slice(2).map((_, index) => quote(chars.slice(index, index + 3).join('')))
  return {
    where: containsCondition(indexCondition('graph_node'), indexCondition('graph_observation')),
    values: [lowerCaseText, trigrams.join(' AND ')],
  }
}

/**
 * Matches nodes by their own row or by an observation. The unary plus keeps SQLite from scanning all nodes of the
 * workspace.
 */
const containsCondition = (nodes: string, observations: string): string => `+home = ?1 AND place IN (
  SELECT place FROM graph_node WHERE instr(lower, ?2) > 0 ${nodes}
  UNION SELECT node FROM graph_observation WHERE instr(lower, ?2) > 0 ${observations})`

/** Restricts a table to rows that contain all trigrams, in any order. */
const indexCondition = (table: string): string =>
  `AND place IN (SELECT rowid FROM ${table}_words WHERE ${table}_words MATCH ?3)`

const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`
