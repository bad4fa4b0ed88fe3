import { MemoryError } from '../domain/error.ts'
import type { Clock } from '../domain/ports.ts'
import { deleteIndexed, deleteNodes } from '../stores/sqlite/graph.ts'
import type { GraphFile } from './file.ts'
import type { Link, Node, NodeGraph, Nodes } from './graph.ts'
import type { Home, Homes } from './home.ts'
import type { Seal } from './seal.ts'
import { haystackOf, isFoundBy, lookingFor } from './search.ts'

/** The nodes of the reference memory server on SQLite: an observation, a node and a link is a row each. */
export class SqliteNodes implements Nodes {
  private readonly file: GraphFile
  private readonly homes: Homes
  private readonly clock: Clock

  constructor(file: GraphFile, homes: Homes, clock: Clock) {
    this.file = file
    this.homes = homes
    this.clock = clock
  }

  createEntities(workspace: string, entities: readonly Node[]): Promise<readonly Node[]> {
    return this.write(workspace, (home) => {
      // Twice the same name in one call is two nodes: they are held against what was there before.
      const fresh = entities.filter(({ name }) => this.placeOf(home, name) === undefined)
      for (const node of fresh) this.addNode(home, node)
      return fresh
    })
  }

  createRelations(workspace: string, relations: readonly Link[]): Promise<readonly Link[]> {
    return this.write(workspace, (home) => {
      const isThere = (link: Link): boolean => this.file.one('SELECT 1 FROM graph_link WHERE home = ? AND ref = ?', home.id, linkRef(home, link)) !== undefined
      const fresh = relations.filter((link) => !isThere(link))
      for (const link of fresh) this.addLink(home, link)
      return fresh
    })
  }

  addObservations(workspace: string, observations: Parameters<Nodes['addObservations']>[1]): ReturnType<Nodes['addObservations']> {
    return this.write(workspace, (home) =>
      observations.map(({ entityName, contents }) => {
        const node = this.placeOf(home, entityName)
        // The words of the reference server; whatever was added before in this call is undone.
        if (node === undefined) throw new MemoryError('bad-option', `Entity with name ${entityName} not found`, { param: 'observations' })
        const addedObservations = contents.filter((content) => !this.isObserved(home, node, content))
        for (const content of addedObservations) this.observe(home, node, entityName, content)
        return { entityName, addedObservations }
      }),
    )
  }

  deleteEntities(workspace: string, entityNames: readonly string[]): Promise<void> {
    return this.write(workspace, (home) => {
      const refs = JSON.stringify(entityNames.map((name) => nodeRef(home, name)))
      deleteNodes(this.file.database, 'home = ? AND ref IN (SELECT value FROM json_each(?))', home.id, refs)
      this.file.run(`DELETE FROM graph_link WHERE ${touches}`, home.id, refs)
    })
  }

  deleteObservations(workspace: string, deletions: Parameters<Nodes['deleteObservations']>[1]): Promise<void> {
    return this.write(workspace, (home) => {
      for (const { entityName, observations } of deletions) {
        const node = this.placeOf(home, entityName)
        if (node === undefined) continue
        const refs = JSON.stringify(observations.map((text) => home.seal.ref('observation', text)))
        deleteIndexed(this.file.database, 'graph_observation', 'node = ? AND ref IN (SELECT value FROM json_each(?))', node, refs)
      }
    })
  }

  deleteRelations(workspace: string, relations: readonly Link[]): Promise<void> {
    return this.write(workspace, (home) => {
      const refs = JSON.stringify(relations.map((link) => linkRef(home, link)))
      this.file.run('DELETE FROM graph_link WHERE home = ? AND ref IN (SELECT value FROM json_each(?))', home.id, refs)
    })
  }

  readGraph(workspace: string): Promise<NodeGraph> {
    return this.read(workspace, (home) => ({
      entities: this.nodes(home, 'home = ?', home.id),
      relations: this.links(home, 'home = ?', home.id),
    }))
  }

  searchNodes(workspace: string, query: string): Promise<NodeGraph> {
    const wanted = query.toLowerCase()
    return this.read(workspace, (home) => {
      // Boxes must be opened to look into them.
      const { where, values } = lookingFor(home.seal.isPlain ? wanted : '')
      return this.withLinks(
        home,
        this.nodes(home, where, home.id, ...values).filter((node) => isFoundBy(node, wanted)),
      )
    })
  }

  openNodes(workspace: string, names: readonly string[]): Promise<NodeGraph> {
    return this.read(workspace, (home) => {
      const refs = JSON.stringify(names.map((name) => nodeRef(home, name)))
      return this.withLinks(home, this.nodes(home, 'home = ? AND ref IN (SELECT value FROM json_each(?))', home.id, refs))
    })
  }

  take(workspace: string, graph: NodeGraph): Promise<void> {
    return this.write(workspace, (home) => this.add(home, graph))
  }

  adopt(workspace: string, graph: NodeGraph): Promise<boolean> {
    return this.write(workspace, (home) => {
      const used = ['graph_adopted', 'graph_node', 'graph_link'].map((table) => `SELECT 1 FROM ${table} WHERE home = ?1`)
      if (this.file.one(used.join(' UNION ALL '), home.id) !== undefined) return false
      this.file.run('INSERT INTO graph_adopted (home, at) VALUES (?, ?)', home.id, this.clock())
      this.add(home, graph)
      return true
    })
  }

