import type { StandardSchemaWithJSON } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { isObject } from '../domain/checks.ts'

type Dialect = 'draft-07' | 'draft-2020-12'
type Shape = Record<string, unknown>

/** Where a schema holds others: by name, in a list, or a single one. */
const named = ['properties', 'patternProperties', '$defs', 'definitions']
const listed = ['anyOf', 'allOf', 'oneOf', 'prefixItems']
const single = ['items', 'additionalProperties']
/** What says nothing about a value. */
const silent: ReadonlySet<string> = new Set(['description', 'title', 'default', 'examples', '$comment'])

const anyValue = ['string', 'number', 'boolean', 'object', 'array', 'null'].map((type) => ({ type }))

/**
 * A schema as clients are shown it: described once and not with every request, in the dialect that is wanted, and with
 * values of any kind spelled out, because some clients cannot pass on a schema that says nothing.
 */
export function shownSchema<T extends z.ZodObject>(
  schema: T,
  dialect: Dialect = 'draft-2020-12',
): StandardSchemaWithJSON<z.input<T>, z.output<T>> {
  const described = {
    input: once(() => json(schema, 'input', dialect)),
    output: once(() => json(schema, 'output', dialect)),
  }
  const standard = schema['~standard'] as StandardSchemaWithJSON<z.input<T>, z.output<T>>['~standard']
  return { '~standard': { ...standard, validate: (value) => standard.validate(value), jsonSchema: described } }
}

const json = (schema: z.ZodObject, io: 'input' | 'output', target: Dialect): Shape =>
  spelledOut(z.toJSONSchema(schema, { io, target }) as Shape)

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** A schema in which no part leaves open what a value is. */
function spelledOut(schema: Shape): Shape {
  const whole: Shape = Object.keys(schema).every((keyword) => silent.has(keyword))
    ? { ...schema, anyOf: anyValue }
    : { ...schema }
  // Every whole number has these bounds, and every client pays for reading them.
  for (const bound of ['minimum', 'maximum'])
    if (Math.abs(whole[bound] as number) === Number.MAX_SAFE_INTEGER) delete whole[bound]
  for (const keyword of named) if (isObject(whole[keyword])) whole[keyword] = mapped(whole[keyword] as Shape)
  for (const keyword of listed)
    if (Array.isArray(whole[keyword])) whole[keyword] = (whole[keyword] as Shape[]).map(spelledOut)
  for (const keyword of single)
    if (isObject(whole[keyword]))
      whole[keyword] =
        isEmpty(whole[keyword]) && keyword === 'additionalProperties' ? true : spelledOut(whole[keyword] as Shape)
  return whole
}

const mapped = (schemas: Shape): Shape =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, spelledOut(schema as Shape)]))
const isEmpty = (value: unknown): boolean => isObject(value) && Object.keys(value).length === 0
