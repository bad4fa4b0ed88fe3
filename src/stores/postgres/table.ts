import type { Millis } from '../../domain/entry.ts'
import type { Scope } from '../../domain/key.ts'
import type { RowRange, StoreTable, TableKey, TableRow, TableWrite } from '../../domain/ports.ts'
import {
  checkExpectedRevision,
  checkRowRange,
  checkTableKey,
  checkTableWrites,
  endOfNamespace,
  formatNamespace,
  formatTableKey,
  packValue,
  parseTableKey,
  unpackValue,
} from '../../domain/tableRows.ts'
import type { Database } from './database.ts'
import type { BatchReader } from './reader.ts'

type RowCells = readonly [
  name: string,
  json: string | null,
  bytes: string | null,
  created: Millis,
  updated: Millis,
  revision: number,
]

/** Rows of the table `table_row`. Their names are encoded in UTF-16, big-endian: bytes sort as code units do. */
export class PostgresTable implements StoreTable {
  private readonly database: Database
  private readonly reader: BatchReader

  constructor(database: Database, reader: BatchReader) {
    this.database = database
    this.reader = reader
  }

  async readRows(scope: Scope, keys: readonly TableKey[]): Promise<readonly (TableRow | undefined)[]> {
    keys.forEach(checkTableKey)
    const names = keys.map((key) => encodeName(formatTableKey(key)))
    const rows = await this.reader.read<readonly (RowCells | null)[]>(scope, { read: 'rows', names })
    return rows.map((row) => (row === null ? undefined : parseRow(row)))
  }

  async writeRows(scope: Scope, at: Millis, writes: readonly TableWrite[]): Promise<void> {
    checkTableWrites(writes)
    if (writes.length === 0) return
    const problem = await this.database.call<{ index: number; revision: number } | null>('write_rows', [
      scope,
      at,
      JSON.stringify(writes.map(formatWrite)),
    ])
    if (problem !== null) checkExpectedRevision(writes[problem.index] as TableWrite, problem.revision)
  }

  async listRows(scope: Scope, range: RowRange): Promise<readonly TableRow[]> {
    checkRowRange(range)
    const { prefix, after, limit } = range
    const start = formatNamespace(prefix)
    const afterName = after === undefined ? start : formatTableKey(after)
    const request = {
      read: 'rowRange',
      above: encodeName([start, afterName].sort()[1] as string),
      below: encodeName(endOfNamespace(prefix)),
      limit: Math.min(limit, Number.MAX_SAFE_INTEGER),
    }
    return (await this.reader.read<readonly RowCells[]>(scope, request)).map(parseRow)
  }

  listScopes(after: Scope, limit: number): Promise<readonly Scope[]> {
    const maxScopes = Math.min(limit, Number.MAX_SAFE_INTEGER)
    return this.database.call<readonly Scope[]>('list_row_scopes', [after, maxScopes], 'always')
  }

  eraseRows(scope: Scope): Promise<number> {
    return this.database.call<number>('erase_rows', [scope])
  }
}

function formatWrite(write: TableWrite): object {
  const { value, expected, createdAt } = write
  const packed = value === undefined ? undefined : packValue(value)
  return {
    name: encodeName(formatTableKey(write)),
    expected,
    created: createdAt,
    ...(typeof packed === 'string' ? { json: packed } : packed && { bytes: Buffer.from(packed).toString('base64') }),
  }
}

function parseRow([name, json, bytes, createdAt, updatedAt, revision]: RowCells): TableRow {
  return {
    ...parseTableKey(decodeName(name)),
    value: unpackValue(json ?? Buffer.from(bytes ?? '', 'base64')),
    createdAt,
    updatedAt,
    revision,
  }
}

const encodeName = (name: string): string => Buffer.from(name, 'utf16le').swap16().toString('base64')
const decodeName = (base64: string): string => Buffer.from(base64, 'base64').swap16().toString('utf16le')
