import { MemoryError } from '../../domain/error.ts'
import { isInSearchText, linkDigest, nodeContains, nodeDigest, observationDigest, ResultLimit } from '../nodeRows.ts'
import type { GraphLink, GraphNode, NodeGraph, NodeReadOptions, NodeStore } from '../types.ts'
import { insertLinks, insertNodes, insertObservations, type NewObservations, NodeCollector } from './nodeRows.ts'
import type { WorkspaceRows } from './workspaceRows.ts'
import type { PostgresWorkspaces } from './workspaces.ts'

const noNodes: NodeGraph = { entities: [], relations: [] }

/** PostgreSQL implementation of `NodeStore`, with one row per node, observation and link. */
export class PostgresNodeStore implements NodeStore {
  private readonly workspaces: PostgresWorkspaces

  constructor(workspaces: PostgresWorkspaces) {
    this.workspaces = workspaces
  }

  /**
   * As in the reference server, entities are compared with those before the call: a name given twice makes two nodes.
   */
  createEntities(workspace: string, nodes: readonly GraphNode[]): Promise<readonly GraphNode[]> {
    return this.workspaces.write(workspace, async (rows) => {
      const known = await findNodes(
        rows,
        nodes.map(({ name }) => name),
      )
      const created = nodes.filter(({ name }) => !known.has(name))
      await insertNodes(rows, created)
      return created
    })
  }

  createRelations(workspace: string, links: readonly GraphLink[]): Promise<readonly GraphLink[]> {
    return this.workspaces.write(workspace, async (rows) => {
      const digests = links.map((link) => linkDigest(rows.cipher, link))
      const known = new Set((await rows.selectKeys('ref', digests, 'link')).map(([, digest]) => digest))
      const created = links.filter((_, index) => !known.has(digests[index] as string))
      await insertLinks(rows, created)
      return created
    })
  }

  addObservations(
    workspace: string,
    additions: Parameters<NodeStore['addObservations']>[1],
  ): ReturnType<NodeStore['addObservations']> {
    return this.workspaces.write(workspace, async (rows) => {
      const nodes = await findNodes(
        rows,
        additions.map(({ entityName }) => entityName),
      )
      const known = await findObservations(rows, nodes.values())
      const added: NewObservations[] = []
      const results = additions.map(({ entityName, contents }) => {
        const place = nodes.get(entityName)
        // The message is that of the reference server. Throwing rolls back the transaction.
        if (place === undefined)
          throw new MemoryError('bad-option', `Entity with name ${entityName} not found`, { param: 'observations' })
        const names = contents.map((content) => `${place} ${observationDigest(rows.cipher, content)}`)
        const texts = contents.filter((_, index) => !known.has(names[index] as string))
        for (const name of names) known.add(name)
        added.push({ place, name: entityName, texts })
        return { entityName, addedObservations: texts }
      })
      await insertObservations(rows, added)
      return results
    })
  }

  deleteEntities(workspace: string, names: readonly string[]): Promise<void> {
    return this.workspaces.write(workspace, async (rows) => {
      const digests = names.map((name) => nodeDigest(rows.cipher, name))
      await rows.deleteNodes(await rows.findPlaces('ref', digests, 'node'))
      await rows.deleteRows(await rows.findWithEnd(digests, 'link'))
    })
  }

  deleteObservations(workspace: string, deletions: Parameters<NodeStore['deleteObservations']>[1]): Promise<void> {
    return this.workspaces.write(workspace, async (rows) => {
      const nodes = await findNodes(
        rows,
        deletions.map(({ entityName }) => entityName),
      )
      const deleted = new Set(
        deletions.flatMap(({ entityName, observations }) =>
          observations.map((text) => `${nodes.get(entityName)} ${observationDigest(rows.cipher, text)}`),
        ),
      )
      const stored = await rows.selectKeys('node', nodes.values(), 'observation')
      await rows.deleteRows(stored.filter(([, ref, node]) => deleted.has(`${node} ${ref}`)).map(([place]) => place))
    })
  }

  deleteRelations(workspace: string, links: readonly GraphLink[]): Promise<void> {
    return this.workspaces.write(workspace, async (rows) => {
      const digests = links.map((link) => linkDigest(rows.cipher, link))
      await rows.deleteRows(await rows.findPlaces('ref', digests, 'link'))
    })
  }

  readGraph(workspace: string, options: NodeReadOptions = {}): Promise<NodeGraph> {
    return this.workspaces.read(workspace, noNodes, async (rows) => {
      const { nodes, links } = await collectAll(rows, new ResultLimit(options))
      return { entities: nodes, relations: links }
    })
  }

