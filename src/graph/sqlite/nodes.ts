import { MemoryError } from '../../domain/error.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Work } from '../../domain/work.ts'
import { deleteByEndsInSteps, deleteNodesInSteps, deleteRowsInSteps, inHome } from '../../stores/sqlite/graph.ts'
import { commitPoint } from '../../stores/sqlite/wipe/mergeIndexes.ts'
import { linkDigest, nodeDigest, observationDigest, ResultLimit } from '../nodeRows.ts'
import type { GraphLink, GraphNode, NodeGraph, NodeReadOptions, NodeStore, StoredRow } from '../types.ts'
import { parseWorkspace } from '../workspace.ts'
import type { GraphDatabase } from './database.ts'
import {
  insertLink,
  insertNodeInSteps,
  insertObservation,
  rowWork,
  selectLinksInSteps,
  selectNodesInSteps,
} from './nodeRows.ts'
import { chunks, lookupWork, selectCandidateIds, selectLinkIds, selectNodeIds, selectRowIds } from './rowIds.ts'
import type { GraphWorkspace, GraphWorkspaces } from './workspaces.ts'

/** SQLite implementation of `NodeStore`, with one row per node, observation and link. */
export class SqliteNodeStore implements NodeStore {
  private readonly database: GraphDatabase
  private readonly workspaces: GraphWorkspaces
  private readonly clock: Clock
  /** True if the index may still hold trigrams of deleted rows. */
  private hasDeletedTrigrams: boolean

  constructor(database: GraphDatabase, workspaces: GraphWorkspaces, clock: Clock) {
    this.database = database
    this.workspaces = workspaces
    this.clock = clock
    // An earlier process may have ended before it removed them.
    this.hasDeletedTrigrams = this.readDeletions() > 0
  }

  createEntities(workspaceName: string, nodes: readonly GraphNode[]): Promise<readonly GraphNode[]> {
    return this.writeInSteps(workspaceName, (workspace) => this.insertNodes(workspace, nodes))
  }

  createRelations(workspaceName: string, links: readonly GraphLink[]): Promise<readonly GraphLink[]> {
    return this.writeInSteps(workspaceName, (workspace) => this.insertLinks(workspace, links))
  }

  addObservations(
    workspaceName: string,
    additions: Parameters<NodeStore['addObservations']>[1],
  ): ReturnType<NodeStore['addObservations']> {
    return this.writeInSteps(workspaceName, (workspace) => this.insertObservations(workspace, additions))
  }

  deleteEntities(workspaceName: string, names: readonly string[]): Promise<void> {
    this.hasDeletedTrigrams = true
    return this.database
      .writeInParts(() => this.countDeletions(this.deleteNodes(workspaceName, names)))
      .finally(() => this.database.noteErasure())
  }

  deleteObservations(workspaceName: string, deletions: Parameters<NodeStore['deleteObservations']>[1]): Promise<void> {
    this.hasDeletedTrigrams = true
    return this.deleteInSteps(workspaceName, (workspace) => this.countDeletions(this.deleteTexts(workspace, deletions)))
  }

  deleteRelations(workspaceName: string, links: readonly GraphLink[]): Promise<void> {
    return this.deleteInSteps(workspaceName, (workspace) => this.deleteLinks(workspace, links))
  }

  readGraph(workspaceName: string, options: NodeReadOptions = {}): Promise<NodeGraph> {
    return this.read(workspaceName, (workspace) => {
      const readAll = () => this.selectAll(workspace, new ResultLimit(options))
      // Decrypted content is not cached.
      if (!workspace.cipher.isPlaintext) return readAll()
      return this.database.getOrCompute(`nodes ${workspace.id} ${options.maxCharacters}`, readAll)
    })
  }

  searchNodes(workspaceName: string, query: string, options: NodeReadOptions = {}): Promise<NodeGraph> {
    const text = query.toLowerCase()
    return this.read(workspaceName, (workspace) => this.search(workspace, text, new ResultLimit(options)))
  }

