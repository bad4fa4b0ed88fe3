import { MemoryError } from '../domain/error.ts'
import type { Clock } from '../domain/ports.ts'
import type { Work } from '../domain/work.ts'
import { deleteIndexed, deleteNodes, wipeIndexes } from '../stores/sqlite/graph.ts'
import type { GraphDatabase } from './database.ts'
import type { GraphMasking } from './maskedGraph.ts'
import {
  candidateCondition,
  insertLink,
  insertNodeInSteps,
  insertObservation,
  linkDigest,
  lookupWork,
  nodeContains,
  nodeDigest,
  rowWork,
  selectLinks,
  selectNodes,
} from './nodeRows.ts'
import type { GraphLink, GraphNode, NodeGraph, NodeStore } from './types.ts'
import type { GraphWorkspace, GraphWorkspaces } from './workspaces.ts'

type Values = readonly (string | number)[]

/** SQLite implementation of `NodeStore`, with one row per node, observation and link. */
export class SqliteNodeStore implements NodeStore {
  private readonly database: GraphDatabase
  private readonly workspaces: GraphWorkspaces
  private readonly clock: Clock
  private readonly masking: GraphMasking
  /** True if the index may still hold trigrams of deleted rows. */
  private hasDeletedTrigrams = false

  constructor(database: GraphDatabase, workspaces: GraphWorkspaces, clock: Clock, masking: GraphMasking) {
    this.database = database
    this.workspaces = workspaces
    this.clock = clock
    this.masking = masking
  }

  async createEntities(workspaceName: string, nodes: readonly GraphNode[]): Promise<readonly GraphNode[]> {
    const { entities } = await this.masking.maskNodes({ entities: nodes, relations: [] }, workspaceName)
    return this.writeInSteps(workspaceName, (workspace) => this.insertNodes(workspace, entities))
  }

  async createRelations(workspaceName: string, links: readonly GraphLink[]): Promise<readonly GraphLink[]> {
    const relations = await this.masking.mask(workspaceName, links)
    return this.writeInSteps(workspaceName, (workspace) => this.insertLinks(workspace, relations))
  }

  async addObservations(
    workspaceName: string,
    additions: Parameters<NodeStore['addObservations']>[1],
  ): ReturnType<NodeStore['addObservations']> {
    const observations = await this.masking.maskEach(additions, async ({ entityName, contents }) => ({
      entityName: await this.masking.mask(workspaceName, entityName),
      contents: await this.masking.maskNamed(workspaceName, entityName, contents),
    }))
    return this.writeInSteps(workspaceName, (workspace) => this.insertObservations(workspace, observations))
  }

  async deleteEntities(workspaceName: string, names: readonly string[]): Promise<void> {
    this.hasDeletedTrigrams = true
    const entityNames = await this.masking.mask(workspaceName, names)
    return this.writeInSteps(workspaceName, (workspace) => this.deleteNodes(workspace, entityNames))
  }

  async deleteObservations(
    workspaceName: string,
    unmasked: Parameters<NodeStore['deleteObservations']>[1],
  ): Promise<void> {
    this.hasDeletedTrigrams = true
    const deletions = await this.masking.maskEach(unmasked, async ({ entityName, observations }) => ({
      entityName: await this.masking.mask(workspaceName, entityName),
      observations: await this.masking.maskNamed(workspaceName, entityName, observations),
    }))
    return this.writeInSteps(workspaceName, (workspace) => this.deleteTexts(workspace, deletions))
  }

  async deleteRelations(workspaceName: string, links: readonly GraphLink[]): Promise<void> {
    const relations = await this.masking.mask(workspaceName, links)
    return this.writeInSteps(workspaceName, (workspace) => this.deleteLinks(workspace, relations))
  }

  readGraph(workspaceName: string): Promise<NodeGraph> {
    return this.read(workspaceName, (workspace) => {
      const readAll = (): NodeGraph => ({
        entities: this.selectNodes(workspace, 'home = ?', workspace.id),
        relations: this.selectLinks(workspace, 'home = ?', workspace.id),
      })
      // Decrypted content is not cached.
      return workspace.cipher.isPlaintext ? this.database.getOrCompute(`nodes ${workspace.id}`, readAll) : readAll()
    })
  }

