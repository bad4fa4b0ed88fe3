import { unindex } from '../stores/sqlite/graph.ts'
import type { GraphFile } from './file.ts'
import type { Link, Node } from './graph.ts'
import type { Home } from './home.ts'
import type { Seal } from './seal.ts'
import { haystackOf } from './search.ts'

type Values = readonly (string | number)[]
/** A row and its number. */
export type Held<T> = { readonly place: number; readonly row: T }

export const nodeRef = ({ seal }: Home, name: string): string => seal.ref('node', name)
export const linkRef = ({ seal }: Home, { from, to, relationType }: Link): string =>
  seal.ref('link', from, to, relationType)

/** Adds a node with its observations, inside a transaction. */
export function addNode(file: GraphFile, home: Home, { name, entityType, observations }: Node): void {
  const ref = nodeRef(home, name)
  const place = insert(
    file,
    home,
    'graph_node',
    { home: home.id, ref, body: bodyOf(home, { name, entityType }) },
    haystackOf(name, entityType),
  )
  for (const text of observations) observe(file, home, { place, row: { name } }, text)
}

/** Gives a node another type, if it is another. */
export function retype(file: GraphFile, home: Home, { place, row }: Held<Node>): void {
  const [held] = heldNodes(file, home, 'place = ?', place)
  if (held?.row.entityType === row.entityType) return
  const lower = home.seal.isPlain ? haystackOf(row.name, row.entityType) : null
  unindex(file.database, 'graph_node', 'place = ?', place)
  file.run('UPDATE graph_node SET body = ?, lower = ? WHERE place = ?', bodyOf(home, row), lower, place)
  if (lower !== null) file.run('INSERT INTO graph_node_words (rowid, lower) VALUES (?, ?)', place, lower)
}

/** Adds an observation to a node, also if it is there already. */
export function observe(file: GraphFile, home: Home, { place, row }: Held<Pick<Node, 'name'>>, text: string): void {
  const body = home.seal.put(JSON.stringify(text), nodeRef(home, row.name))
  insert(
    file,
    home,
    'graph_observation',
    { node: place, ref: home.seal.ref('observation', text), body },
    haystackOf(text),
  )
}

/** Adds a link, also if it is there already. */
export function addLink(file: GraphFile, home: Home, { from, to, relationType }: Link): void {
  const ref = linkRef(home, { from, to, relationType })
  const body = home.seal.put(JSON.stringify({ from, to, relationType }), ref)
  const values = [home.id, ref, nodeRef(home, from), nodeRef(home, to), body]
  file.run('INSERT INTO graph_link (home, ref, source, target, body) VALUES (?, ?, ?, ?, ?)', ...values)
}

const bodyOf = (home: Home, { name, entityType }: Pick<Node, 'name' | 'entityType'>): string =>
  home.seal.put(JSON.stringify({ name, entityType }), nodeRef(home, name))

/** Adds a row to a table and, unless it must not be read there, to its index. */
function insert(
  file: GraphFile,
  { seal }: Home,
  table: string,
  row: Readonly<Record<string, string | number>>,
  haystack: string,
): number {
  const lower = seal.isPlain ? haystack : null
  const { place } = file.run(
    `INSERT INTO ${table} (${Object.keys(row).join(', ')}, lower) VALUES (?, ?, ?, ?)`,
    ...Object.values(row),
    lower,
  )
  if (lower !== null) file.run(`INSERT INTO ${table}_words (rowid, lower) VALUES (?, ?)`, place, lower)
  return place
}

/** Nodes with their observations, in the order in which they were made. */
export function heldNodes(file: GraphFile, { seal }: Home, where: string, ...values: Values): readonly Held<Node>[] {
  const rows = file.all<[number, string, string]>(
    `SELECT place, ref, body FROM graph_node WHERE ${where} ORDER BY place`,
    ...values,
  )
  const places = JSON.stringify(rows.map(([place]) => place))
  const observed = new Map(file.all<[number, string]>(observedOf, places))
  const nodes = parsedTogether<Node>(rows.map(([, ref, body]) => seal.take(body, ref)))
  const observations = parsedTogether<readonly string[]>(
    rows.map(([place, ref]) => `[${observationsIn(observed.get(place), ref, seal)}]`),
  )
  return rows.map(([place], at) => {
    const { name, entityType } = nodes[at] as Node
    return { place, row: { name, entityType, observations: observations[at] as readonly string[] } }
  })
}

/** JSON texts as the values they are: to parse many at once takes half as long. */
function parsedTogether<T>(texts: readonly string[]): readonly T[] {
  const values = JSON.parse(`[${texts.join(',')}]`) as readonly T[]
  if (values.length === texts.length) return values
  throw new SyntaxError('a row holds several values')
}

/** The observations of a node, each by itself. */
export function heldObservations(file: GraphFile, { seal }: Home, node: number): readonly Held<string>[] {
  const rows = file.all<[number, string, string]>(
    'SELECT o.place, n.ref, o.body FROM graph_observation o JOIN graph_node n ON n.place = o.node WHERE o.node = ? ORDER BY o.place',
    node,
  )
  return rows.map(([place, ref, body]) => ({ place, row: JSON.parse(seal.take(body, ref)) as string }))
}

/** Links in the order in which they were made. */
export function heldLinks(file: GraphFile, { seal }: Home, where: string, ...values: Values): readonly Held<Link>[] {
  const rows = file.all<[number, string, string]>(
    `SELECT place, ref, body FROM graph_link WHERE ${where} ORDER BY place`,
    ...values,
  )
  const links = parsedTogether<Link>(rows.map(([, ref, body]) => seal.take(body, ref)))
  return rows.map(([place], at) => ({ place, row: links[at] as Link }))
}

/** The observations of nodes, a list of places, each in the order in which they were made: that of the index, so that nothing has to be sorted. */
const observedOf = `SELECT node, group_concat(body, ',') FROM (
    SELECT node, body FROM graph_observation INDEXED BY graph_observation_node WHERE node IN (SELECT value FROM json_each(?)) ORDER BY node, place)
  GROUP BY node`

/** Observations as they come out of one row, JSON or boxes with commas in between, as JSON with commas in between. */
function observationsIn(bodies: string | undefined, ref: string, seal: Seal): string {
  if (bodies === undefined || seal.isPlain) return bodies ?? ''
  return bodies
    .split(',')
    .map((box) => seal.take(box, ref))
    .join(',')
}