  private add(home: Home, { entities, relations }: NodeGraph): void {
    for (const node of entities) this.addNode(home, node)
    for (const link of relations) this.addLink(home, link)
  }

  /** With every relation that has one of them at an end, also if nobody knows the other end. */
  private withLinks(home: Home, entities: readonly Node[]): NodeGraph {
    const refs = JSON.stringify(entities.map(({ name }) => nodeRef(home, name)))
    return { entities, relations: this.links(home, touches, home.id, refs) }
  }

  private nodes({ seal }: Home, where: string, ...values: readonly (string | number)[]): readonly Node[] {
    const rows = this.file.all<[number, string, string]>(`SELECT place, ref, body FROM graph_node WHERE ${where} ORDER BY place`, ...values)
    const places = JSON.stringify(rows.map(([place]) => place))
    const observed = new Map(this.file.all<[number, string]>(observedOf, places))
    return rows.map(([place, ref, body]) => {
      const { name, entityType } = JSON.parse(seal.take(body, ref)) as Node
      return { name, entityType, observations: observationsIn(observed.get(place), ref, seal) }
    })
  }

  private links({ seal }: Home, where: string, ...values: readonly (string | number)[]): readonly Link[] {
    const rows = this.file.all<[string, string]>(`SELECT ref, body FROM graph_link WHERE ${where} ORDER BY place`, ...values)
    return rows.map(([ref, body]) => JSON.parse(seal.take(body, ref)) as Link)
  }

  /** Of several nodes of one name, the first. */
  private placeOf(home: Home, name: string): number | undefined {
    return this.file.one<[number]>('SELECT place FROM graph_node WHERE home = ? AND ref = ? ORDER BY place LIMIT 1', home.id, nodeRef(home, name))?.[0]
  }

  private isObserved({ seal }: Home, node: number, text: string): boolean {
    return this.file.one('SELECT 1 FROM graph_observation WHERE node = ? AND ref = ?', node, seal.ref('observation', text)) !== undefined
  }

  private addNode(home: Home, { name, entityType, observations }: Node): void {
    const ref = nodeRef(home, name)
    const body = home.seal.put(JSON.stringify({ name, entityType }), ref)
    const place = this.insert(home, 'graph_node', { home: home.id, ref, body }, haystackOf(name, entityType))
    for (const text of observations) this.observe(home, place, name, text)
  }

  private observe(home: Home, node: number, name: string, text: string): void {
    const body = home.seal.put(JSON.stringify(text), nodeRef(home, name))
    this.insert(home, 'graph_observation', { node, ref: home.seal.ref('observation', text), body }, haystackOf(text))
  }

  /** Adds a row to a table and, unless it must not be read there, to its index. */
  private insert({ seal }: Home, table: string, row: Readonly<Record<string, string | number>>, haystack: string): number {
    const lower = seal.isPlain ? haystack : null
    const { place } = this.file.run(`INSERT INTO ${table} (${Object.keys(row).join(', ')}, lower) VALUES (?, ?, ?, ?)`, ...Object.values(row), lower)
    if (lower !== null) this.file.run(`INSERT INTO ${table}_words (rowid, lower) VALUES (?, ?)`, place, lower)
    return place
  }

  private addLink(home: Home, { from, to, relationType }: Link): void {
    const ref = linkRef(home, { from, to, relationType })
    this.file.run(
      'INSERT INTO graph_link (home, ref, source, target, body) VALUES (?, ?, ?, ?, ?)',
      home.id,
      ref,
      nodeRef(home, from),
      nodeRef(home, to),
      home.seal.put(JSON.stringify({ from, to, relationType }), ref),
    )
  }

  private write<T>(workspace: string, work: (home: Home) => T): Promise<T> {
    return this.file.write(() => work(this.homes.make(workspace, this.clock())))
  }

  private read(workspace: string, work: (home: Home) => NodeGraph): Promise<NodeGraph> {
    return this.file.read(() => {
      const home = this.homes.find(workspace)
      return home === undefined ? { entities: [], relations: [] } : work(home)
    })
  }
}

const nodeRef = ({ seal }: Home, name: string): string => seal.ref('node', name)
const linkRef = ({ seal }: Home, { from, to, relationType }: Link): string => seal.ref('link', from, to, relationType)

/** Links with one of these names, a list of digests, at an end. */
const touches = `place IN (
  SELECT place FROM graph_link WHERE home = ?1 AND source IN (SELECT value FROM json_each(?2))
  UNION SELECT place FROM graph_link WHERE home = ?1 AND target IN (SELECT value FROM json_each(?2)))`

/** The observations of nodes, a list of places, each in the order in which they were made. */
const observedOf = `SELECT node, group_concat(body, ',' ORDER BY place) FROM graph_observation
  WHERE node IN (SELECT value FROM json_each(?)) GROUP BY node`

/** Observations as they come out of one row: JSON, or boxes, with commas in between. */
function observationsIn(bodies: string | undefined, ref: string, seal: Seal): readonly string[] {
  if (bodies === undefined) return []
  if (seal.isPlain) return JSON.parse(`[${bodies}]`) as string[]
  return bodies.split(',').map((box) => JSON.parse(seal.take(box, ref)) as string)
}
