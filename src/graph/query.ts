import type { Json } from '../domain/entry.ts'
import { checkOption, MemoryError } from '../domain/error.ts'
import type { Filter, GraphPageOptions, Sort } from './types.ts'

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

/** Returns the value of a filter after checking it against the operator. */
export function parseFilterValue({ property, op, value }: Filter): Json {
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
