import type { Json } from '../domain/entry.ts'
import { checkOption, MemoryError } from '../domain/error.ts'
import type { Filter, GraphPageOptions, Sort } from './types.ts'

/** SQL fragment with its parameters in order. */
export type Clause = { readonly sql: string; readonly values: readonly (string | number)[] }

const maxLimit = 1_000
const defaultLimit = 100

export function parsePage({ limit = defaultLimit, offset = 0 }: GraphPageOptions): {
  readonly limit: number
  readonly offset: number
} {
  checkOption(
    'limit',
    limit,
    Number.isInteger(limit) && limit >= 1 && limit <= maxLimit,
    `a whole number from 1 to ${maxLimit}`,
  )
  checkOption('offset', offset, Number.isSafeInteger(offset) && offset >= 0, 'a whole number, 0 or more')
  return { limit, offset }
}

/**
 * JSON path of a property in a row's body. It is passed as a parameter, so a property name is never part of the SQL.
 */
const propertyPath = (property: string): string => `$.properties.${JSON.stringify(property)}`

const typeSql = 'json_type(body, ?)'
const valueSql = 'json_extract(body, ?)'
const numberTypes = "('integer', 'real')"
/** Compares two JSON values by type and value; integers and reals count as one type. */
const isEqualSql = (type: string, value: string): string =>
  `(w.type = ${type} OR w.type IN ${numberTypes} AND ${type} IN ${numberTypes}) AND w.value IS ${value}`

/** Translates a filter to SQL on a row's body. Rows without the property match only `ne` and `exists: false`. */
export function filterCondition(filter: Filter): Clause {
  const path = propertyPath(filter.property)
  const wanted = JSON.stringify(parseFilterValue(filter))
  switch (filter.op) {
    case 'exists':
      return { sql: `${typeSql} IS ${filter.value === false ? '' : 'NOT '}NULL`, values: [path] }
    case 'eq':
    case 'in':
      return equalsAny(path, filter.op === 'in' ? wanted : `[${wanted}]`)
    case 'ne': {
      const { sql, values } = equalsAny(path, `[${wanted}]`)
      return { sql: `NOT ${sql}`, values }
    }
    case 'contains':
      return {
        sql: `(${typeSql} = 'text' AND json_type(?) = 'text' AND instr(${valueSql}, json_extract(?, '$')) > 0
          OR ${typeSql} = 'array' AND EXISTS (SELECT 1 FROM json_each(?) w, json_each(body, ?) e WHERE ${isEqualSql('e.type', 'e.value')}))`,
        values: [path, wanted, path, wanted, path, `[${wanted}]`, path],
      }
    default: {
      const types = typeof filter.value === 'number' ? numberTypes : "('text')"
      return {
        sql: `(${typeSql} IN ${types} AND ${valueSql} ${sqlOperators[filter.op]} json_extract(?, '$'))`,
        values: [path, path, wanted],
      }
    }
  }
}

const sqlOperators = { lt: '<', lte: '<=', gt: '>', gte: '>=' } as const

const equalsAny = (path: string, list: string): Clause => ({
  sql: `EXISTS (SELECT 1 FROM json_each(?) w WHERE ${isEqualSql(typeSql, valueSql)})`,
  values: [list, path, path, path],
})

/** Returns the value of a filter after checking it against the operator. */
function parseFilterValue({ property, op, value }: Filter): Json {
  const requirement = unmetRequirement(op, value)
  if (requirement === undefined) return value ?? null
  throw new MemoryError(
    'bad-option',
    `The filter on ${JSON.stringify(property)} uses operator ${op}, whose value must be ${requirement}.`,
    { param: 'filters' },
  )
}

function unmetRequirement(op: Filter['op'], value: Json | undefined): string | undefined {
  if (op === 'exists') return value === undefined || typeof value === 'boolean' ? undefined : 'true, false or left out'
  if (value === undefined) return 'given'
  if (op === 'in') return Array.isArray(value) ? undefined : 'a list'
  if (op === 'eq' || op === 'ne' || op === 'contains') return undefined
  return typeof value === 'number' || typeof value === 'string' ? undefined : 'a number or a text'
}

