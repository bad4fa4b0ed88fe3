import { parseFilterValue } from '../query.ts'
import type { Filter, Sort } from '../types.ts'

/** SQL fragment with its parameters in order. */
export type Clause = { readonly sql: string; readonly values: readonly (string | number)[] }

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
