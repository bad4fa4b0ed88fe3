import type { StandardSchemaWithJSON } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { isObject } from '../../domain/error.ts'
import { estimateSize } from '../../domain/stringify.ts'
import { fileTools } from './files.ts'
import { graphTools } from './graph.ts'
import { knowledgeTools } from './knowledge.ts'
import { messageTools } from './messages.ts'
import { referenceTools } from './reference.ts'
import { strictObject } from './schemas.ts'
import { sessionTools } from './sessions.ts'
import type { Tool } from './tool.ts'

type Dialect = 'draft-07' | 'draft-2020-12'
type JsonSchema = Record<string, unknown>

/** Keywords that hold subschemas: by name, in a list, or a single one. */
const mapKeywords = ['properties', 'patternProperties', '$defs', 'definitions']
const listKeywords = ['anyOf', 'allOf', 'oneOf', 'prefixItems']
const singleKeywords = ['items', 'additionalProperties']
/** Keywords that do not constrain a value. */
const annotationKeywords: ReadonlySet<string> = new Set(['description', 'title', 'default', 'examples', '$comment'])

const anyType = ['string', 'number', 'boolean', 'object', 'array', 'null'].map((type) => ({ type }))

/**
 * Converts a Zod schema to the schema clients see. The JSON Schema is generated once, not per request, and every "any
 * value" is spelled out as a list of types, because some clients cannot handle an empty schema.
 */
function toClientSchema<T extends z.ZodObject>(
  schema: T,
  dialect: Dialect,
  published: z.ZodObject = schema,
): StandardSchemaWithJSON<z.input<T>, z.output<T>> {
  const jsonSchema = {
    input: memoize(() => toJsonSchema(published, 'input', dialect)),
    output: memoize(() => toJsonSchema(published, 'output', dialect)),
  }
  const standard = schema['~standard'] as StandardSchemaWithJSON<z.input<T>, z.output<T>>['~standard']
  return {
    '~standard': {
      ...standard,
      validate: async (value) => {
        const isShort = estimateSize(value, maxShortCharacters) < maxShortCharacters
        const result = await schema.safeParseAsync(value, isShort ? undefined : firstFaultOnly)
        return result.success ? { value: result.data } : { issues: result.error.issues.slice(0, maxReportedIssues) }
      },
      jsonSchema,
    },
  }
}

/** Faults of the arguments that an error lists. */
const maxReportedIssues = 20
/** Arguments in which all faults are found, which takes a few milliseconds; those of longer ones take up to 120. */
const maxShortCharacters = 65_536
const firstFaultOnly: z.core.ParseContextInternal<z.core.$ZodIssue> = { abortEarly: true }

const toJsonSchema = (schema: z.ZodObject, io: 'input' | 'output', target: Dialect): JsonSchema =>
  expandAnyType(z.toJSONSchema(schema, { io, target }) as JsonSchema)

function memoize<T>(compute: () => T): () => T {
  let cached: { readonly value: T } | undefined
  return () => {
    cached ??= { value: compute() }
    return cached.value
  }
}

/** Replaces subschemas without constraints by the list of all types. */
function expandAnyType(schema: JsonSchema): JsonSchema {
  const expanded: JsonSchema = Object.keys(schema).every((keyword) => annotationKeywords.has(keyword))
    ? { ...schema, anyOf: anyType }
    : { ...schema }
  // Zod adds these bounds to every integer; omitting them saves tokens.
  for (const bound of ['minimum', 'maximum'])
    if (Math.abs(expanded[bound] as number) === Number.MAX_SAFE_INTEGER) delete expanded[bound]
  for (const keyword of mapKeywords)
    if (isObject(expanded[keyword])) expanded[keyword] = expandAll(expanded[keyword] as JsonSchema)
  for (const keyword of listKeywords)
    if (Array.isArray(expanded[keyword])) expanded[keyword] = (expanded[keyword] as JsonSchema[]).map(expandAnyType)
  for (const keyword of singleKeywords)
    if (isObject(expanded[keyword]))
      expanded[keyword] =
        isEmpty(expanded[keyword]) && keyword === 'additionalProperties'
          ? true
          : expandAnyType(expanded[keyword] as JsonSchema)
  return expanded
}

const expandAll = (schemas: JsonSchema): JsonSchema =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, expandAnyType(schema as JsonSchema)]))
const isEmpty = (value: unknown): boolean => isObject(value) && Object.keys(value).length === 0

const workspace = z.string().max(64).optional().describe("The workspace; the client's default workspace if omitted.")

/** Tool with the schemas clients see. */
export type RegisteredTool = Tool & {
  readonly schemas: { readonly input: StandardSchemaWithJSON; readonly output: StandardSchemaWithJSON }
}

/** Prepares a tool for registration. Tools other than those of the reference server get a `workspace` argument. */
export function prepareTool(tool: Tool): RegisteredTool {
  const shape = tool.input.shape as z.ZodRawShape
  const input = strictObject(tool.isReferenceTool === true ? shape : { ...shape, workspace })
  // The reference server publishes draft-07 schemas, and its tools must be identical here.
  const dialect = tool.isReferenceTool === true ? 'draft-07' : 'draft-2020-12'
  return {
    ...tool,
    input,
    schemas: {
      // The schemas of the reference server do not say that unknown arguments are errors.
      input: toClientSchema(input, dialect, tool.isReferenceTool === true ? tool.input : input),
      output: toClientSchema(tool.output, dialect),
    },
  }
}

/** All tools in listing order. */
export const registeredTools: readonly RegisteredTool[] = [
  ...sessionTools,
  ...messageTools,
  ...knowledgeTools,
  ...referenceTools,
  ...graphTools,
  ...fileTools,
].map(prepareTool)
