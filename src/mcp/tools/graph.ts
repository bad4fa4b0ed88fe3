import { z } from 'zod'
import { MemoryError } from '../../domain/error.ts'
import type { Entity, Filter, Page, Relationship } from '../../graph/graph.ts'
import { relationshipId } from '../../graph/rows.ts'
import { type Annotations, type Call, type Tool, tool } from '../tool.ts'

const named = z.string().min(1).max(1_000)
/** Any JSON: what came by a message can be nothing else. */
const json = z.unknown()
const properties = z.record(z.string(), json)
const filter = z.object({
  property: z.string().max(1_000).describe('The name of a property'),
  op: z
    .enum(['eq', 'ne', 'lt', 'lte', 'gt', 'gte', 'contains', 'in', 'exists'])
    .describe(
      'eq and ne compare any value, lt to gte numbers or texts, contains looks into a text or list, in takes a list, exists takes true or false',
    ),
  value: json.optional().describe('What the property is compared with'),
})
const page = {
  types: z.array(named).max(100).optional().describe('Only those of these types'),
  filters: z.array(filter).max(20).optional().describe('Conditions on properties, all of which must hold'),
  sort: z
    .array(
      z.object({
        by: z.string().max(1_000).describe('A property, or id, type, created_at, updated_at'),
        order: z.enum(['asc', 'desc']).optional().describe('Ascending when left out'),
      }),
    )
    .max(10)
    .optional()
    .describe('What to order by, the most important first; in order of creation when left out'),
  limit: z.number().int().min(1).max(1_000).optional().describe('How many at most; 100 when left out'),
  offset: z.number().int().min(0).optional().describe('How many to pass over; 0 when left out'),
}
const total = z.number().int().describe('How many there are in all, on this page or not')
const times = {
  created_at: z.string().describe('When it was first written'),
  updated_at: z.string().describe('When it was last changed'),
}
const entity = z.object({ type: z.string(), id: z.string(), properties, ...times })
const relationship = z.object({
  id: z.string(),
  type: z.string(),
  from_id: z.string(),
  to_id: z.string(),
  properties,
  ...times,
})

const upserts: Annotations = { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false }
const reads: Annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

const upsertEntity = tool({
  name: 'upsert_entity',
  title: 'Create or update an entity',
  description:
    'Creates an entity of the workspace, or replaces the type and properties of the one with this id. Saved sessions, their context items, file references and workspace states are entities too.',
  input: z.object({
    type: named.describe('What it is, such as person, project or decision'),
    id: named.describe('What it is known by in this workspace'),
    properties: properties.describe('Everything there is to say about it; what was said before is replaced'),
  }),
  output: z.object({ id: z.string(), changed: z.boolean().describe('False if all this was known already') }),
  annotations: upserts,
  run: async ({ type, id, properties }, { desk, workspace }) => {
    if (type !== 'session' && (await desk.graph.entity(workspace, id))?.type === 'session')
      throw new MemoryError(
        'bad-option',
        `${JSON.stringify(id)} is a saved session, and stays one. Choose another id.`,
        { param: 'id' },
      )
    const { written } = await desk.graph.write(workspace, {
      entities: [{ type, id, properties: properties as Properties }],
    })
    return {
      text: written > 0 ? `Stored ${type} ${id}.` : `${type} ${id} was stored like this already.`,
      structured: { id, changed: written > 0 },
    }
  },
})

const createRelationship = tool({
  name: 'create_relationship',
  title: 'Relate two entities',
  description:
    'Relates one entity of the workspace to another. The same type between the same two is the same relationship, whose properties are replaced.',
  input: z.object({
    from_id: named.describe('The id of the entity it starts from'),
    to_id: named.describe('The id of the entity it leads to'),
    type: named.describe('How they are related, such as WORKS_ON'),
    properties: properties.optional().describe('What there is to say about it'),
  }),
  output: z.object({ id: z.string(), changed: z.boolean().describe('False if all this was known already') }),
  annotations: upserts,
  run: async ({ from_id: from, to_id: to, type, properties = {} }, call) => {
    await refuseUnknown(call, { from_id: from, to_id: to })
    const { written } = await call.desk.graph.write(call.workspace, {
      relationships: [{ from, to, type, properties: properties as Properties }],
    })
    const id = relationshipId({ from, to, type })
    return { text: `${from} ${type} ${to} is relationship ${id}.`, structured: { id, changed: written > 0 } }
  },
})

