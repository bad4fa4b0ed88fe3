import { z } from 'zod'

/** A JSON Schema, or any other part of the OpenAPI document. */
export type Schema = Readonly<Record<string, unknown>>

// Helpers for response schemas. Request bodies come from zod; written in zod, the responses would be longer.

export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })
export const text = (description: string, more: Schema = {}): Schema => ({ type: 'string', description, ...more })
export const oneOf = (description: string, ...choices: readonly string[]): Schema => ({
  type: 'string',
  description,
  enum: choices,
})
export const integer = (description: string, more: Schema = {}): Schema => ({
  type: 'integer',
  minimum: 0,
  description,
  ...more,
})
export const number = (description: string, more: Schema = {}): Schema => ({ type: 'number', description, ...more })
export const flag = (description: string): Schema => ({ type: 'boolean', description })
export const list = (description: string, items: Schema): Schema => ({ type: 'array', description, items })
export const anything = (description: string): Schema => ({ description })
export const time = (description: string): Schema => integer(`${description} Milliseconds since 1970.`)
export const nullable = (schema: Schema): Schema =>
  typeof schema.type === 'string' ? { ...schema, type: [schema.type, 'null'] } : { oneOf: [schema, { type: 'null' }] }

/** An object; fields whose name ends with `?` are optional, and other fields are allowed. */
export function object(description: string, fields: Readonly<Record<string, Schema>>): Schema {
  const required = Object.keys(fields).filter((name) => !name.endsWith('?'))
  const properties = Object.fromEntries(
    Object.entries(fields).map(([name, schema]) => [name.replace(/\?$/, ''), schema]),
  )
  return { type: 'object', description, ...(required.length === 0 ? {} : { required }), properties }
}

/** The JSON Schema of a zod schema, as clients send it. */
export function fromZod(schema: z.ZodType): Schema {
  const { $schema: _, ...jsonSchema } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return jsonSchema
}