  async searchNodes(workspaceName: string, query: string): Promise<NodeGraph> {
    const lowerCaseQuery = (await this.masking.mask(workspaceName, query)).toLowerCase()
    return this.read(workspaceName, (workspace) => {
      // Encrypted nodes have no index; all of them are decrypted and searched.
      const { where, values } = candidateCondition(workspace.cipher.isPlaintext ? lowerCaseQuery : '')
      const candidates = this.selectNodes(workspace, where, workspace.id, ...values)
      return this.withLinks(
        workspace,
        candidates.filter((node) => nodeContains(node, lowerCaseQuery)),
      )
    })
  }

  async openNodes(workspaceName: string, unmasked: readonly string[]): Promise<NodeGraph> {
    const names = await this.masking.mask(workspaceName, unmasked)
    return this.read(workspaceName, (workspace) => {
      const digests = JSON.stringify(names.map((name) => nodeDigest(workspace, name)))
      const where = 'home = ? AND ref IN (SELECT value FROM json_each(?))'
      return this.withLinks(workspace, this.selectNodes(workspace, where, workspace.id, digests))
    })
  }

  async importOnce(workspaceName: string, graph: NodeGraph): Promise<boolean> {
    const { entities, relations } = await this.masking.maskNodes(graph, workspaceName)
    return this.writeInSteps(workspaceName, (workspace) => this.insertImport(workspace, entities, relations))
  }

  /** Removes the trigrams of deleted rows from the index. Runs once for many deletions: it is slow on a large graph. */
  async wipe(): Promise<void> {
    if (!this.hasDeletedTrigrams) return
    this.hasDeletedTrigrams = false
    await this.database.write(() => wipeIndexes(this.database.database))
  }

  /**
   * As in the reference server, entities are compared with those before the call: a name given twice makes two nodes.
   */
  private *insertNodes(workspace: GraphWorkspace, nodes: readonly GraphNode[]): Work<readonly GraphNode[]> {
    const created: GraphNode[] = []
    for (const node of nodes) {
      if (this.findNode(workspace, node.name) === undefined) created.push(node)
      yield lookupWork
    }
    for (const node of created) yield* insertNodeInSteps(this.database, workspace, node)
    return created
  }

  private *insertLinks(workspace: GraphWorkspace, links: readonly GraphLink[]): Work<readonly GraphLink[]> {
    const created: GraphLink[] = []
    for (const link of links) {
      if (!this.hasLink(workspace, link)) created.push(link)
      yield lookupWork
    }
    for (const link of created) {
      insertLink(this.database, workspace, link)
      yield rowWork
    }
    return created
  }

  private *insertObservations(
    workspace: GraphWorkspace,
    additions: Parameters<NodeStore['addObservations']>[1],
  ): Work<Awaited<ReturnType<NodeStore['addObservations']>>> {
    const results: { entityName: string; addedObservations: readonly string[] }[] = []
    for (const { entityName, contents } of additions) {
      const node = this.findNode(workspace, entityName)
      // The message is that of the reference server. Throwing rolls back the observations added before.
      if (node === undefined)
        throw new MemoryError('bad-option', `Entity with name ${entityName} not found`, { param: 'observations' })
      const addedObservations: string[] = []
      for (const content of contents) {
        if (!this.hasObservation(workspace, node, content)) addedObservations.push(content)
        yield lookupWork
      }
      for (const content of addedObservations) {
        insertObservation(this.database, workspace, { rowId: node, row: { name: entityName } }, content)
        yield rowWork + content.length
      }
      results.push({ entityName, addedObservations })
    }
    return results
  }

  private *deleteNodes(workspace: GraphWorkspace, names: readonly string[]): Work<void> {
    for (const chunk of chunks(names)) {
      const digests = JSON.stringify(chunk.map((name) => nodeDigest(workspace, name)))
      deleteNodes(this.database.database, 'home = ? AND ref IN (SELECT value FROM json_each(?))', workspace.id, digests)
      this.database.run(`DELETE FROM graph_link WHERE ${linksOfNodes}`, workspace.id, digests)
      yield chunk.length * rowWork
    }
  }

  private *deleteTexts(
    workspace: GraphWorkspace,
    deletions: Parameters<NodeStore['deleteObservations']>[1],
  ): Work<void> {
    for (const { entityName, observations } of deletions) {
      yield lookupWork
      const node = this.findNode(workspace, entityName)
      if (node === undefined) continue
      for (const chunk of chunks(observations)) {
        deleteIndexed(
          this.database.database,
          'graph_observation',
          'node = ? AND ref IN (SELECT value FROM json_each(?))',
          node,
          JSON.stringify(chunk.map((text) => workspace.cipher.digest('observation', text))),
        )
        yield chunk.length * rowWork
      }
    }
  }

