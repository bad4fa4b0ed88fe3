import { z } from 'zod'
import { type Annotations, type Call, type Tool, tool } from '../tool.ts'
import { graphUri } from '../uri.ts'

// Names, titles, descriptions and schemas are those of @modelcontextprotocol/server-memory, so that it can be replaced
// by changing one line of a client's configuration.

const entity = z.object({
  name: z.string().describe('The name of the entity'),
  entityType: z.string().describe('The type of the entity'),
  observations: z.array(z.string()).describe('An array of observation contents associated with the entity'),
})
const relation = z.object({
  from: z.string().describe('The name of the entity where the relation starts'),
  to: z.string().describe('The name of the entity where the relation ends'),
  relationType: z.string().describe('The type of the relation'),
})
const graph = z.object({ entities: z.array(entity), relations: z.array(relation) })
const done = z.object({ success: z.boolean(), message: z.string() })

const adds: Annotations = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false }
const deletes: Annotations = { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false }
const reads: Annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

const createEntities = tool({
  name: 'create_entities',
  title: 'Create Entities',
  description: 'Create multiple new entities in the knowledge graph',
  input: z.object({ entities: z.array(entity) }),
  output: z.object({ entities: z.array(entity) }),
  annotations: adds,
  fixed: true,
  run: async ({ entities }, call) => {
    const created = await nodesOf(call).createEntities(call.workspace, entities)
    return changed(call, created, { entities: mutable(created) })
  },
})

const createRelations = tool({
  name: 'create_relations',
  title: 'Create Relations',
  description:
    'Create multiple new relations between entities in the knowledge graph. Relations should be in active voice',
  input: z.object({ relations: z.array(relation) }),
  output: z.object({ relations: z.array(relation) }),
  annotations: adds,
  fixed: true,
  run: async ({ relations }, call) => {
    const created = await nodesOf(call).createRelations(call.workspace, relations)
    return changed(call, created, { relations: mutable(created) })
  },
})

const addObservations = tool({
  name: 'add_observations',
  title: 'Add Observations',
  description: 'Add new observations to existing entities in the knowledge graph',
  input: z.object({
    observations: z.array(
      z.object({
        entityName: z.string().describe('The name of the entity to add the observations to'),
        contents: z.array(z.string()).describe('An array of observation contents to add'),
      }),
    ),
  }),
  output: z.object({ results: z.array(z.object({ entityName: z.string(), addedObservations: z.array(z.string()) })) }),
  annotations: adds,
  fixed: true,
  run: async ({ observations }, call) => {
    const results = await nodesOf(call).addObservations(call.workspace, observations)
    return changed(call, results, { results: mutable(results) })
  },
})

const deleteEntities = tool({
  name: 'delete_entities',
  title: 'Delete Entities',
  description: 'Delete multiple entities and their associated relations from the knowledge graph',
  input: z.object({ entityNames: z.array(z.string()).describe('An array of entity names to delete') }),
  output: done,
  annotations: deletes,
  fixed: true,
  run: async ({ entityNames }, call) => {
    await nodesOf(call).deleteEntities(call.workspace, entityNames)
    return deleted(call, 'Entities deleted successfully')
  },
})

const deleteObservations = tool({
  name: 'delete_observations',
  title: 'Delete Observations',
  description: 'Delete specific observations from entities in the knowledge graph',
  input: z.object({
    deletions: z.array(
      z.object({
        entityName: z.string().describe('The name of the entity containing the observations'),
        observations: z.array(z.string()).describe('An array of observations to delete'),
      }),
    ),
  }),
  output: done,
  annotations: deletes,
  fixed: true,
  run: async ({ deletions }, call) => {
    await nodesOf(call).deleteObservations(call.workspace, deletions)
    return deleted(call, 'Observations deleted successfully')
  },
})

const deleteRelations = tool({
  name: 'delete_relations',
  title: 'Delete Relations',
  description: 'Delete multiple relations from the knowledge graph',
  input: z.object({ relations: z.array(relation).describe('An array of relations to delete') }),
  output: done,
  annotations: deletes,
  fixed: true,
  run: async ({ relations }, call) => {
    await nodesOf(call).deleteRelations(call.workspace, relations)
    return deleted(call, 'Relations deleted successfully')
  },
})

const readGraph = tool({
  name: 'read_graph',
  title: 'Read Graph',
  description: 'Read the entire knowledge graph',
  input: z.object({}),
  output: graph,
  annotations: reads,
  fixed: true,
  run: async (_, call) => found(await nodesOf(call).readGraph(call.workspace)),
})

const searchNodes = tool({
  name: 'search_nodes',
  title: 'Search Nodes',
  description: 'Search for nodes in the knowledge graph based on a query',
  input: z.object({
    query: z.string().describe('The search query to match against entity names, types, and observation content'),
  }),
  output: graph,
  annotations: reads,
  fixed: true,
  run: async ({ query }, call) => found(await nodesOf(call).searchNodes(call.workspace, query)),
})

const openNodes = tool({
  name: 'open_nodes',
  title: 'Open Nodes',
  description: 'Open specific nodes in the knowledge graph by their names',
  input: z.object({ names: z.array(z.string()).describe('An array of entity names to retrieve') }),
  output: graph,
  annotations: reads,
  fixed: true,
  run: async ({ names }, call) => found(await nodesOf(call).openNodes(call.workspace, names)),
})

/** The nine tools of the reference memory server. */
export const referenceTools: readonly Tool[] = [
  createEntities,
  createRelations,
  addObservations,
  deleteEntities,
  deleteObservations,
  deleteRelations,
  readGraph,
  searchNodes,
  openNodes,
]

const nodesOf = ({ desk }: Call): Call['desk']['graph']['nodes'] => desk.graph.nodes

/** A list or a graph as the schemas have it. */
type Mutable<T> = T extends readonly (infer Item)[]
  ? Mutable<Item>[]
  : T extends object
    ? { -readonly [K in keyof T]: Mutable<T[K]> }
    : T
const mutable = <T>(value: T): Mutable<T> => value as Mutable<T>

/** The reference lays its text out with two spaces. */
const laidOut = (value: unknown): string => JSON.stringify(value, null, 2)

function changed<T>({ desk, workspace }: Call, told: unknown, structured: T): { text: string; structured: T } {
  desk.changed(workspace, graphUri)
  return { text: laidOut(told), structured }
}

function deleted({ desk, workspace }: Call, message: string): { text: string; structured: z.infer<typeof done> } {
  desk.changed(workspace, graphUri)
  return { text: message, structured: { success: true, message } }
}

const found = <T>(graph: T): { text: string; structured: Mutable<T> } => ({
  text: laidOut(graph),
  structured: mutable(graph),
})
