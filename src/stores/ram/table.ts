import type { Millis } from '../../domain/entry.ts'
import type { Scope } from '../../domain/key.ts'
import type { RowRange, StoreTable, TableKey, TableRow, TableWrite } from '../../domain/ports.ts'
import {
  checkExpectedRevision,
  checkRowRange,
  checkTableKey,
  checkTableWrites,
  formatNamespace,
  formatTableKey,
  type PackedValue,
  packValue,
  parseTableKey,
  unpackValue,
} from '../../domain/tableRows.ts'

type PackedRow = Pick<TableRow, 'createdAt' | 'updatedAt' | 'revision'> & { readonly value: PackedValue }
/** Rows of a scope by name. `names` are sorted; undefined after rows were added or deleted. */
type ScopeRows = { readonly rows: Map<string, PackedRow>; names: readonly string[] | undefined }

/** Rows in the memory of this process. */
export class RamTable implements StoreTable {
  private readonly scopes = new Map<Scope, ScopeRows>()

  async readRows(scope: Scope, keys: readonly TableKey[]): Promise<readonly (TableRow | undefined)[]> {
    keys.forEach(checkTableKey)
    const rows = this.scopes.get(scope)?.rows
    return keys.map((key) => {
      const name = formatTableKey(key)
      const row = rows?.get(name)
      return row && unpackRow(name, row)
    })
  }

  async writeRows(scope: Scope, at: Millis, writes: readonly TableWrite[]): Promise<void> {
    checkTableWrites(writes)
    const table = this.scopes.get(scope) ?? { rows: new Map(), names: undefined }
    const changes = writes.map((write) => {
      const name = formatTableKey(write)
      const { revision = 0, createdAt = at } = table.rows.get(name) ?? {}
      checkExpectedRevision(write, revision)
      const row = write.value !== undefined && {
        value: packValue(write.value),
        createdAt: write.createdAt ?? createdAt,
        updatedAt: at,
        revision: revision + 1,
      }
      return { name, row }
    })
    for (const { name, row } of changes) {
      if (!row || !table.rows.has(name)) table.names = undefined
      if (row) table.rows.set(name, row)
      else table.rows.delete(name)
    }
    this.scopes.set(scope, table)
    if (table.rows.size === 0) this.scopes.delete(scope)
  }

  async listRows(scope: Scope, range: RowRange): Promise<readonly TableRow[]> {
    checkRowRange(range)
    const table = this.scopes.get(scope)
    if (table === undefined) return []
    table.names ??= [...table.rows.keys()].sort()
    const start = formatNamespace(range.prefix)
    const after = range.after === undefined ? '' : formatTableKey(range.after)
    const found: TableRow[] = []
    for (const name of table.names) {
      if (found.length >= range.limit) break
      if (name > after && name.startsWith(start)) found.push(unpackRow(name, table.rows.get(name) as PackedRow))
    }
    return found
  }

  async listScopes(after: Scope, limit: number): Promise<readonly Scope[]> {
    const scopes = [...this.scopes.keys()].filter((scope) => scope > after)
    return scopes.sort().slice(0, limit)
  }

  async eraseRows(scope: Scope): Promise<number> {
    const count = this.scopes.get(scope)?.rows.size ?? 0
    this.scopes.delete(scope)
    return count
  }

  clear(): void {
    this.scopes.clear()
  }
}

const unpackRow = (name: string, { value, ...row }: PackedRow): TableRow => ({
  ...parseTableKey(name),
  value: unpackValue(value),
  ...row,
})
