import type { Json } from '../../src/domain/entry.ts'
import { isObject } from '../../src/domain/error.ts'
import { hostileName, hostileText, hostileValue } from './hostile.ts'
import type { Random } from './random.ts'

export type JsonSchema = Readonly<Record<string, unknown>>
type Object = Readonly<Record<string, Json>>

/** Generates values that match a JSON Schema, as far as fuzzing needs it: formats and most patterns are ignored. */
export class SchemaValues {
  private readonly definitions: Readonly<Record<string, JsonSchema>>
  /** Values by the name of a field, for fields that must name something that exists. */
  private readonly known: (name: string, random: Random) => Json | undefined

  constructor(
    definitions: Readonly<Record<string, JsonSchema>>,
    known: (name: string, random: Random) => Json | undefined,
  ) {
    this.definitions = definitions
    this.known = known
  }

  generate(schema: JsonSchema, random: Random, name = '', depth = 0): Json {
    const known = this.known(name, random)
    if (known !== undefined && random.chance(0.9)) return known
    const resolved = this.resolve(schema)
    if (resolved !== schema) return this.generate(resolved, random, name, depth)
    if ('const' in schema) return schema.const as Json
    if (Array.isArray(schema.enum)) return random.pick(schema.enum as Json[])
    const choices = (schema.oneOf ?? schema.anyOf) as readonly JsonSchema[] | undefined
    if (choices !== undefined) return this.generate(random.pick(choices), random, name, depth)
    const type = Array.isArray(schema.type) ? random.pick(schema.type as string[]) : schema.type
    if (type === 'object' || isObject(schema.properties)) return this.object(schema, random, depth)
    if (type === 'array') return this.array(schema, random, name, depth)
    return scalar(type, schema, random) ?? (depth > 3 ? hostileText(random) : hostileValue(random, 2))
  }

  private resolve(schema: JsonSchema): JsonSchema {
    if (typeof schema.$ref !== 'string') return schema
    return this.definitions[schema.$ref.split('/').at(-1) ?? ''] ?? {}
  }

  private object(schema: JsonSchema, random: Random, depth: number): Json {
    const properties = (schema.properties ?? {}) as Readonly<Record<string, JsonSchema>>
    const required = new Set((schema.required ?? []) as readonly string[])
    const optionalShare = depth > 4 ? 0.1 : random.pick([0, 0.3, 0.7])
    const fields = Object.entries(properties)
      .filter(([name]) => required.has(name) || random.chance(optionalShare))
      .map(([name, child]): [string, Json] => [name, this.generate(child, random, name, depth + 1)])
    const more = isObject(schema.additionalProperties)
      ? random.list(0, 3, (): [string, Json] => [
          hostileText(random, 12),
          this.generate(schema.additionalProperties as JsonSchema, random, '', depth + 1),
        ])
      : []
    return Object.fromEntries([...fields, ...more]) as Json
  }

  private array(schema: JsonSchema, random: Random, name: string, depth: number): Json {
    const min = Number(schema.minItems ?? 0)
    const max = Math.min(Number(schema.maxItems ?? min + 3), min + (random.chance(0.01) ? 200 : 3))
    const items = (schema.items ?? {}) as JsonSchema
    return random.list(min, max, () => this.generate(items, random, name.replace(/s$/, ''), depth + 1))
  }
}

/** A value of a simple type; undefined for other types. */
function scalar(type: unknown, schema: JsonSchema, random: Random): Json | undefined {
  if (type === 'string') return text(schema, random)
  if (type === 'boolean') return random.chance(0.5)
  if (type === 'null') return null
  if (type !== 'integer' && type !== 'number') return undefined
  const min = Number(schema.minimum ?? 0)
  const max = Math.min(Number(schema.maximum ?? min + 1_000), min + 1e6)
  return type === 'integer' ? random.int(min, max) : min + random.next() * (max - min)
}

function text(schema: JsonSchema, random: Random): string {
  const [example] = (schema.examples ?? []) as readonly string[]
  if (example !== undefined && random.chance(0.5)) return String(example)
  const value = hostileText(random)
  const min = Number(schema.minLength ?? 0)
  return value.length < min ? value.padEnd(min, 'x') : value.slice(0, Number(schema.maxLength ?? value.length))
}

/** Changes a value in one to four places: another type, a missing or unknown field, a huge or odd value. */
export function mutate(value: Json, random: Random): Json {
  let changed = value
  for (
    let count = random.weighted([
      [6, 1],
      [2, 2],
      [1, 4],
    ] as const);
    count > 0;
    count--
  )
    changed = mutateOnce(changed, random, 0)
  return changed
}

function mutateOnce(value: Json, random: Random, depth: number): Json {
  // Goes deeper more often than not, so that all levels are reached.
  if (depth < 8 && random.chance(0.75)) {
    if (Array.isArray(value) && value.length > 0) {
      const index = random.int(0, value.length - 1)
      return value.with(index, mutateOnce(value[index] as Json, random, depth + 1))
    }
    if (isObject(value) && Object.keys(value).length > 0) {
      const name = random.pick(Object.keys(value))
      return withField(value as Object, name, mutateOnce((value as Object)[name] as Json, random, depth + 1))
    }
  }
  if (Array.isArray(value)) return mutateList(value, random)
  if (isObject(value)) return mutateObject(value as Object, random)
  return hostileValue(random)
}

function mutateList(list: readonly Json[], random: Random): Json {
  return random.weighted<() => Json>([
    [2, () => hostileValue(random)],
    [2, () => [...list, hostileValue(random)]],
    [1, () => list.slice(0, random.int(0, list.length))],
    [1, () => [...list, ...list]],
    [1, () => [...list].reverse()],
    [1, () => [list as Json]],
  ])()
}

function mutateObject(object: Object, random: Random): Json {
  const names = Object.keys(object)
  return random.weighted<() => Json>([
    [2, () => hostileValue(random)],
    [3, () => withField(object, hostileName(random), hostileValue(random))],
    [3, () => Object.fromEntries(Object.entries(object).filter(([name]) => name !== random.pick(names)))],
    [1, () => ({ ...object, ...Object.fromEntries(names.map((name) => [name.toUpperCase(), object[name] as Json])) })],
  ])()
}

/** Sets a field, also one with the name `__proto__`. */
const withField = (object: Object, name: string, value: Json): Json =>
  Object.fromEntries([...Object.entries(object).filter(([other]) => other !== name), [name, value]]) as Json