  openNodes(workspaceName: string, names: readonly string[], options: NodeReadOptions = {}): Promise<NodeGraph> {
    return this.read(workspaceName, (workspace) => this.open(workspace, names, new ResultLimit(options)))
  }

  importOnce(workspaceName: string, { entities, relations }: NodeGraph): Promise<boolean> {
    return this.writeInSteps(workspaceName, (workspace) => this.insertImport(workspace, entities, relations))
  }

  /** Removes the trigrams of deleted rows from the index. Runs once for many deletions: it is slow on a large graph. */
  async wipe(): Promise<void> {
    if (!this.hasDeletedTrigrams) return
    this.hasDeletedTrigrams = false
    await this.mergeIndexes()
    this.database.noteErasure()
  }

  /** Runs an erasure, and then removes the trigrams of what it has deleted. */
  async eraseInSteps<T>(erase: () => Work<T>): Promise<T> {
    try {
      const result = await this.database.eraseInSteps(() => this.countDeletions(erase()))
      await this.mergeIndexes()
      return result
    } catch (error) {
      // A part may be deleted.
      this.hasDeletedTrigrams = true
      throw error
    }
  }

  private async mergeIndexes(): Promise<void> {
    const { database } = this
    // After the deletions in the queue.
    const deletions = await database.write(() => this.readDeletions())
    await database.mergeIndexes()
    const sql = "DELETE FROM meta WHERE name = 'graph_deletions' AND value = ?"
    await database.write(() => database.run(sql, deletions))
  }

  /**
   * Counts a deletion in the file, in each of its transactions: if the process ends before it has merged the index, or
   * another one deletes during the merge, the index is merged when the graph is next closed.
   */
  private *countDeletions<T>(deletion: Work<T>): Work<T> {
    const sql = "INSERT INTO meta VALUES ('graph_deletions', 1) ON CONFLICT DO UPDATE SET value = value + 1"
    for (let step = deletion.next(); ; step = deletion.next()) {
      if (step.done === true || step.value === commitPoint) this.database.run(sql)
      if (step.done === true) return step.value
      yield step.value
    }
  }

  /** Number of transactions with deletions since the index was merged. */
  private readDeletions(): number {
    return this.database.get<[number]>("SELECT value FROM meta WHERE name = 'graph_deletions'")?.[0] ?? 0
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

  private *deleteNodes(workspaceName: string, names: readonly string[]): Work<void> {
    const { cipher } = this.workspaces.findOrCreate(workspaceName, this.clock())
    const { database } = this.database
    const key = parseWorkspace(workspaceName)
    for (const chunk of chunks(names)) {
      const digests = chunk.map((name) => nodeDigest(cipher, name))
      yield chunk.length * rowWork
      yield* deleteByEndsInSteps(database, 'graph_link', key, digests)
      const hasDigest = `${inHome} AND ref IN (SELECT value FROM json_each(?))`
      yield* deleteNodesInSteps(database, hasDigest, key.scope, key.id, JSON.stringify(digests))
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
        const digests = JSON.stringify(chunk.map((text) => observationDigest(workspace.cipher, text)))
        const stored = this.database.all<[number]>(
          'SELECT place FROM graph_observation WHERE node = ? AND ref IN (SELECT value FROM json_each(?))',
          node,
          digests,
        )
        yield* deleteRowsInSteps(
          this.database.database,
          'graph_observation',
          stored.map(([rowId]) => rowId),
        )
        yield chunk.length * rowWork
      }
    }
  }

