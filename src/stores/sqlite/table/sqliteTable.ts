import type { DatabaseSync } from 'node:sqlite'
import type { Millis } from '../../../domain/entry.ts'
import type { Scope } from '../../../domain/key.ts'
import type { RowRange, StoreTable, TableKey, TableRow, TableWrite } from '../../../domain/ports.ts'
import {
  checkRowRange,
  checkTableKey,
  checkTableWrites,
  endOfNamespace,
  formatNamespace,
  formatTableKey,
  packValue,
} from '../../../domain/tableRows.ts'
import type { WriteTask } from '../batchWriter.ts'
import { type PreparedStatements, prepareStatements } from '../prepare.ts'
import type { Cells } from '../rows.ts'
import { decodeRowName, encodeRowName, type PackedWrite, parseRow, rowColumns } from './tableWriter.ts'

const statements = {
  row: `SELECT ${rowColumns} FROM table_row WHERE scope = ? AND name = ?`,
  list: `SELECT ${rowColumns} FROM table_row WHERE scope = ? AND name > ? AND name < ? ORDER BY name LIMIT ?`,
  // Finding the scopes one by one reads one row of each.
  nextScope: 'SELECT scope FROM table_row WHERE scope > ? ORDER BY scope LIMIT 1',
} as const

type SqliteTableDeps = {
  read<T>(query: () => T): Promise<T>
  submit(task: WriteTask): Promise<unknown>
  /** Submits an erasure and waits until the log has nothing of the erased data. */
  submitErasure(task: WriteTask): Promise<{ readonly erasedRows?: number }>
  /** Throws if these values may not be stored in this file. */
  checkValues(values: readonly PackedWrite['value'][]): void
  /** Called for each row whose checksum does not match. */
  onDamage(scope: Scope, name: string): void
}

/** Rows beside sessions in an SQLite file. */
export class SqliteTable implements StoreTable {
  private readonly sql: PreparedStatements<typeof statements>
  private readonly deps: SqliteTableDeps

  constructor(database: DatabaseSync, deps: SqliteTableDeps) {
    this.sql = prepareStatements(database, statements)
    this.deps = deps
  }

  async readRows(scope: Scope, keys: readonly TableKey[]): Promise<readonly (TableRow | undefined)[]> {
    keys.forEach(checkTableKey)
    return this.deps.read(() =>
      keys.map((key) => {
        const cells = this.sql.row.get(scope, encodeRowName(formatTableKey(key)))
        return cells === undefined ? undefined : this.parse(scope, cells as unknown as Cells)
      }),
    )
  }

  async writeRows(scope: Scope, at: Millis, writes: readonly TableWrite[]): Promise<void> {
    checkTableWrites(writes)
    const packed = writes.map((write) => ({
      ...write,
      value: write.value === undefined ? null : packValue(write.value),
    }))
    this.deps.checkValues(packed.map(({ value }) => value))
    if (packed.length > 0) await this.deps.submit({ writeRows: packed, scope, at })
  }

  async listRows(scope: Scope, range: RowRange): Promise<readonly TableRow[]> {
    checkRowRange(range)
    const { prefix, limit } = range
    const after = range.after === undefined ? '' : formatTableKey(range.after)
    const [, start] = [formatNamespace(prefix), after].sort() as [string, string]
    return this.deps.read(() => {
      const rows = this.sql.list.all(
        scope,
        encodeRowName(start),
        encodeRowName(endOfNamespace(prefix)),
        Math.min(limit, Number.MAX_SAFE_INTEGER),
      ) as unknown as Cells[]
      return rows.flatMap((cells) => this.parse(scope, cells) ?? [])
    })
  }

  listScopes(after: Scope, limit: number): Promise<readonly Scope[]> {
    return this.deps.read(() => {
      const scopes: Scope[] = []
      for (let last: Scope | undefined = after; last !== undefined && scopes.length < limit; ) {
        const row = this.sql.nextScope.get(last) as readonly Scope[] | undefined
        last = row?.[0]
        if (last !== undefined) scopes.push(last)
      }
      return scopes
    })
  }

  async eraseRows(scope: Scope): Promise<number> {
    return (await this.deps.submitErasure({ eraseRows: scope })).erasedRows ?? 0
  }

  private parse(scope: Scope, cells: Cells): TableRow | undefined {
    const row = parseRow(cells)
    if (row === undefined) this.deps.onDamage(scope, decodeRowName(cells[0] as Uint8Array))
    return row
  }
}
