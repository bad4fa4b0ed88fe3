import type { DatabaseSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import type { Millis } from '../../../domain/entry.ts'
import type { Scope } from '../../../domain/key.ts'
import type { TableRow, TableWrite } from '../../../domain/ports.ts'
import {
  checkExpectedRevision,
  formatTableKey,
  type PackedValue,
  parseTableKey,
  unpackValue,
} from '../../../domain/tableRows.ts'
import { type PreparedStatements, prepareStatements } from '../prepare.ts'
import type { Cells } from '../rows.ts'

/** Change of a row with a packed value; null deletes the row. */
export type PackedWrite = Omit<TableWrite, 'value'> & { readonly value: PackedValue | null }

/** Columns in the order `parseRow` expects. */
export const rowColumns = 'name, created, updated, revision, value, sum'

const statements = {
  row: `SELECT ${rowColumns} FROM table_row WHERE scope = ? AND name = ?`,
  position: 'SELECT revision, created FROM table_row WHERE scope = ? AND name = ?',
  put: `INSERT INTO table_row (scope, ${rowColumns}) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (scope, name) DO UPDATE SET created = excluded.created, updated = excluded.updated,
      revision = excluded.revision, value = excluded.value, sum = excluded.sum`,
  delete: 'DELETE FROM table_row WHERE scope = ? AND name = ?',
  erase: 'DELETE FROM table_row WHERE scope = ?',
  quarantine: `INSERT INTO row_quarantine (scope, name, why, value)
    SELECT scope, name, ?, value FROM table_row WHERE scope = ? AND name = ?`,
  purgeQuarantine: 'DELETE FROM row_quarantine WHERE scope = ?',
} as const

/** Writes rows beside sessions. The caller begins and ends the transactions. */
export class TableWriter {
  private readonly sql: PreparedStatements<typeof statements>

  constructor(database: DatabaseSync) {
    this.sql = prepareStatements(database, statements)
  }

  /** Returns the number of writes. Throws `conflict` if a row has an unexpected revision, and writes nothing. */
  write(scope: Scope, at: Millis, writes: readonly PackedWrite[]): number {
    const changes = writes.map((write) => {
      const name = encodeRowName(formatTableKey(write))
      const [revision = 0, createdAt = at] = (this.sql.position.get(scope, name) ?? []) as unknown as number[]
      checkExpectedRevision(write, revision)
      return { name, value: write.value, createdAt: write.createdAt ?? createdAt, revision: revision + 1 }
    })
    for (const { name, value, createdAt, revision } of changes) {
      if (value === null) this.sql.delete.run(scope, name)
      else {
        const sum = checksumRow(name, createdAt, at, revision, value)
        this.sql.put.run(scope, name, createdAt, at, revision, value, sum)
      }
    }
    return writes.length
  }

  /** Deletes all rows of a scope; returns their number. */
  erase(scope: Scope): number {
    this.purgeQuarantine(scope)
    return Number(this.sql.erase.run(scope).changes)
  }

  /** Moves damaged rows to the quarantine table; returns their number. */
  quarantine(scope: Scope, names: readonly string[], reason: string): number {
    // Another process may have quarantined the row meanwhile, and it may have been written again.
    const damaged = names.map(encodeRowName).filter((name) => {
      const cells = this.sql.row.get(scope, name)
      return cells !== undefined && parseRow(cells as unknown as Cells) === undefined
    })
    for (const name of damaged) {
      this.sql.quarantine.run(reason, scope, name)
      this.sql.delete.run(scope, name)
    }
    return damaged.length
  }

  purgeQuarantine(scope: Scope): void {
    this.sql.purgeQuarantine.run(scope)
  }
}

/** Parses a row; undefined if the checksum does not match. */
export function parseRow(cells: Cells): TableRow | undefined {
  const [name, createdAt, updatedAt, revision, value, sum] = cells as unknown as RowCells
  if (sum !== checksumRow(name, createdAt, updatedAt, revision, value)) return undefined
  return { ...parseTableKey(decodeRowName(name)), value: unpackValue(value), createdAt, updatedAt, revision }
}

type RowCells = readonly [
  name: Uint8Array,
  createdAt: Millis,
  updatedAt: Millis,
  revision: number,
  value: PackedValue,
  sum: number,
]

const checksumRow = (
  name: Uint8Array,
  createdAt: Millis,
  updatedAt: Millis,
  revision: number,
  value: PackedValue,
): number => crc32(value, crc32(`${createdAt} ${updatedAt} ${revision} ${typeof value}`, crc32(name)))

/** Encodes a formatted name in UTF-16BE, whose bytes sort as its code units do and which keeps lone surrogates. */
export const encodeRowName = (name: string): Uint8Array => Buffer.from(name, 'utf16le').swap16()

/** Decodes a name; a damaged one may have half a code unit at its end. */
export const decodeRowName = (name: Uint8Array): string =>
  Buffer.from(name.subarray(0, name.length - (name.length % 2)))
    .swap16()
    .toString('utf16le')