const queryEntities = tool({
  name: 'query_entities',
  title: 'Find entities',
  description:
    'Finds entities of the workspace by type and properties, with paging and the total. Types written by saved sessions: session, conversation, context_item, file_reference, workspace_state.',
  input: z.object(page),
  output: z.object({ entities: z.array(entity), total }),
  annotations: reads,
  run: async (input, { desk, workspace }) => {
    const { entities, total } = await desk.graph.entities(workspace, queryOf(input))
    return told({ entities: entities.map(entityTold), total })
  },
})

const queryRelationships = tool({
  name: 'query_relationships',
  title: 'Find relationships',
  description: 'Finds relationships of the workspace by their ends, type and properties, with paging and the total.',
  input: z.object({
    from_id: named.optional().describe('Only those that start from this entity'),
    to_id: named.optional().describe('Only those that lead to this entity'),
    ...page,
  }),
  output: z.object({ relationships: z.array(relationship), total }),
  annotations: reads,
  run: async ({ from_id: from, to_id: to, ...input }, { desk, workspace }) => {
    const ends = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }
    const { relationships, total } = await desk.graph.relationships(workspace, { ...queryOf(input), ...ends })
    return told({ relationships: relationships.map(relationshipTold), total })
  },
})

/** The tools of the graph of entities and relationships. */
export const graphTools: readonly Tool[] = [upsertEntity, createRelationship, queryEntities, queryRelationships]

/** Both ends must be there: an id of another workspace is none of this one. */
async function refuseUnknown({ desk, workspace }: Call, ends: Readonly<Record<string, string>>): Promise<void> {
  for (const [param, id] of Object.entries(ends)) {
    if ((await desk.graph.entity(workspace, id)) !== undefined) continue
    throw new MemoryError(
      'bad-option',
      `There is no entity ${JSON.stringify(id)} in this workspace. Create it with upsert_entity first.`,
      { param },
    )
  }
}

type Properties = Entity['properties']
type Asked = z.output<z.ZodObject<typeof page>>

const fields: ReadonlyMap<string, string> = new Map([
  ['created_at', 'createdAt'],
  ['updated_at', 'updatedAt'],
])

function queryOf({ types, filters, sort, limit, offset }: Asked): Page & { readonly types?: readonly string[] } {
  return {
    ...(types === undefined ? {} : { types }),
    ...(filters === undefined ? {} : { filters: filters as readonly Filter[] }),
    ...(sort === undefined ? {} : { sort: sort.map(({ by, order = 'asc' }) => ({ by: fields.get(by) ?? by, order })) }),
    ...(limit === undefined ? {} : { limit }),
    ...(offset === undefined ? {} : { offset }),
  }
}

const timesOf = ({ createdAt, updatedAt }: Entity | Relationship): { created_at: string; updated_at: string } => ({
  created_at: new Date(createdAt).toISOString(),
  updated_at: new Date(updatedAt).toISOString(),
})

const entityTold = (entity: Entity) => ({
  type: entity.type,
  id: entity.id,
  properties: { ...entity.properties },
  ...timesOf(entity),
})

const relationshipTold = (one: Relationship) => ({
  id: one.id,
  type: one.type,
  from_id: one.from,
  to_id: one.to,
  properties: { ...one.properties },
  ...timesOf(one),
})

/** What a model reads is what a program reads. */
const told = <T>(structured: T): { text: string; structured: T } => ({ text: JSON.stringify(structured), structured })