  private *deleteLinks(workspace: GraphWorkspace, links: readonly GraphLink[]): Work<void> {
    for (const chunk of chunks(links)) {
      const digests = JSON.stringify(chunk.map((link) => linkDigest(workspace.cipher, link)))
      const stored = this.database.all<[number]>(
        'SELECT place FROM graph_link WHERE home = ? AND ref IN (SELECT value FROM json_each(?))',
        workspace.id,
        digests,
      )
      yield* deleteRowsInSteps(
        this.database.database,
        'graph_link',
        stored.map(([rowId]) => rowId),
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

  private *selectAll(workspace: GraphWorkspace, limit: ResultLimit): Work<NodeGraph> {
    const { database } = this
    const nodeIds = yield* selectRowIds(database, 'graph_node', workspace)
    const nodes = yield* selectNodesInSteps(database, workspace, { rowIds: nodeIds, limit })
    const linkIds = yield* selectRowIds(database, 'graph_link', workspace)
    const links = yield* selectLinksInSteps(database, workspace, { rowIds: linkIds, limit })
    return { entities: nodes.map(({ row }) => row), relations: links.map(({ row }) => row) }
  }

  private *search(workspace: GraphWorkspace, text: string, limit: ResultLimit): Work<NodeGraph> {
    const rowIds = yield* selectCandidateIds(this.database, workspace, text)
    const selection = { rowIds, text, limit }
    return yield* this.withLinks(workspace, yield* selectNodesInSteps(this.database, workspace, selection), limit)
  }

  private *open(workspace: GraphWorkspace, names: readonly string[], limit: ResultLimit): Work<NodeGraph> {
    const rowIds = yield* selectNodeIds(this.database, workspace, yield* digestNames(workspace, names))
    const nodes = yield* selectNodesInSteps(this.database, workspace, { rowIds, limit })
    return yield* this.withLinks(workspace, nodes, limit)
  }

  /** Adds every relation with at least one of the entities at an end, even if the other end does not exist. */
  private *withLinks(
    workspace: GraphWorkspace,
    nodes: readonly StoredRow<GraphNode>[],
    limit: ResultLimit,
  ): Work<NodeGraph> {
    const entities = nodes.map(({ row }) => row)
    const digests = yield* digestNames(
      workspace,
      entities.map(({ name }) => name),
    )
    const rowIds = yield* selectLinkIds(this.database, workspace, digests)
    const links = yield* selectLinksInSteps(this.database, workspace, { rowIds, limit })
    return { entities, relations: links.map(({ row }) => row) }
  }

  /** Returns the row id of the first node with a name. */
  private findNode(workspace: GraphWorkspace, name: string): number | undefined {
    return this.database.get<[number]>(
      'SELECT place FROM graph_node WHERE home = ? AND ref = ? ORDER BY place LIMIT 1',
      workspace.id,
      nodeDigest(workspace.cipher, name),
    )?.[0]
  }

  private hasLink(workspace: GraphWorkspace, link: GraphLink): boolean {
    const sql = 'SELECT 1 FROM graph_link WHERE home = ? AND ref = ?'
    return this.database.get(sql, workspace.id, linkDigest(workspace.cipher, link)) !== undefined
  }

  private hasObservation({ cipher }: GraphWorkspace, node: number, text: string): boolean {
    const sql = 'SELECT 1 FROM graph_observation WHERE node = ? AND ref = ?'
    return this.database.get(sql, node, observationDigest(cipher, text)) !== undefined
  }

  private writeInSteps<T>(workspaceName: string, work: (workspace: GraphWorkspace) => Work<T>): Promise<T> {
    return this.database.writeInSteps(() => work(this.workspaces.findOrCreate(workspaceName, this.clock())))
  }

  private async deleteInSteps(workspaceName: string, work: (workspace: GraphWorkspace) => Work<void>): Promise<void> {
    await this.writeInSteps(workspaceName, work)
    this.database.noteErasure()
  }

  private read(workspaceName: string, work: (workspace: GraphWorkspace) => Work<NodeGraph>): Promise<NodeGraph> {
    const { workspaces } = this
    return this.database.readInSteps(function* () {
      const workspace = workspaces.find(workspaceName)
      return workspace === undefined ? { entities: [], relations: [] } : yield* work(workspace)
    })
  }
}

/** Returns the digests of names, each once. Interruptible work. */
function* digestNames({ cipher }: GraphWorkspace, names: readonly string[]): Work<readonly string[]> {
  const digests = new Set<string>()
  for (const name of names) {
    digests.add(nodeDigest(cipher, name))
    yield lookupWork
  }
  return [...digests]
}