const sortColumns: ReadonlyMap<string, string> = new Map([
  ['id', "json_extract(body, '$.id')"],
  ['type', "json_extract(body, '$.type')"],
  ['createdAt', 'created'],
  ['updatedAt', 'updated'],
])

/** Translates a sort to SQL; rows that compare equal stay in insertion order. */
export function orderBy(sort: readonly Sort[] = []): Clause {
  const terms = sort.map(({ by, order = 'asc' }) => ({
    sql: `${sortColumns.get(by) ?? valueSql} ${order === 'desc' ? 'DESC' : 'ASC'}`,
    values: sortColumns.has(by) ? [] : [propertyPath(by)],
  }))
  return { sql: [...terms.map(({ sql }) => sql), 'place'].join(', '), values: terms.flatMap(({ values }) => values) }
}

export const joinWithAnd = (clauses: readonly Clause[]): Clause => ({
  sql: clauses.map(({ sql }) => sql).join(' AND '),
  values: clauses.flatMap(({ values }) => values),
})

/** Fields of entities and relationships that filters and sorts use. */
type Sortable = {
  readonly id: string
  readonly type: string
  readonly properties: Readonly<Record<string, Json>>
  readonly createdAt: number
  readonly updatedAt: number
}

/** Evaluates a filter on a decrypted row, with the same result as the SQL of `filterCondition`. */
export function matchesFilter({ properties }: Sortable, filter: Filter): boolean {
  const wanted = parseFilterValue(filter)
  const found = Object.hasOwn(properties, filter.property) ? properties[filter.property] : undefined
  if (filter.op === 'exists') return (found !== undefined) === (wanted !== false)
  if (filter.op === 'ne') return found === undefined || !isEqual(found, wanted)
  if (found === undefined) return false
  if (filter.op === 'eq') return isEqual(found, wanted)
  if (filter.op === 'in') return (wanted as Json[]).some((item) => isEqual(found, item))
  if (filter.op === 'contains') return contains(found, wanted)
  return (
    typeof found === typeof wanted &&
    (typeof found === 'number' || typeof found === 'string') &&
    comparisons[filter.op](compare(found, wanted))
  )
}

const comparisons = {
  lt: (order: number) => order < 0,
  lte: (order: number) => order <= 0,
  gt: (order: number) => order > 0,
  gte: (order: number) => order >= 0,
} as const

const isEqual = (left: Json, right: Json): boolean => JSON.stringify(left) === JSON.stringify(right)

function contains(found: Json, wanted: Json): boolean {
  if (Array.isArray(found)) return found.some((item) => isEqual(item, wanted))
  return typeof found === 'string' && typeof wanted === 'string' && found.includes(wanted)
}

/** Sorts decrypted rows in the order of the SQL of `orderBy`; the sort is stable. */
export function sortRows<T extends Sortable>(rows: readonly T[], sort: readonly Sort[] = []): readonly T[] {
  return [...rows].sort((left, right) => {
    for (const { by, order = 'asc' } of sort) {
      const difference = compare(sortValue(left, by), sortValue(right, by))
      if (difference !== 0) return order === 'desc' ? -difference : difference
    }
    return 0
  })
}

function sortValue(row: Sortable, by: string): Json {
  if (by === 'id' || by === 'type' || by === 'createdAt' || by === 'updatedAt') return row[by]
  return Object.hasOwn(row.properties, by) ? (row.properties[by] ?? null) : null
}

/** Compares like SQLite: null, then numbers (true is 1, false is 0), then texts by their UTF-8 bytes. */
function compare(left: Json, right: Json): number {
  const [a, b] = [toSqlValue(left), toSqlValue(right)]
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b))
  if (typeof a === 'number' && typeof b === 'number') return a < b ? -1 : a > b ? 1 : 0
  return typeRank(a) - typeRank(b)
}

function toSqlValue(value: Json): null | number | string {
  if (typeof value === 'boolean') return value ? 1 : 0
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value
}

const typeRank = (value: null | number | string): number => (value === null ? 0 : typeof value === 'number' ? 1 : 2)
