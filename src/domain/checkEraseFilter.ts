import { checkOptions } from './checkOptions.ts'
import { anyText, finiteNumber, listOf, MemoryError, trueOrFalse } from './error.ts'
import type { EraseFilter } from './ports.ts'

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
