import type { Json } from '../domain/entry.ts'
import { checkOption, MemoryError } from '../domain/error.ts'
import { Heap } from '../domain/heap.ts'
import type { Work } from '../domain/work.ts'
import type { Filter, GraphPageOptions, Sort } from './types.ts'

const maxLimit = 1_000
const defaultLimit = 100
/** Limit of a query for all rows. */
export const allRows = Number.POSITIVE_INFINITY

export function parsePage({ limit = defaultLimit, offset = 0 }: GraphPageOptions): {
  readonly limit: number
  readonly offset: number
} {
  checkOption(
    'limit',
    limit,
    (Number.isInteger(limit) && limit >= 1 && limit <= maxLimit) || limit === allRows,
    `a whole number from 1 to ${maxLimit}, or Infinity for all rows`,
  )
  checkOption('offset', offset, Number.isSafeInteger(offset) && offset >= 0, 'a whole number, 0 or more')
  return { limit, offset }
}

/** Values of the lists of a query's filters. */
const maxListValues = 10_000

/** Throws `bad-option` unless the value of each filter fits its operator and the lists are short enough. */
export function checkFilters(filters: readonly Filter[]): void {
  let listValues = 0
  for (const { property, op, value } of filters) {
    const requirement = unmetRequirement(op, value)
    if (requirement !== undefined)
      throw createFilterError(
        `The filter on ${JSON.stringify(property)} uses operator ${op}, whose value must be ${requirement}.`,
      )
    if (op === 'in') listValues += (value as readonly Json[]).length
  }
  if (listValues > maxListValues)
    throw createFilterError(
      `The lists of the filters have ${listValues} values; a query may have ${maxListValues}. Split them over several queries.`,
    )
}

const createFilterError = (message: string): MemoryError => new MemoryError('bad-option', message, { param: 'filters' })

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

/** Checks a decrypted row. Interruptible work: a property may be long. */
type RowFilter = (row: Sortable) => Work<boolean>
/** Checks the value of a property, which is undefined if a row does not have it. */
type Condition = (found: Json | undefined) => boolean

/**
 * Compiles checked filters, all of which a row must meet: a long value or list is prepared once and not for each row.
 * Rows without the property match only `ne` and `exists: false`. Interruptible work.
 */
export function* compileFilters(filters: readonly Filter[]): Work<RowFilter> {
  const conditions: (readonly [property: string, isMet: Condition])[] = []
  for (const filter of filters) conditions.push([filter.property, yield* compileFilter(filter)])
  return function* ({ properties }) {
    for (const [property, isMet] of conditions) {
      if (!isMet(Object.hasOwn(properties, property) ? properties[property] : undefined)) return false
      yield 1
    }
    return true
  }
}

function* compileFilter({ op, value: wanted = null }: Filter): Work<Condition> {
  if (op === 'exists') return (found) => (found !== undefined) === (wanted !== false)
  if (op === 'contains') return compileContains(wanted)
  if (op === 'eq' || op === 'ne' || op === 'in') {
    const isWanted = yield* compileEquality(op === 'in' ? (wanted as readonly Json[]) : [wanted])
    return op === 'ne'
      ? (found) => found === undefined || !isWanted(found)
      : (found) => found !== undefined && isWanted(found)
  }
  const wantedKey = toSortKey(wanted)
  const isInOrder = comparisons[op]
  return (found) =>
    typeof found === typeof wanted &&
    (typeof found === 'number' || typeof found === 'string') &&
    isInOrder(compareKeys(toSortKey(found), wantedKey))
}

const isNested = (value: Json): boolean => typeof value === 'object' && value !== null

/** Compares with all items in the time of one comparison. Lists and objects are equal if their JSON texts are. */
function* compileEquality(items: readonly Json[]): Work<(value: Json) => boolean> {
  const primitives = new Set<Json>()
  const texts = new Set<string>()
  for (const item of items) {
    const text = isNested(item) ? JSON.stringify(item) : undefined
    if (text === undefined) primitives.add(item)
    else texts.add(text)
    yield 1 + (text?.length ?? 0)
  }
  return (value) => (isNested(value) ? texts.size > 0 && texts.has(JSON.stringify(value)) : primitives.has(value))
}

function compileContains(wanted: Json): Condition {
  const text = isNested(wanted) ? JSON.stringify(wanted) : undefined
  return (found) => {
    if (typeof found === 'string') return typeof wanted === 'string' && found.includes(wanted)
    if (!Array.isArray(found)) return false
    return text === undefined
      ? found.includes(wanted)
      : found.some((item: Json) => isNested(item) && JSON.stringify(item) === text)
  }
}

const comparisons = {
  lt: (order: number) => order < 0,
  lte: (order: number) => order <= 0,
  gt: (order: number) => order > 0,
  gte: (order: number) => order >= 0,
} as const

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
