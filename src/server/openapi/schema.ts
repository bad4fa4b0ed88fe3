/** A schema, or any other piece of the document. */
export type Schema = Readonly<Record<string, unknown>>

/** Schemas are written with these few words, so that their files read like the objects they describe. */
export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })
export const text = (description: string, more: Schema = {}): Schema => ({ type: 'string', description, ...more })
export const oneOf = (description: string, ...choices: readonly string[]): Schema => ({
  type: 'string',
  description,
  enum: choices,
})
export const whole = (description: string, more: Schema = {}): Schema => ({
  type: 'integer',
  minimum: 0,
  description,
  ...more,
})
export const number = (description: string, more: Schema = {}): Schema => ({ type: 'number', description, ...more })
export const flag = (description: string): Schema => ({ type: 'boolean', description })
export const list = (description: string, items: Schema): Schema => ({ type: 'array', description, items })
export const anything = (description: string): Schema => ({ description })
/** A time in milliseconds since 1970. */
export const time = (description: string): Schema => whole(`${description} In milliseconds since 1970.`)
/** What may be null, too. */
export const orNull = (schema: Schema): Schema =>
  typeof schema.type === 'string' ? { ...schema, type: [schema.type, 'null'] } : { oneOf: [schema, { type: 'null' }] }

/** An object with these fields; those whose name ends with `?` may be missing. There may be others. */
export function object(description: string, fields: Readonly<Record<string, Schema>>): Schema {
  const required = Object.keys(fields).filter((name) => !name.endsWith('?'))
  const properties = Object.fromEntries(
    Object.entries(fields).map(([name, schema]) => [name.replace(/\?$/, ''), schema]),
  )
  return { type: 'object', description, ...(required.length === 0 ? {} : { required }), properties }
}
