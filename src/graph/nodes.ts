import { MemoryError } from '../domain/error.ts'
import type { Clock } from '../domain/ports.ts'
import { deleteIndexed, deleteNodes, wipeIndexes } from '../stores/sqlite/graph.ts'
import type { GraphFile } from './file.ts'
import type { Link, Node, NodeGraph, Nodes } from './graph.ts'
import type { Home, Homes } from './home.ts'
import { addLink, addNode, heldLinks, heldNodes, linkRef, nodeRef, observe } from './nodeRows.ts'
import { isFoundBy, lookingFor } from './search.ts'

/** The nodes of the reference memory server on SQLite: an observation, a node and a link is a row each. */
export class SqliteNodes implements Nodes {
  private readonly file: GraphFile
  private readonly homes: Homes
  private readonly clock: Clock
  /** Whether something is deleted whose letters may still stand in the index. */
  private isUnwiped = false

  constructor(file: GraphFile, homes: Homes, clock: Clock) {
    this.file = file
    this.homes = homes
    this.clock = clock
  }

  createEntities(workspace: string, entities: readonly Node[]): Promise<readonly Node[]> {
    return this.write(workspace, (home) => {
      // Twice the same name in one call is two nodes: they are held against what was there before.
      const fresh = entities.filter(({ name }) => this.placeOf(home, name) === undefined)
      for (const node of fresh) addNode(this.file, home, node)
      return fresh
    })
  }

  createRelations(workspace: string, relations: readonly Link[]): Promise<readonly Link[]> {
    return this.write(workspace, (home) => {
      const isThere = (link: Link): boolean =>
        this.file.one('SELECT 1 FROM graph_link WHERE home = ? AND ref = ?', home.id, linkRef(home, link)) !== undefined
      const fresh = relations.filter((link) => !isThere(link))
      for (const link of fresh) addLink(this.file, home, link)
      return fresh
    })
  }

  addObservations(
    workspace: string,
    observations: Parameters<Nodes['addObservations']>[1],
  ): ReturnType<Nodes['addObservations']> {
    return this.write(workspace, (home) =>
      observations.map(({ entityName, contents }) => {
        const node = this.placeOf(home, entityName)
        // The words of the reference server; whatever was added before in this call is undone.
        if (node === undefined)
          throw new MemoryError('bad-option', `Entity with name ${entityName} not found`, { param: 'observations' })
        const addedObservations = contents.filter((content) => !this.isObserved(home, node, content))
        for (const content of addedObservations)
          observe(this.file, home, { place: node, row: { name: entityName } }, content)
        return { entityName, addedObservations }
      }),
    )
  }

  deleteEntities(workspace: string, entityNames: readonly string[]): Promise<void> {
    this.isUnwiped = true
    return this.write(workspace, (home) => {
      const refs = JSON.stringify(entityNames.map((name) => nodeRef(home, name)))
      deleteNodes(this.file.database, 'home = ? AND ref IN (SELECT value FROM json_each(?))', home.id, refs)
      this.file.run(`DELETE FROM graph_link WHERE ${touches}`, home.id, refs)
    })
  }

  deleteObservations(workspace: string, deletions: Parameters<Nodes['deleteObservations']>[1]): Promise<void> {
    this.isUnwiped = true
    return this.write(workspace, (home) => {
      for (const { entityName, observations } of deletions) {
        const node = this.placeOf(home, entityName)
        if (node === undefined) continue
        const refs = JSON.stringify(observations.map((text) => home.seal.ref('observation', text)))
        deleteIndexed(
          this.file.database,
          'graph_observation',
          'node = ? AND ref IN (SELECT value FROM json_each(?))',
          node,
          refs,
        )
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
    return this.read(workspace, (home) => {
      const whole = (): NodeGraph => ({
        entities: this.nodes(home, 'home = ?', home.id),
        relations: this.links(home, 'home = ?', home.id),
      })
      // What is encrypted does not lie about in the clear.
      return home.seal.isPlain ? this.file.kept(`nodes ${home.id}`, whole) : whole()
    })
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
      return this.withLinks(
        home,
        this.nodes(home, 'home = ? AND ref IN (SELECT value FROM json_each(?))', home.id, refs),
      )
    })
  }

  take(workspace: string, graph: NodeGraph): Promise<void> {
    return this.write(workspace, (home) => this.add(home, graph))
  }

  adopt(workspace: string, graph: NodeGraph): Promise<boolean> {
    return this.write(workspace, (home) => {
      const used = ['graph_adopted', 'graph_node', 'graph_link'].map(
        (table) => `SELECT 1 FROM ${table} WHERE home = ?1`,
      )
      if (this.file.one(used.join(' UNION ALL '), home.id) !== undefined) return false
      this.file.run('INSERT INTO graph_adopted (home, at) VALUES (?, ?)', home.id, this.clock())
      this.add(home, graph)
      return true
    })
  }

  /** Takes the letters of what was deleted out of the index. It is done once for many deletions: for a large graph it takes a while. */
  async wipe(): Promise<void> {
    if (!this.isUnwiped) return
    this.isUnwiped = false
    await this.file.write(() => wipeIndexes(this.file.database))
  }

  private add(home: Home, { entities, relations }: NodeGraph): void {
    for (const node of entities) addNode(this.file, home, node)
    for (const link of relations) addLink(this.file, home, link)
  }

  /** With every relation that has one of them at an end, also if nobody knows the other end. */
  private withLinks(home: Home, entities: readonly Node[]): NodeGraph {
    const refs = JSON.stringify(entities.map(({ name }) => nodeRef(home, name)))
    return { entities, relations: this.links(home, touches, home.id, refs) }
  }

  private nodes(home: Home, where: string, ...values: readonly (string | number)[]): readonly Node[] {
    return heldNodes(this.file, home, where, ...values).map(({ row }) => row)
  }

  private links(home: Home, where: string, ...values: readonly (string | number)[]): readonly Link[] {
    return heldLinks(this.file, home, where, ...values).map(({ row }) => row)
  }

  /** Of several nodes of one name, the first. */
  private placeOf(home: Home, name: string): number | undefined {
    return this.file.one<[number]>(
      'SELECT place FROM graph_node WHERE home = ? AND ref = ? ORDER BY place LIMIT 1',
      home.id,
      nodeRef(home, name),
    )?.[0]
  }

  private isObserved({ seal }: Home, node: number, text: string): boolean {
    return (
      this.file.one(
        'SELECT 1 FROM graph_observation WHERE node = ? AND ref = ?',
        node,
        seal.ref('observation', text),
      ) !== undefined
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

/** Links with one of these names, a list of digests, at an end. */
const touches = `place IN (
  SELECT place FROM graph_link WHERE home = ?1 AND source IN (SELECT value FROM json_each(?2))
  UNION SELECT place FROM graph_link WHERE home = ?1 AND target IN (SELECT value FROM json_each(?2)))`
