import { z } from 'zod'
import { MemoryError } from '../../domain/error.ts'
import { relationshipId } from '../../graph/rows.ts'
import type { Entity, Filter, GraphPageOptions, Relationship } from '../../graph/types.ts'
import { destructive, omitUndefined, readOnly, strictObject } from './schemas.ts'
import { defineTool, type Tool, type ToolInvocation } from './tool.ts'

const name = z.string().min(1).max(1_000)
const json = z.unknown()
const properties = z.record(z.string(), json)
const filter = strictObject({
  property: z.string().max(1_000).describe('The name of a property'),
  op: z
    .enum(['eq', 'ne', 'lt', 'lte', 'gt', 'gte', 'contains', 'in', 'exists'])
    .describe(
      'eq and ne compare any value, lt to gte numbers or texts, contains searches a text or list, in takes a list, exists takes true or false',
    ),
  value: json.optional().describe('The value to compare with'),
})
const page = {
  types: z.array(name).max(100).optional().describe('Only these types'),
  filters: z.array(filter).max(20).optional().describe('Conditions on properties; all must hold'),
  sort: z
    .array(
      strictObject({
        by: z.string().max(1_000).describe('A property, or id, type, created_at, updated_at'),
        order: z.enum(['asc', 'desc']).optional().describe('asc if omitted'),
      }),
    )
    .max(10)
    .optional()
    .describe('Sort keys, most significant first; creation order if omitted'),
  limit: z.number().int().min(1).max(1_000).optional().describe('The maximum number of results; 100 if omitted'),
  offset: z.number().int().min(0).optional().describe('The number of results to skip; 0 if omitted'),
}
const total = z.number().int().describe('The number of matches on all pages')
const times = {
  created_at: z.string().describe('The time it was first written'),
  updated_at: z.string().describe('The time it was last changed'),
}
const changed = z.boolean().describe('False if it was stored like this already')
const entity = z.object({ type: z.string(), id: z.string(), properties, ...times })
const relationship = z.object({
  id: z.string(),
  type: z.string(),
  from_id: z.string(),
  to_id: z.string(),
  properties,
  ...times,
})

const upsertEntity = defineTool({
  name: 'upsert_entity',
  title: 'Create or update an entity',
  description:
    'Creates an entity in the workspace, or replaces the type and properties of the one with this id. Saved sessions, their context items, file references and workspace states are entities too.',
  input: z.object({
    type: name.describe('The type, such as person, project or decision'),
    id: name.describe('The id, unique in this workspace'),
    properties: properties.describe('All properties; existing ones are replaced'),
  }),
  output: z.object({ id: z.string(), changed }),
  annotations: destructive,
  run: async ({ type, id, properties }, { context, workspace }) => {
    if (type !== 'session' && (await context.graph.getEntity(workspace, id))?.type === 'session')
      throw new MemoryError(
        'bad-option',
        `${JSON.stringify(id)} is a saved session, whose type cannot be changed. Choose another id.`,
        { param: 'id' },
      )
    const { written } = await context.graph.write(workspace, {
      entities: [{ type, id, properties: properties as Properties }],
    })
    return {
      text: written > 0 ? `Stored ${type} ${id}.` : `${type} ${id} is unchanged.`,
      structured: { id, changed: written > 0 },
    }
  },
})

const createRelationship = defineTool({
  name: 'create_relationship',
  title: 'Relate two entities',
  description:
    'Relates one entity of the workspace to another. If the two have a relationship of this type already, its properties are replaced.',
  input: z.object({
    from_id: name.describe('The id of the source entity'),
    to_id: name.describe('The id of the target entity'),
    type: name.describe('The type, such as WORKS_ON'),
    properties: properties.optional().describe('The properties of the relationship'),
  }),
  output: z.object({ id: z.string(), changed }),
  annotations: destructive,
  run: async ({ from_id: from, to_id: to, type, properties = {} }, invocation) => {
    await assertEntitiesExist(invocation, { from_id: from, to_id: to })
    const { written } = await invocation.context.graph.write(invocation.workspace, {
      relationships: [{ from, to, type, properties: properties as Properties }],
    })
    const id = relationshipId({ from, to, type })
    return { text: `${from} ${type} ${to} is relationship ${id}.`, structured: { id, changed: written > 0 } }
  },
})

const queryEntities = defineTool({
  name: 'query_entities',
  title: 'Find entities',
  description:
    'Finds entities of the workspace by type and properties, with paging and the total. Types of saved sessions: session, conversation, context_item, file_reference, workspace_state.',
  input: z.object(page),
  output: z.object({ entities: z.array(entity), total }),
  annotations: readOnly,
  run: async (input, { context, workspace }) => {
    const { entities, total } = await context.graph.queryEntities(workspace, toQuery(input))
    return jsonResult({ entities: entities.map(formatEntity), total })
  },
})

const queryRelationships = defineTool({
  name: 'query_relationships',
  title: 'Find relationships',
  description:
    'Finds relationships of the workspace by their entities, type and properties, with paging and the total.',
  input: z.object({
    from_id: name.optional().describe('Only relationships from this entity'),
    to_id: name.optional().describe('Only relationships to this entity'),
    ...page,
  }),
  output: z.object({ relationships: z.array(relationship), total }),
  annotations: readOnly,
  run: async ({ from_id: from, to_id: to, ...input }, { context, workspace }) => {
    const query = { ...toQuery(input), ...omitUndefined({ from, to }) }
    const { relationships, total } = await context.graph.queryRelationships(workspace, query)
    return jsonResult({ relationships: relationships.map(formatRelationship), total })
  },
})

/** Tools for the graph of entities and relationships. */
export const graphTools: readonly Tool[] = [upsertEntity, createRelationship, queryEntities, queryRelationships]

async function assertEntitiesExist(
  { context, workspace }: ToolInvocation,
  ids: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [param, id] of Object.entries(ids)) {
    if ((await context.graph.getEntity(workspace, id)) !== undefined) continue
    throw new MemoryError(
      'bad-option',
      `There is no entity ${JSON.stringify(id)} in this workspace. Create it with upsert_entity first.`,
      { param },
    )
  }
}

type Properties = Entity['properties']
type PageInput = z.output<z.ZodObject<typeof page>>

const sortFields: ReadonlyMap<string, string> = new Map([
  ['created_at', 'createdAt'],
  ['updated_at', 'updatedAt'],
])

function toQuery({
  types,
  filters,
  sort,
  limit,
  offset,
}: PageInput): GraphPageOptions & { readonly types?: readonly string[] } {
  return omitUndefined({
    types,
    filters: filters as readonly Filter[] | undefined,
    sort: sort?.map(({ by, order = 'asc' }) => ({ by: sortFields.get(by) ?? by, order })),
    limit,
    offset,
  })
}

const formatTimes = ({ createdAt, updatedAt }: Entity | Relationship): { created_at: string; updated_at: string } => ({
  created_at: new Date(createdAt).toISOString(),
  updated_at: new Date(updatedAt).toISOString(),
})

const formatEntity = (entity: Entity) => ({
  type: entity.type,
  id: entity.id,
  properties: { ...entity.properties },
  ...formatTimes(entity),
})

const formatRelationship = (relationship: Relationship) => ({
  id: relationship.id,
  type: relationship.type,
  from_id: relationship.from,
  to_id: relationship.to,
  properties: { ...relationship.properties },
  ...formatTimes(relationship),
})

/** Returns the structured result as text too. */
const jsonResult = <T>(structured: T): { text: string; structured: T } => ({
  text: JSON.stringify(structured),
  structured,
})
