import { z } from 'zod'
import { MemoryError } from '../../domain/error.ts'
import { estimateSize } from '../../domain/stringify.ts'
import type { NodeStore } from '../../graph/types.ts'
import { graphUri } from '../resources/changes.ts'
import { additive, destructive, type Mutable, readOnly, toMutable } from './schemas.ts'
import { defineTool, type Tool, type ToolInvocation } from './tool.ts'

// Names, titles, descriptions and schemas are those of @modelcontextprotocol/server-memory, so that this server can
// replace it by one changed line in a client's configuration.

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
const deletionResult = z.object({ success: z.boolean(), message: z.string() })

const createEntities = defineTool({
  name: 'create_entities',
  title: 'Create Entities',
  description: 'Create multiple new entities in the knowledge graph',
  input: z.object({ entities: z.array(entity) }),
  output: z.object({ entities: z.array(entity) }),
  annotations: additive,
  isReferenceTool: true,
  run: async ({ entities }, invocation) => {
    checkWriteSize(entities, 'entities')
    const created = await nodesOf(invocation).createEntities(invocation.workspace, entities)
    return changedResult(invocation, created, { entities: toMutable(created) })
  },
})

const createRelations = defineTool({
  name: 'create_relations',
  title: 'Create Relations',
  description:
    'Create multiple new relations between entities in the knowledge graph. Relations should be in active voice',
  input: z.object({ relations: z.array(relation) }),
  output: z.object({ relations: z.array(relation) }),
  annotations: additive,
  isReferenceTool: true,
  run: async ({ relations }, invocation) => {
    checkWriteSize(relations, 'relations')
    const created = await nodesOf(invocation).createRelations(invocation.workspace, relations)
    return changedResult(invocation, created, { relations: toMutable(created) })
  },
})

const addObservations = defineTool({
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
  annotations: additive,
  isReferenceTool: true,
  run: async ({ observations }, invocation) => {
    checkWriteSize(observations, 'observations')
    const results = await nodesOf(invocation).addObservations(invocation.workspace, observations)
    return changedResult(invocation, results, { results: toMutable(results) })
  },
})

const deleteEntities = defineTool({
  name: 'delete_entities',
  title: 'Delete Entities',
  description: 'Delete multiple entities and their associated relations from the knowledge graph',
  input: z.object({ entityNames: z.array(z.string()).describe('An array of entity names to delete') }),
  output: deletionResult,
  annotations: destructive,
  isReferenceTool: true,
  run: async ({ entityNames }, invocation) => {
    await nodesOf(invocation).deleteEntities(invocation.workspace, entityNames)
    return deletedResult(invocation, 'Entities deleted successfully')
  },
})

const deleteObservations = defineTool({
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
  output: deletionResult,
  annotations: destructive,
  isReferenceTool: true,
  run: async ({ deletions }, invocation) => {
    await nodesOf(invocation).deleteObservations(invocation.workspace, deletions)
    return deletedResult(invocation, 'Observations deleted successfully')
  },
})

const deleteRelations = defineTool({
  name: 'delete_relations',
  title: 'Delete Relations',
  description: 'Delete multiple relations from the knowledge graph',
  input: z.object({ relations: z.array(relation).describe('An array of relations to delete') }),
  output: deletionResult,
  annotations: destructive,
  isReferenceTool: true,
  run: async ({ relations }, invocation) => {
    await nodesOf(invocation).deleteRelations(invocation.workspace, relations)
    return deletedResult(invocation, 'Relations deleted successfully')
  },
})

const readGraph = defineTool({
  name: 'read_graph',
  title: 'Read Graph',
  description: 'Read the entire knowledge graph',
  input: z.object({}),
  output: graph,
  annotations: readOnly,
  isReferenceTool: true,
  run: async (_, invocation) => graphResult(await nodesOf(invocation).readGraph(invocation.workspace, resultLimit)),
})

const searchNodes = defineTool({
  name: 'search_nodes',
  title: 'Search Nodes',
  description: 'Search for nodes in the knowledge graph based on a query',
  input: z.object({
    query: z.string().describe('The search query to match against entity names, types, and observation content'),
  }),
  output: graph,
  annotations: readOnly,
  isReferenceTool: true,
  run: async ({ query }, invocation) =>
    graphResult(await nodesOf(invocation).searchNodes(invocation.workspace, query, resultLimit)),
})

const openNodes = defineTool({
  name: 'open_nodes',
  title: 'Open Nodes',
  description: 'Open specific nodes in the knowledge graph by their names',
  input: z.object({ names: z.array(z.string()).describe('An array of entity names to retrieve') }),
  output: graph,
  annotations: readOnly,
  isReferenceTool: true,
  run: async ({ names }, invocation) =>
    graphResult(await nodesOf(invocation).openNodes(invocation.workspace, names, resultLimit)),
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

/** Texts of a result: more than any model reads at once, and sending them would keep other requests waiting. */
export const resultLimit = { maxCharacters: 1_000_000 } as const

/** Texts of a write, about: its result repeats them, and is sent in one piece. */
const maxWriteCharacters = 8_000_000

function checkWriteSize(value: unknown, param: string): void {
  if (estimateSize(value, maxWriteCharacters + 1) <= maxWriteCharacters) return
  throw new MemoryError(
    'bad-option',
    `The ${param} have more than ${maxWriteCharacters} characters. Send them in several calls.`,
    { param },
  )
}

const nodesOf = ({ context }: ToolInvocation): NodeStore => context.graph.nodes

/** Formats like the reference server. */
const formatJson = (value: unknown): string => JSON.stringify(value, null, 2)

function changedResult<T>(
  { context, workspace }: ToolInvocation,
  value: unknown,
  structured: T,
): { text: string; structured: T } {
  context.notifyChanged(workspace, graphUri)
  return { text: formatJson(value), structured }
}

function deletedResult(
  { context, workspace }: ToolInvocation,
  message: string,
): { text: string; structured: z.infer<typeof deletionResult> } {
  context.notifyChanged(workspace, graphUri)
  return { text: message, structured: { success: true, message } }
}

const graphResult = <T>(graph: T): { text: string; structured: Mutable<T> } => ({
  text: formatJson(graph),
  structured: toMutable(graph),
})
