import type { Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { encryptedTableKey, type Scope } from '../../domain/key.ts'
import type { RowRange, Store, StoreTable, TableKey, TableRow, TableWrite } from '../../domain/ports.ts'
import { checkTableWrites, describeTableKey, packValue, unpackValue } from '../../domain/tableRows.ts'
import { decryptValue, encryptValue } from './entryCipher.ts'
import type { EncryptedSessions, SessionCipher } from './sessions.ts'

/**
 * Encrypts the values of rows; names, times and revisions stay readable. All rows of a scope have one key, which is
 * stored as the key of an internal session: rotating keys wraps it again, and erasing the rows erases it.
 */
export class EncryptedTable implements StoreTable {
  private readonly inner: Store
  private readonly sessions: EncryptedSessions

  constructor(inner: Store, sessions: EncryptedSessions) {
    this.inner = inner
    this.sessions = sessions
  }

  readRows(scope: Scope, keys: readonly TableKey[]): Promise<readonly (TableRow | undefined)[]> {
    return this.decrypt(scope, () => this.inner.table.readRows(scope, keys))
  }

  async writeRows(scope: Scope, at: Millis, writes: readonly TableWrite[]): Promise<void> {
    checkTableWrites(writes)
    const { cipher, epoch } = await this.sessions.requireCipher(encryptedTableKey(scope), at)
    const encrypted = writes.map((write) =>
      write.value === undefined
        ? write
        : { ...write, value: encryptValue(packValue(write.value), scope, write, cipher) },
    )
    await this.inner.table.writeRows(scope, at, encrypted)
    if ((await this.loadCipher(scope))?.epoch === epoch) return
    // The rows and their key were erased during the write: nobody could read these rows any more.
    await this.inner.table.writeRows(
      scope,
      at,
      writes.map(({ namespace, key }) => ({ namespace, key, value: undefined })),
    )
    throw new MemoryError(
      'erased',
      `The rows of ${scope} were erased while this write was in progress; nothing was stored. Retry if it is still needed.`,
    )
  }

  async listRows(scope: Scope, range: RowRange): Promise<readonly TableRow[]> {
    return this.decrypt(scope, () => this.inner.table.listRows(scope, range))
  }

  listScopes(after: Scope, limit: number): Promise<readonly Scope[]> {
    return this.inner.table.listScopes(after, limit)
  }

  async eraseRows(scope: Scope): Promise<number> {
    const count = await this.inner.table.eraseRows(scope)
    // The encrypted sessions drop their cipher with it.
    await this.sessions.erase(encryptedTableKey(scope))
    return count
  }

  /** Reads rows and decrypts them. */
  private async decrypt<T extends TableRow | undefined>(
    scope: Scope,
    read: () => Promise<readonly T[]>,
  ): Promise<readonly T[]> {
    const before = await this.loadCipher(scope)
    const rows = await read()
    try {
      return rows.map((row) => row && decryptRow(scope, row, before))
    } catch (error) {
      // Another process may have erased the rows and written new ones with another key.
      if ((await this.loadCipher(scope))?.epoch === before?.epoch) throw error
      return this.decrypt(scope, read)
    }
  }

  private loadCipher(scope: Scope): Promise<SessionCipher | undefined> {
    return this.sessions.loadCipher(encryptedTableKey(scope))
  }
}

function decryptRow<T extends TableRow>(scope: Scope, row: T, cipher: SessionCipher | undefined): T {
  const value = cipher && decryptValue(row.value, scope, row, cipher.cipher)
  if (value !== undefined) return { ...row, value: unpackValue(value) }
  throw new MemoryError(
    'corrupt',
    `Row ${describeTableKey(row)} of ${scope} was modified, or copied from elsewhere, and cannot be decrypted. Restore it from a backup or delete it.`,
  )
}
