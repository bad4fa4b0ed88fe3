import { type Millis, utf8Length } from '../domain/entry.ts'
import { type Check, MemoryError, rejectField } from '../domain/error.ts'
import type { Scope } from '../domain/key.ts'
import type { Store, TableRow, TableWrite } from '../domain/ports.ts'
import {
  checkTableKey,
  describeTableKey,
  maxRowValueBytes,
  packValue,
  parseDescribedKey,
  unpackValue,
} from '../domain/tableRows.ts'
import { toCanonicalJson } from './canonical.ts'

/** A row of a table. Its name and JSON are texts, so that lone surrogates and the order of fields survive. */
export type RowRecord = {
  readonly scope: Scope
  /** JSON list of the parts of the namespace and the key. */
  readonly name: string
  readonly createdAt: Millis
  readonly updatedAt: Millis
  /** The value as JSON, or as bytes in base64. */
  readonly json?: string
  readonly bytes?: string
}

export function toRowRecord(scope: Scope, { createdAt, updatedAt, value, ...key }: TableRow): RowRecord {
  const packed = packValue(value)
  const content = typeof packed === 'string' ? { json: packed } : { bytes: Buffer.from(packed).toString('base64') }
  return { scope, name: describeTableKey(key), createdAt, updatedAt, ...content }
}

/** Accepts the name of a row as an export writes it. */
export const rowName: Check = (value, at) => {
  const isList = typeof value === 'string' && value.startsWith('[') && isCanonicalJson(value)
  if (!isList) rejectField(at, value, 'a list of the parts of a namespace and a key')
  const key = parseDescribedKey(value as string)
  try {
    checkTableKey(key)
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    rejectField(at, value, 'the name of a row')
  }
}

/** Accepts JSON as an export writes it. */
export const rowJson: Check = (value, at) => {
  if (typeof value !== 'string' || utf8Length(value) > maxRowValueBytes || !isCanonicalJson(value))
    rejectField(at, value, `JSON of at most ${maxRowValueBytes} bytes as an export writes it`)
}

/** Accepts base64 as an export writes it. */
export const rowBytes: Check = (value, at) => {
  const bytes = typeof value === 'string' ? Buffer.from(value, 'base64') : undefined
  if (bytes === undefined || bytes.length > maxRowValueBytes || bytes.toString('base64') !== value)
    rejectField(at, value, `base64 of at most ${maxRowValueBytes} bytes`)
}

/** True for JSON that a row could have been stored with. */
function isCanonicalJson(text: string): boolean {
  try {
    return packValue(JSON.parse(text)) === text
  } catch {
    return false
  }
}

/** A row of a bundle, the write that creates it, and the row that the store has. */
export type ComparedRow = {
  readonly record: RowRecord
  readonly write: TableWrite
  readonly stored: TableRow | undefined
  readonly isSame: boolean
}

/** Rows and bytes that are compared and written at a time. */
const maxBatchRows = 100
const maxBatchBytes = 8_000_000

/** Collects rows and hands them on in batches of one scope, each with the row that the store has. */
export class RowCollector {
  private readonly store: Store
  private readonly handle: (scope: Scope, rows: readonly ComparedRow[]) => Promise<void>
  private scope: Scope = ''
  private records: RowRecord[] = []
  private bytes = 0

  constructor(store: Store, handle: (scope: Scope, rows: readonly ComparedRow[]) => Promise<void>) {
    this.store = store
    this.handle = handle
  }

  /** Adds a row to the scope it is imported into. */
  async add(scope: Scope, record: RowRecord): Promise<void> {
    if (scope !== this.scope || this.records.length >= maxBatchRows || this.bytes >= maxBatchBytes) await this.flush()
    this.scope = scope
    this.records.push(record)
    this.bytes += (record.json ?? record.bytes ?? '').length
  }

  async flush(): Promise<void> {
    const { scope, records } = this
    this.records = []
    this.bytes = 0
    if (records.length === 0) return
    const writes = records.map(toWrite)
    const stored = await this.store.table.readRows(scope, writes)
    const rows = records.map((record, at): ComparedRow => {
      const row = stored[at]
      const isSame =
        row !== undefined && toCanonicalJson(toRowRecord(record.scope, row)) === toCanonicalJson({ ...record })
      return { record, write: writes[at] as TableWrite, stored: row, isSame }
    })
    await this.handle(scope, rows)
  }
}

const toWrite = ({ name, createdAt, json, bytes = '' }: RowRecord): TableWrite => ({
  ...parseDescribedKey(name),
  value: unpackValue(json ?? Buffer.from(bytes, 'base64')),
  createdAt,
})

/** Names a row in messages: `row ["namespace","key"] of scope`. */
export const formatRow = (scope: Scope, { name }: RowRecord): string => `row ${name} of ${scope}`
