import type { Json } from '../domain/entry.ts'
import { checkOption, MemoryError } from '../domain/error.ts'
import { Heap } from '../domain/heap.ts'
import type { Work } from '../domain/work.ts'
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

/** Evaluates a filter on a decrypted row. Rows without the property match only `ne` and `exists: false`. */
export function matchesFilter({ properties }: Sortable, filter: Filter): boolean {
  const wanted = parseFilterValue(filter)
  const found = Object.hasOwn(properties, filter.property) ? properties[filter.property] : undefined
  if (filter.op === 'exists') return (found !== undefined) === (wanted !== false)
  if (filter.op === 'ne') return found === undefined || !isEqual(found, wanted)
  if (found === undefined) return false
  if (filter.op === 'eq') return isEqual(found, wanted)
  if (filter.op === 'in') return isOneOf(found, wanted as Json[])
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

const isEqual = (left: Json, right: Json): boolean => isOneOf(left, [right])

/** Compares a value with all items in linear time, however long it is. */
function isOneOf(value: Json, items: readonly Json[]): boolean {
  if (typeof value !== 'object' || value === null) return items.includes(value)
  const text = JSON.stringify(value)
  return items.some((item) => typeof item === 'object' && JSON.stringify(item) === text)
}

function contains(found: Json, wanted: Json): boolean {
  if (Array.isArray(found)) return isOneOf(wanted, found)
  return typeof found === 'string' && typeof wanted === 'string' && found.includes(wanted)
}

/** A matching row with its values of the sort. */
type Candidate<T> = { readonly row: T; readonly keys: readonly SortKey[]; readonly number: number }
/** A text is its UTF-8 bytes. */
type SortKey = null | number | Buffer

/**
 * Chooses the rows of a page from matching rows, which are added in insertion order. Keeps no more rows than the page
 * and those before it, so that neither memory nor a single step grows with the number of matching rows.
 */
export class PageCollector<T extends Sortable> {
  total = 0
  private readonly sort: readonly Sort[]
  private readonly offset: number
  private readonly end: number
  /** The top is the last of the rows. */
  private readonly first: Heap<Candidate<T>>

  constructor({ limit, offset, sort = [] }: { limit: number; offset: number; sort?: readonly Sort[] | undefined }) {
    this.sort = sort
    this.offset = offset
    this.end = offset + limit
    this.first = new Heap((a, b) => this.order(a, b) > 0)
  }

  add(row: T): void {
    const candidate = { row, keys: this.sort.map(({ by }) => toSortKey(sortValue(row, by))), number: this.total++ }
    const last = this.first.top
    if (this.first.size < this.end) this.first.push(candidate)
    else if (last !== undefined && this.order(candidate, last) < 0) this.first.replaceTop(candidate)
  }

  /** Returns the rows of the page in their order. Interruptible work. */
  *finish(): Work<readonly T[]> {
    const rows: T[] = []
    while (this.first.size > this.offset) {
      rows.push((this.first.pop() as Candidate<T>).row)
      yield popWork
    }
    return rows.reverse()
  }

  private order(left: Candidate<T>, right: Candidate<T>): number {
    for (const [index, { order = 'asc' }] of this.sort.entries()) {
      const difference = compareKeys(left.keys[index] ?? null, right.keys[index] ?? null)
      if (difference !== 0) return order === 'desc' ? -difference : difference
    }
    return left.number - right.number
  }
}

/** Cost of taking a row from the heap, in characters. */
const popWork = 20

function sortValue(row: Sortable, by: string): Json {
  if (by === 'id' || by === 'type' || by === 'createdAt' || by === 'updatedAt') return row[by]
  return Object.hasOwn(row.properties, by) ? (row.properties[by] ?? null) : null
}

const compare = (left: Json, right: Json): number => compareKeys(toSortKey(left), toSortKey(right))

/** Compares like SQLite: null, then numbers (true is 1, false is 0), then texts by their UTF-8 bytes. */
function compareKeys(a: SortKey, b: SortKey): number {
  if (Buffer.isBuffer(a) && Buffer.isBuffer(b)) return Buffer.compare(a, b)
  if (typeof a === 'number' && typeof b === 'number') return a < b ? -1 : a > b ? 1 : 0
  return rankKey(a) - rankKey(b)
}

function toSortKey(value: Json): SortKey {
  if (typeof value === 'boolean') return value ? 1 : 0
  if (value === null || typeof value === 'number') return value
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
}

const rankKey = (key: SortKey): number => (key === null ? 0 : typeof key === 'number' ? 1 : 2)
