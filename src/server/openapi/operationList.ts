import { isObject } from '../../domain/error.ts'
import type { Schema } from './schema.ts'

/** A field of a parameter list, a body or a response. */
export type FieldRow = {
  readonly name: string
  readonly type: string
  readonly isRequired: boolean
  readonly description: string
}

export type ParameterRow = FieldRow & { readonly location: string }

export type BodyRow = {
  readonly mediaType: string
  readonly schema: Schema
  /** Fields of an object; none for other types. */
  readonly fields: readonly FieldRow[]
}

export type ResponseRow = { readonly status: string; readonly description: string; readonly bodies: readonly BodyRow[] }

/** An operation of the OpenAPI document with all references resolved, for people. */
export type OperationRow = {
  readonly id: string
  readonly method: string
  readonly path: string
  /** Ids and paths of the same operation with the key in a header, or after a second `/v1`. */
  readonly variants: readonly { readonly id: string; readonly path: string }[]
  readonly tag: string
  readonly summary: string
  readonly description: string
  readonly isPublic: boolean
  readonly parameters: readonly ParameterRow[]
  readonly bodies: readonly BodyRow[]
  readonly responses: readonly ResponseRow[]
}

export type TagRow = { readonly name: string; readonly description: string; readonly operations: OperationRow[] }

/** Resolves references into the components of a document. */
export type Resolve = (schema: unknown) => Schema

/** Creates the resolver of a document. A description next to a reference replaces that of the component. */
export function createResolver(document: object): Resolve {
  const resolve: Resolve = (schema) => {
    if (!isObject(schema)) return {}
    if (typeof schema.$ref !== 'string') return schema
    const target = schema.$ref
      .slice(2)
      .split('/')
      .reduce<unknown>((inner, step) => (isObject(inner) ? inner[step] : undefined), document)
    const { $ref: _, ...beside } = schema
    return { ...resolve(target), ...beside }
  }
  return resolve
}

/** Lists the operations of a document by tag. */
export function listOperations(document: Schema): readonly TagRow[] {
  const resolve = createResolver(document)
  const tags = listOf(document.tags).map(
    (tag): TagRow => ({ name: textOf(tag.name), description: textOf(tag.description), operations: [] }),
  )
  const byId = new Map<string, OperationRow>()
  for (const [path, methods] of entriesOf(document.paths)) {
    for (const [method, operation] of entriesOf(methods)) {
      if (!isObject(operation)) continue
      const row = describeOperation(method, path, operation, resolve)
      const main = byId.get(row.id.replace(/(?:ByHeader|UnderV1)$/, ''))
      if (main === undefined) {
        byId.set(row.id, row)
        tags.find(({ name }) => name === row.tag)?.operations.push(row)
      } else byId.set(main.id, Object.assign(main, { variants: [...main.variants, { id: row.id, path }] }))
    }
  }
  return tags
}

function describeOperation(method: string, path: string, operation: Schema, resolve: Resolve): OperationRow {
  const { operationId, summary, description, tags, security } = operation
  const parameters = listOf(operation.parameters).map((parameter): ParameterRow => {
    const { name, in: location, required, schema, description: text } = resolve(parameter)
    return {
      name: textOf(name),
      location: textOf(location),
      type: describeType(schema, resolve),
      isRequired: required === true,
      description: textOf(text),
    }
  })
  return {
    id: textOf(operationId),
    method: method.toUpperCase(),
    path,
    variants: [],
    tag: textOf(Array.isArray(tags) ? tags[0] : ''),
    summary: textOf(summary),
    description: textOf(description),
    isPublic: Array.isArray(security) && security.length === 0,
    parameters,
    bodies: describeBodies(operation.requestBody, resolve),
    responses: entriesOf(operation.responses).map(([status, response]) => ({
      status,
      description: textOf(resolve(response).description),
      bodies: describeBodies(response, resolve),
    })),
  }
}

const describeBodies = (content: unknown, resolve: Resolve): readonly BodyRow[] =>
  entriesOf(resolve(content).content).map(([mediaType, value]) => {
    const schema = isObject(value) && isObject(value.schema) ? value.schema : {}
    return { mediaType, schema, fields: describeFields(schema, resolve) }
  })

function describeFields(schema: Schema, resolve: Resolve): readonly FieldRow[] {
  const { properties, required } = resolve(schema)
  const names = Array.isArray(required) ? required : []
  return entriesOf(properties).map(([name, field]) => ({
    name,
    type: describeType(field, resolve),
    isRequired: names.includes(name),
    description: textOf(resolve(field).description),
  }))
}

/** Names the type of a schema, such as `list of Message` or `"user", "tool"`. */
function describeType(schema: unknown, resolve: Resolve): string {
  if (!isObject(schema)) return 'any'
  const name = typeof schema.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined
  const { type, enum: choices, items, const: constant, oneOf, anyOf } = resolve(schema)
  const alternatives = Array.isArray(oneOf) ? oneOf : anyOf
  if (constant !== undefined) return JSON.stringify(constant)
  if (Array.isArray(choices)) return choices.map((choice) => JSON.stringify(choice)).join(', ')
  if (type === 'array') return `list of ${describeType(items, resolve)}`
  if (type === 'object' && name !== undefined) return name
  if (Array.isArray(alternatives))
    return name ?? [...new Set(alternatives.map((choice) => describeType(choice, resolve)))].join(' or ')
  if (Array.isArray(type)) return type.join(' or ')
  return typeof type === 'string' ? type : (name ?? 'any')
}

/** Maximum depth of an example. */
const maxExampleDepth = 6

/** Builds an example of a schema: its own example, or one of its required fields, and of all fields at the top. */
export function buildExample(schema: unknown, resolve: Resolve, depth = 0): unknown {
  const { examples, default: preset, const: constant, enum: choices, type, oneOf, anyOf, ...rest } = resolve(schema)
  if (Array.isArray(examples) && examples.length > 0) return examples[0]
  if (constant !== undefined) return constant
  if (preset !== undefined) return preset
  if (Array.isArray(choices)) return choices[0]
  const alternatives = Array.isArray(oneOf) ? oneOf : anyOf
  if (Array.isArray(alternatives)) return buildExample(alternatives[0], resolve, depth)
  const kind = Array.isArray(type) ? type[0] : type
  if (kind === 'object') {
    const required = Array.isArray(rest.required) ? rest.required : []
    const fields = entriesOf(rest.properties).filter(([name]) => depth === 0 || required.includes(name))
    const shown = depth < maxExampleDepth ? fields : []
    return Object.fromEntries(shown.map(([name, field]) => [name, buildExample(field, resolve, depth + 1)]))
  }
  if (kind === 'array') return depth < maxExampleDepth ? [buildExample(rest.items, resolve, depth + 1)] : []
  if (kind === 'integer' || kind === 'number') return typeof rest.minimum === 'number' ? Math.max(rest.minimum, 0) : 1
  if (kind === 'boolean') return true
  return kind === 'string' ? '…' : {}
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const entriesOf = (value: unknown): readonly (readonly [string, unknown])[] =>
  isObject(value) ? Object.entries(value) : []
const listOf = (value: unknown): readonly Schema[] => (Array.isArray(value) ? value.filter(isObject) : [])
