import { existsSync, readFileSync } from 'node:fs'
import { findEncodings } from '../fault/canary.ts'
import { databaseFiles } from '../stores/traces.ts'

/** Characters that all secrets of this class have in common, beside their number. */
const commonText = 'Ab3dE7fGh1jK'
const keyOf = (number: number): string => `sk-ant-api03-${numberText(number)}${commonText}lMn0pQrStUvWx2`
const numberText = (number: number): string => String(number).padStart(5, '0')
/** Part of a secret that tells it from the others; a shortened secret still contains it. */
const coreOf = (number: number): string => numberText(number) + commonText

/** Secrets that each name the surface they were sent to. */
export class Canaries {
  private readonly surfaces: string[] = []

  /** Creates the secret of a surface: an API key that no other text contains. */
  create(surface: string): string {
    this.surfaces.push(surface)
    return keyOf(this.surfaces.length - 1)
  }

  /** Surfaces whose secret, or most of it, is in the files of a store, in any encoding, or in another file. */
  findIn(file: string, others: readonly string[] = []): readonly string[] {
    return [...databaseFiles(file), ...others]
      .filter((path) => existsSync(path))
      .flatMap((path) =>
        this.findInBytes(readFileSync(path)).map((found) => `${found} in ${path.replace(/^.*\//, '')}`),
      )
  }

  /** Surfaces whose secret, or most of it, is in a text. */
  findInText(text: string): readonly string[] {
    return text.toLowerCase().includes(commonText.toLowerCase()) ? this.findInBytes(Buffer.from(text)) : []
  }

  private findInBytes(bytes: Buffer): readonly string[] {
    // One search for all of them: most files contain none.
    if (findEncodings(bytes, [commonText, commonText.toLowerCase()]).length === 0) return []
    return this.surfaces.flatMap((surface, number) => {
      const core = coreOf(number)
      const encodings = findEncodings(bytes, [core, core.toLowerCase()])
      return encodings.length === 0 ? [] : [`${surface}: ${encodings.join(', ')}`]
    })
  }
}

type Schema = Readonly<Record<string, unknown>>

/** Values for fields that must name something. */
const knownValues: Readonly<Record<string, unknown>> = {
  role: 'user',
  sessionId: 'known',
  session: 'known',
  workspace: 'acme',
  workspaceId: 'acme',
  person: 'ann',
  id: 'e1',
  from_id: 'e1',
  to_id: 'e1',
  path: '.',
}

/** Returns the text of a string field, given by its path and name. */
type FieldText = (path: string, name: string) => unknown

/**
 * Generates values of a JSON Schema with a secret in one string each, alone and within other text. Optional fields are
 * left out unless they contain that string.
 */
export function generateInputs(schema: Schema, definitions: Schema, secret: string): readonly unknown[] {
  const paths = new Set<string>()
  fillSchema(
    schema,
    definitions,
    () => true,
    (path) => void paths.add(path),
  )
  return [...paths].flatMap((chosen) =>
    [secret, `see ${secret}`].map((text) =>
      fillSchema(
        schema,
        definitions,
        (path) => chosen.startsWith(path),
        (path, name) => (path === chosen ? text : Object.hasOwn(knownValues, name) ? knownValues[name] : 'words'),
      ),
    ),
  )
}

function fillSchema(
  root: Schema,
  definitions: Schema,
  isIncluded: (path: string) => boolean,
  textOf: FieldText,
): unknown {
  const fill = (value: unknown, path: string, depth: number): unknown => {
    const schema = resolve(value)
    const { const: constant, enum: choices, anyOf, oneOf, allOf, type, items } = schema
    if (constant !== undefined) return constant
    if (Array.isArray(choices)) return choices[0]
    const alternatives = (anyOf ?? oneOf) as readonly unknown[] | undefined
    if (alternatives !== undefined) return fill(alternatives[0], path, depth)
    if (Array.isArray(allOf)) return Object.assign({}, ...allOf.map((one) => fill(one, path, depth)))
    const kind = Array.isArray(type) ? type[0] : type
    if (kind === 'object' || schema.properties !== undefined) return depth > 6 ? {} : fillObject(schema, path, depth)
    if (kind === 'array') return [fill(items, `${path}[]`, depth + 1)]
    if (kind === 'number' || kind === 'integer') return schema.maximum === 1 ? 1 : 1_000
    if (kind === 'boolean') return false
    return kind === 'null' ? null : textOf(path, path.replace(/^.*[.\]]/, ''))
  }
  const fillObject = (schema: Schema, path: string, depth: number): unknown => {
    const required = (schema.required ?? []) as readonly string[]
    const fields = Object.entries((schema.properties ?? {}) as Schema)
      .filter(([name]) => required.includes(name) || isIncluded(`${path}.${name}`))
      .map(([name, inner]) => [name, fill(inner, `${path}.${name}`, depth + 1)])
    const isOpen = schema.additionalProperties !== undefined && schema.additionalProperties !== false
    return Object.fromEntries(
      isOpen && fields.length === 0 ? [[textOf(`${path}.*`, 'note'), textOf(`${path}.any`, 'note')]] : fields,
    )
  }
  const resolve = (value: unknown): Schema => {
    const reference = (value as Schema | undefined)?.$ref
    if (typeof reference !== 'string') return (value ?? {}) as Schema
    const steps = reference.split('/').slice(1)
    return resolve(steps.reduce<unknown>((found, step) => (found as Schema | undefined)?.[step], definitions))
  }
  return fill(root, '', 0)
}
