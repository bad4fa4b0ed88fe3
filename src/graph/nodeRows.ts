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
export const linkRef = ({ seal }: Home, { from, to, relationType }: Link): string => seal.ref('link', from, to, relationType)

/** Adds a node with its observations, inside a transaction. */
export function addNode(file: GraphFile, home: Home, { name, entityType, observations }: Node): void {
  const ref = nodeRef(home, name)
  const place = insert(file, home, 'graph_node', { home: home.id, ref, body: bodyOf(home, { name, entityType }) }, haystackOf(name, entityType))
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
  insert(file, home, 'graph_observation', { node: place, ref: home.seal.ref('observation', text), body }, haystackOf(text))
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
function insert(file: GraphFile, { seal }: Home, table: string, row: Readonly<Record<string, string | number>>, haystack: string): number {
  const lower = seal.isPlain ? haystack : null
  const { place } = file.run(`INSERT INTO ${table} (${Object.keys(row).join(', ')}, lower) VALUES (?, ?, ?, ?)`, ...Object.values(row), lower)
  if (lower !== null) file.run(`INSERT INTO ${table}_words (rowid, lower) VALUES (?, ?)`, place, lower)
  return place
}

/** Nodes with their observations, in the order in which they were made. */
export function heldNodes(file: GraphFile, { seal }: Home, where: string, ...values: Values): readonly Held<Node>[] {
  const rows = file.all<[number, string, string]>(`SELECT place, ref, body FROM graph_node WHERE ${where} ORDER BY place`, ...values)
  const places = JSON.stringify(rows.map(([place]) => place))
  const observed = new Map(file.all<[number, string]>(observedOf, places))
  return rows.map(([place, ref, body]) => {
    const { name, entityType } = JSON.parse(seal.take(body, ref)) as Node
    return { place, row: { name, entityType, observations: observationsIn(observed.get(place), ref, seal) } }
  })
}

/** Links in the order in which they were made. */
export function heldLinks(file: GraphFile, { seal }: Home, where: string, ...values: Values): readonly Held<Link>[] {
  const rows = file.all<[number, string, string]>(`SELECT place, ref, body FROM graph_link WHERE ${where} ORDER BY place`, ...values)
  return rows.map(([place, ref, body]) => ({ place, row: JSON.parse(seal.take(body, ref)) as Link }))
}

/** The observations of nodes, a list of places, each in the order in which they were made. */
const observedOf = `SELECT node, group_concat(body, ',' ORDER BY place) FROM graph_observation
  WHERE node IN (SELECT value FROM json_each(?)) GROUP BY node`

/** Observations as they come out of one row: JSON, or boxes, with commas in between. */
function observationsIn(bodies: string | undefined, ref: string, seal: Seal): readonly string[] {
  if (bodies === undefined) return []
  if (seal.isPlain) return JSON.parse(`[${bodies}]`) as string[]
  return bodies.split(',').map((box) => JSON.parse(seal.take(box, ref)) as string)
}