  searchNodes(workspace: string, query: string, options: NodeReadOptions = {}): Promise<NodeGraph> {
    const lowerCaseQuery = query.toLowerCase()
    return this.workspaces.read(workspace, noNodes, async (rows) => {
      const limit = new ResultLimit(options)
      const candidates = await findCandidates(rows, lowerCaseQuery)
      const found = candidates.filter((node) => nodeContains(node, lowerCaseQuery))
      for (const { name, entityType, observations } of found) limit.add([name, entityType, ...observations])
      return withLinks(rows, found, limit)
    })
  }

  openNodes(workspace: string, names: readonly string[], options: NodeReadOptions = {}): Promise<NodeGraph> {
    return this.workspaces.read(workspace, noNodes, async (rows) => {
      const limit = new ResultLimit(options)
      const digests = names.map((name) => nodeDigest(rows.cipher, name))
      return withLinks(rows, await collectNodes(rows, await rows.findPlaces('ref', digests, 'node'), limit), limit)
    })
  }

  importOnce(workspace: string, { entities, relations }: NodeGraph): Promise<boolean> {
    return this.workspaces.write(workspace, async (rows, at) => {
      if ((await rows.count("kind IN ('adopted', 'node', 'link')")) > 0) return false
      await insertAdopted(rows, at)
      await insertNodes(rows, entities)
      await insertLinks(rows, relations)
      return true
    })
  }
}

/** Records that the workspace has imported a file of the reference memory server. */
export async function insertAdopted(rows: WorkspaceRows, at: number): Promise<void> {
  const [place] = await rows.reservePlaces(1)
  await rows.insert([{ place: place as number, kind: 'adopted', ref: '', body: '', created: at }])
}

/** Returns a superset of the nodes that contain a lower-case text. */
async function findCandidates(rows: WorkspaceRows, lowerCaseText: string): Promise<readonly GraphNode[]> {
  // Encrypted nodes have no search text; all of them are decrypted and searched.
  if (!rows.cipher.isPlaintext || !isInSearchText(lowerCaseText)) return (await collectAll(rows)).nodes
  const found = await rows.query<[number]>(
    `SELECT DISTINCT coalesce(node, place) FROM tk.graph_row
      WHERE scope = $1 AND kind IN ('node', 'observation') AND strpos(lower, $2) > 0`,
    lowerCaseText,
  )
  return collectNodes(
    rows,
    found.map(([place]) => place),
  )
}

/** Reads the nodes at some places with their observations, in insertion order. */
async function collectNodes(
  rows: WorkspaceRows,
  places: readonly number[],
  limit?: ResultLimit,
): Promise<readonly GraphNode[]> {
  const collector = new NodeCollector(rows.cipher, limit)
  collector.add(await rows.selectBy('place', places, 'node'))
  collector.add(await rows.selectBy('node', places, 'observation'))
  return collector.listNodes().map(({ row }) => row)
}

/** Reads all nodes and links, in insertion order. */
async function collectAll(
  rows: WorkspaceRows,
  limit?: ResultLimit,
): Promise<{ readonly nodes: readonly GraphNode[]; readonly links: readonly GraphLink[] }> {
  const collector = new NodeCollector(rows.cipher, limit)
  for await (const page of rows.scan("kind IN ('node', 'observation', 'link')")) collector.add(page)
  return { nodes: collector.listNodes().map(({ row }) => row), links: collector.links.map(({ row }) => row) }
}

/** Adds every relation with at least one of the entities at an end, even if the other end does not exist. */
async function withLinks(rows: WorkspaceRows, entities: readonly GraphNode[], limit: ResultLimit): Promise<NodeGraph> {
  const digests = entities.map(({ name }) => nodeDigest(rows.cipher, name))
  const collector = new NodeCollector(rows.cipher, limit)
  collector.add(await rows.selectBy('place', await rows.findWithEnd(digests, 'link'), 'link'))
  return { entities, relations: collector.links.map(({ row }) => row) }
}

/** Returns the places of the first nodes with these names. */
async function findNodes(rows: WorkspaceRows, names: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const nameOf = new Map(names.map((name) => [nodeDigest(rows.cipher, name), name]))
  const found = await rows.selectKeys('ref', nameOf.keys(), 'node')
  // Of nodes with the same name, the first is set last.
  return new Map(found.reverse().map(([place, digest]) => [nameOf.get(digest) as string, place]))
}

/** Returns the observations of nodes as place of the node and digest. */
async function findObservations(rows: WorkspaceRows, nodes: Iterable<number>): Promise<Set<string>> {
  const found = await rows.selectKeys('node', nodes, 'observation')
  return new Set(found.map(([, digest, node]) => `${node} ${digest}`))
}
