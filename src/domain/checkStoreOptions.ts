import { checkOptions, type OptionChecks } from './checkOptions.ts'
import { anyText, anyValue, finiteNumber, listOf, MemoryError, trueOrFalse } from './error.ts'
import type { EraseFilter, IndexQuery, PageOptions, RecordRange, SearchTarget, SessionFilter } from './ports.ts'

/** Names are checked, and not values: stores read on every turn, and callers have checked what users gave them. */
const pageChecks: OptionChecks<PageOptions> = {
  after: anyValue,
  before: anyValue,
  limit: anyValue,
  newest: anyValue,
  revision: anyValue,
}
const listChecks: OptionChecks<SessionFilter> = {
  scope: anyValue,
  expiredBy: anyValue,
  metadata: anyValue,
  after: anyValue,
  limit: anyValue,
}
const recordChecks: OptionChecks<RecordRange> = { before: anyValue, limit: anyValue }
const targetChecks: OptionChecks<SearchTarget> = { scope: anyValue, id: anyValue }
const queryChecks: OptionChecks<IndexQuery> = {
  text: anyValue,
  vector: anyValue,
  kinds: anyValue,
  from: anyValue,
  to: anyValue,
  before: anyValue,
  budget: anyValue,
  broad: anyValue,
  revision: anyValue,
  limit: anyValue,
}

/** Throws `bad-option` for unknown options of `Store.readMessages`. */
export const checkPage = (range: PageOptions): void => checkOptions('readMessages', range, pageChecks)

/** Throws `bad-option` for unknown options of `Store.list`: without its scope, it lists the sessions of all tenants. */
export const checkListFilter = (filter: SessionFilter): void => checkOptions('list', filter, listChecks)

/** Throws `bad-option` for unknown options of `Store.records`. */
export const checkRecordRange = (range: RecordRange): void => checkOptions('records', range, recordChecks)

/** Throws `bad-option` for unknown fields of a search target: without an id, it is a whole tenant. */
export const checkTarget = (where: SearchTarget): void => checkOptions('a search target', where, targetChecks)

/** Throws `bad-option` for unknown options of `SearchIndex.search`. */
export function checkSearch(where: SearchTarget, query: IndexQuery): void {
  checkTarget(where)
  checkOptions('search', query, queryChecks)
}

type EraseFields = { entries: readonly string[]; expiredBy: number; remains: true; records: true }

/** Throws `bad-option` unless a filter of `Store.erase` has exactly one field: without a filter, all is erased. */
export function checkEraseFilter(filter: EraseFilter | undefined): void {
  if (filter === undefined) return
  checkOptions<EraseFields>('erase', filter, {
    entries: listOf(anyText),
    expiredBy: finiteNumber,
    remains: trueOrFalse,
    records: trueOrFalse,
  })
  const values = Object.values(filter)
  if (values.length !== 1 || values[0] === undefined)
    throw new MemoryError('bad-option', 'A filter of erase needs exactly one field. Omit the filter to erase all.', {
      param: 'erase',
    })
}