  private *deleteLinks(workspace: GraphWorkspace, links: readonly GraphLink[]): Work<void> {
    for (const chunk of chunks(links)) {
      const digests = JSON.stringify(chunk.map((link) => linkDigest(workspace, link)))
      this.database.run(
        'DELETE FROM graph_link WHERE home = ? AND ref IN (SELECT value FROM json_each(?))',
        workspace.id,
        digests,
      )
      yield chunk.length * rowWork
    }
  }

  private *insertImport(
    workspace: GraphWorkspace,
    nodes: readonly GraphNode[],
    links: readonly GraphLink[],
  ): Work<boolean> {
    const used = ['graph_adopted', 'graph_node', 'graph_link'].map((table) => `SELECT 1 FROM ${table} WHERE home = ?1`)
    if (this.database.get(used.join(' UNION ALL '), workspace.id) !== undefined) return false
    this.database.run('INSERT INTO graph_adopted (home, at) VALUES (?, ?)', workspace.id, this.clock())
    for (const node of nodes) yield* insertNodeInSteps(this.database, workspace, node)
    for (const link of links) {
      insertLink(this.database, workspace, link)
      yield rowWork
    }
    return true
  }

  /** Adds every relation with at least one of the entities at an end, even if the other end does not exist. */
  private withLinks(workspace: GraphWorkspace, entities: readonly GraphNode[]): NodeGraph {
    const digests = JSON.stringify(entities.map(({ name }) => nodeDigest(workspace, name)))
    return { entities, relations: this.selectLinks(workspace, linksOfNodes, workspace.id, digests) }
  }

  private selectNodes(workspace: GraphWorkspace, where: string, ...values: Values): readonly GraphNode[] {
    return selectNodes(this.database, workspace, where, ...values).map(({ row }) => row)
  }

  private selectLinks(workspace: GraphWorkspace, where: string, ...values: Values): readonly GraphLink[] {
    return selectLinks(this.database, workspace, where, ...values).map(({ row }) => row)
  }

  /** Returns the row id of the first node with a name. */
  private findNode(workspace: GraphWorkspace, name: string): number | undefined {
    return this.database.get<[number]>(
      'SELECT place FROM graph_node WHERE home = ? AND ref = ? ORDER BY place LIMIT 1',
      workspace.id,
      nodeDigest(workspace, name),
    )?.[0]
  }

  private hasLink(workspace: GraphWorkspace, link: GraphLink): boolean {
    const sql = 'SELECT 1 FROM graph_link WHERE home = ? AND ref = ?'
    return this.database.get(sql, workspace.id, linkDigest(workspace, link)) !== undefined
  }

  private hasObservation({ cipher }: GraphWorkspace, node: number, text: string): boolean {
    const sql = 'SELECT 1 FROM graph_observation WHERE node = ? AND ref = ?'
    return this.database.get(sql, node, cipher.digest('observation', text)) !== undefined
  }

  private writeInSteps<T>(workspaceName: string, work: (workspace: GraphWorkspace) => Work<T>): Promise<T> {
    this.masking.checkWorkspace(workspaceName)
    return this.database.writeInSteps(() => work(this.workspaces.findOrCreate(workspaceName, this.clock())))
  }

  private read(workspaceName: string, work: (workspace: GraphWorkspace) => NodeGraph): Promise<NodeGraph> {
    return this.database.read(() => {
      const workspace = this.workspaces.find(workspaceName)
      return workspace === undefined ? { entities: [], relations: [] } : work(workspace)
    })
  }
}

/** Links with one of the nodes, given as a JSON list of digests, at an end. */
const linksOfNodes = `place IN (
  SELECT place FROM graph_link WHERE home = ?1 AND source IN (SELECT value FROM json_each(?2))
  UNION SELECT place FROM graph_link WHERE home = ?1 AND target IN (SELECT value FROM json_each(?2)))`

/** Rows deleted by one statement. */
const rowsPerDeletion = 200

function* chunks<T>(values: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < values.length; at += rowsPerDeletion) yield values.slice(at, at + rowsPerDeletion)
}
