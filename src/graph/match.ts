import type { Json } from '../domain/entry.ts'
import type { Filter, Sort } from './graph.ts'
import { wantedBy } from './query.ts'

/** A row as it is told: what filters and orders look at. */
type Told = {
  readonly id: string
  readonly type: string
  readonly properties: Readonly<Record<string, Json>>
  readonly createdAt: number
  readonly updatedAt: number
}

/** Whether a row passes a filter: what `conditionOf` says in SQL, for rows that had to be opened first. */
export function isMatch({ properties }: Told, filter: Filter): boolean {
  const wanted = wantedBy(filter)
  const found = Object.hasOwn(properties, filter.property) ? properties[filter.property] : undefined
  if (filter.op === 'exists') return (found !== undefined) === (wanted !== false)
  if (filter.op === 'ne') return found === undefined || !isSame(found, wanted)
  if (found === undefined) return false
  if (filter.op === 'eq') return isSame(found, wanted)
  if (filter.op === 'in') return (wanted as Json[]).some((one) => isSame(found, one))
  if (filter.op === 'contains') return holds(found, wanted)
  return (
    typeof found === typeof wanted &&
    (typeof found === 'number' || typeof found === 'string') &&
    compares[filter.op](compared(found, wanted))
  )
}

const compares = {
  lt: (order: number) => order < 0,
  lte: (order: number) => order <= 0,
  gt: (order: number) => order > 0,
  gte: (order: number) => order >= 0,
} as const

const isSame = (one: Json, other: Json): boolean => JSON.stringify(one) === JSON.stringify(other)

function holds(found: Json, wanted: Json): boolean {
  if (Array.isArray(found)) return found.some((one) => isSame(one, wanted))
  return typeof found === 'string' && typeof wanted === 'string' && found.includes(wanted)
}

/** Rows in the order `orderOf` says in SQL, those that are equal as they came. */
export function inOrder<T extends Told>(rows: readonly T[], sort: readonly Sort[] = []): readonly T[] {
  return [...rows].sort((left, right) => {
    for (const { by, order = 'asc' } of sort) {
      const difference = compared(fieldOf(left, by), fieldOf(right, by))
      if (difference !== 0) return order === 'desc' ? -difference : difference
    }
    return 0
  })
}

function fieldOf(row: Told, by: string): Json {
  if (by === 'id' || by === 'type' || by === 'createdAt' || by === 'updatedAt') return row[by]
  return Object.hasOwn(row.properties, by) ? (row.properties[by] ?? null) : null
}

/** SQLite's order of values: nothing, then numbers, among which true is 1 and false 0, then texts by their bytes. */
function compared(left: Json, right: Json): number {
  const [one, other] = [comparable(left), comparable(right)]
  if (typeof one === 'string' && typeof other === 'string') return Buffer.compare(Buffer.from(one), Buffer.from(other))
  if (typeof one === 'number' && typeof other === 'number') return one < other ? -1 : one > other ? 1 : 0
  return rank(one) - rank(other)
}

function comparable(value: Json): null | number | string {
  if (typeof value === 'boolean') return value ? 1 : 0
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value
}

const rank = (value: null | number | string): number => (value === null ? 0 : typeof value === 'number' ? 1 : 2)
