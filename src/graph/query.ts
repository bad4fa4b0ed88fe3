import type { Json } from '../domain/entry.ts'
import { check, MemoryError } from '../domain/error.ts'
import type { Filter, Page, Sort } from './graph.ts'

/** A piece of SQL with its values in order. */
export type Clause = { readonly sql: string; readonly values: readonly (string | number)[] }

const most = 1_000
const usual = 100

/** How many rows, from which on. */
export function boundsOf({ limit = usual, offset = 0 }: Page): { readonly limit: number; readonly offset: number } {
  check('limit', limit, Number.isInteger(limit) && limit >= 1 && limit <= most, `a whole number from 1 to ${most}`)
  check('offset', offset, Number.isSafeInteger(offset) && offset >= 0, 'a whole number, 0 or more')
  return { limit, offset }
}

/** The path of a property inside a row's body; it is bound like any value, so that no name can become SQL. */
const pathOf = (property: string): string => `$.properties.${JSON.stringify(property)}`

const type = 'json_type(body, ?)'
const value = 'json_extract(body, ?)'
const numbers = "('integer', 'real')"
/** One JSON value is another one: of the same kind, and equal; all numbers are of one kind. */
const isSame = (type: string, value: string): string =>
  `(w.type = ${type} OR w.type IN ${numbers} AND ${type} IN ${numbers}) AND w.value IS ${value}`

/** A filter as a condition on a row's body. Rows without the property pass only `ne` and `exists: false`. */
export function conditionOf(filter: Filter): Clause {
  const path = pathOf(filter.property)
  const given = JSON.stringify(wantedBy(filter))
  switch (filter.op) {
    case 'exists':
      return { sql: `${type} IS ${filter.value === false ? '' : 'NOT '}NULL`, values: [path] }
    case 'eq':
    case 'in':
      return oneOf(path, filter.op === 'in' ? given : `[${given}]`)
    case 'ne': {
      const { sql, values } = oneOf(path, `[${given}]`)
      return { sql: `NOT ${sql}`, values }
    }
    case 'contains':
      return {
        sql: `(${type} = 'text' AND json_type(?) = 'text' AND instr(${value}, json_extract(?, '$')) > 0
          OR ${type} = 'array' AND EXISTS (SELECT 1 FROM json_each(?) w, json_each(body, ?) e WHERE ${isSame('e.type', 'e.value')}))`,
        values: [path, given, path, given, path, `[${given}]`, path],
      }
    default: {
      const kinds = typeof filter.value === 'number' ? numbers : "('text')"
      return {
        sql: `(${type} IN ${kinds} AND ${value} ${comparisons[filter.op]} json_extract(?, '$'))`,
        values: [path, path, given],
      }
    }
  }
}

const comparisons = { lt: '<', lte: '<=', gt: '>', gte: '>=' } as const

const oneOf = (path: string, list: string): Clause => ({
  sql: `EXISTS (SELECT 1 FROM json_each(?) w WHERE ${isSame(type, value)})`,
  values: [list, path, path, path],
})

/** The value of a filter, checked against its operator. */
export function wantedBy({ property, op, value }: Filter): Json {
  const fault = faultIn(op, value)
  if (fault === undefined) return value ?? null
  throw new MemoryError(
    'bad-option',
    `The filter on ${JSON.stringify(property)} has the operator ${op}, whose value must be ${fault}.`,
    { param: 'filters' },
  )
}

function faultIn(op: Filter['op'], value: Json | undefined): string | undefined {
  if (op === 'exists') return value === undefined || typeof value === 'boolean' ? undefined : 'true, false or left out'
  if (value === undefined) return 'given'
  if (op === 'in') return Array.isArray(value) ? undefined : 'a list'
  if (op === 'eq' || op === 'ne' || op === 'contains') return undefined
  return typeof value === 'number' || typeof value === 'string' ? undefined : 'a number or a text'
}

const columns: ReadonlyMap<string, string> = new Map([
  ['id', "json_extract(body, '$.id')"],
  ['type', "json_extract(body, '$.type')"],
  ['createdAt', 'created'],
  ['updatedAt', 'updated'],
])

/** The order of rows; the one in which they were first written decides between equals. */
export function orderOf(sort: readonly Sort[] = []): Clause {
  const terms = sort.map(({ by, order = 'asc' }) => ({
    sql: `${columns.get(by) ?? value} ${order === 'desc' ? 'DESC' : 'ASC'}`,
    values: columns.has(by) ? [] : [pathOf(by)],
  }))
  return { sql: [...terms.map(({ sql }) => sql), 'place'].join(', '), values: terms.flatMap(({ values }) => values) }
}

/** Conditions that must all hold. */
export const allOf = (clauses: readonly Clause[]): Clause => ({
  sql: clauses.map(({ sql }) => sql).join(' AND '),
  values: clauses.flatMap(({ values }) => values),
})
