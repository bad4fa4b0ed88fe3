import { existsSync, renameSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { MemoryError } from '../../domain/error.ts'
import { parseStoredKey } from '../../domain/key.ts'
import type { Keyring } from '../../domain/ports.ts'
import { formatTableKey, parseDescribedKey } from '../../domain/tableRows.ts'
import { checkAccess, connectReader, connectWriter, prepareFile } from './connect.ts'
import { claimTask, readEncryption } from './encryption.ts'
import { isBusy, isCorrupt, toMemoryError } from './errors.ts'
import { computeTotals, examineDatabase, type ProgressListener, type StoreFault, type StoreReport } from './examine.ts'
import { followLinks } from './fileGuard.ts'
import { encryptPlaintextRows } from './plaintextRows.ts'
import { salvage } from './salvage.ts'
import { migrate, migrations } from './schema.ts'
import { Writer } from './write.ts'

/** State before the repair, the actions taken, and the state afterwards. */
export type RepairResult = {
  readonly before: StoreReport
  readonly actions: readonly string[]
  readonly after: StoreReport
}

export type ExamineOptions = {
  /** Keys of an encrypted file. */
  readonly keyring?: Keyring | undefined
  readonly onProgress?: ProgressListener
}

/**
 * Checks everything in a file without changing it. The file may be in use.
 *
 * Throws `bad-secret` if the file is encrypted and the keys are missing or wrong.
 */
export async function examineFile(path: string, { keyring, onProgress }: ExamineOptions = {}): Promise<StoreReport> {
  checkAccess(path, keyring, true)
  const database = connectReader(path, 'checked')
  try {
    return await examineDatabase(database, path, onProgress)
  } finally {
    database.close()
  }
}

/**
 * Repairs a file. Damaged entries are quarantined; session rows are rebuilt from the messages. If the
 * database structure itself is broken, all readable rows move to a new file and the old one is kept.
 *
 * Content that an earlier release wrote to an encrypted file without its key is encrypted.
 *
 * Throws `busy` if another process uses the file, `bad-secret` if the file is encrypted and the keys are missing or
 * wrong.
 */
export async function repairFile(path: string, { keyring, onProgress }: ExamineOptions = {}): Promise<RepairResult> {
  checkAccess(path, keyring, true)
  requireExclusiveAccess(path)
  let database = connectWriter(path, 'checked')
  const actions: string[] = []
  try {
    const before = await examineDatabase(database, path, onProgress)
    if (before.faults.some(({ kind }) => kind === 'structure') && !tryReindex(database)) {
      database.close()
      // A link keeps leading to the place of the database, where the new file is created.
      actions.push(moveToNewFile(followLinks(path)))
      database = connectWriter(path, 'checked')
    }
    migrate(database, path)
    if (keyring !== undefined) actions.push(...encryptLeftovers(database, path, keyring))
    const { faults } = actions.length === 0 ? before : await examineDatabase(database, path)
    actions.push(...fixFaults(database, faults))
    return { before, actions, after: await examineDatabase(database, path) }
  } finally {
    if (database.isOpen) database.close()
  }
}

function encryptLeftovers(database: DatabaseSync, path: string, keyring: Keyring): readonly string[] {
  if (readEncryption(database) !== 'encrypted') return []
  database.exec('BEGIN IMMEDIATE')
  try {
    const actions = encryptPlaintextRows(database, keyring)
    database.exec('COMMIT')
    migrate(database, path, migrations, claimTask(path, keyring))
    return actions
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw toMemoryError(error, path)
  }
}

/** Leaves WAL mode, which needs exclusive access and fails if another connection is open. */
function requireExclusiveAccess(path: string): void {
  const database = connectWriter(path, 'checked')
  try {
    database.exec('PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE')
  } catch (error) {
    if (isBusy(error))
      throw new MemoryError('busy', `${path} is in use. Stop the processes that use it, then repair it.`, {
        cause: error,
      })
    if (!isCorrupt(error)) throw toMemoryError(error, path)
  } finally {
    database.close()
  }
}

/** Rebuilds the SQL indexes; returns true if nothing else was broken. */
function tryReindex(database: DatabaseSync): boolean {
  try {
    database.exec('REINDEX')
    return (
      database.prepare('PRAGMA integrity_check(1)').get()?.integrity_check === 'ok' &&
      database.prepare('PRAGMA foreign_key_check').get() === undefined
    )
  } catch {
    return false
  }
}

/** Copies all readable rows to a new file and returns a description of the result. */
function moveToNewFile(path: string): string {
  let number = 1
  while (existsSync(`${path}.damaged-${number}`)) number++
  const damaged = `${path}.damaged-${number}`
  for (const suffix of ['', '-wal', '-shm']) if (existsSync(path + suffix)) renameSync(path + suffix, damaged + suffix)
  prepareFile(path)
  const { copiedRows, unreadableRanges } = salvage(damaged, path)
  return `${copiedRows} rows were copied to a new file${unreadableRanges === 0 ? '' : `, ${unreadableRanges} ranges could not be read`}; the damaged file is kept as ${damaged}`
}

function fixFaults(database: DatabaseSync, faults: readonly StoreFault[]): string[] {
  const writer = new Writer(database)
  database.exec('BEGIN IMMEDIATE')
  try {
    writer.afterBegin()
    const actions = [...quarantineDamaged(writer, faults)]
    writer.beforeCommit()
    actions.push(...recountSessions(database, faults))
    database.exec('DELETE FROM snapshot')
    database.exec('COMMIT')
    return actions
  } catch (error) {
    database.exec('ROLLBACK')
    throw error
  }
}

function* quarantineDamaged(writer: Writer, faults: readonly StoreFault[]): Iterable<string> {
  for (const { kind, key, id, reason } of faults) {
    if (key === undefined || id === undefined) continue
    if (kind === 'row') {
      writer.table.quarantine(key, [formatTableKey(parseDescribedKey(id))], reason)
      yield `row ${id} of ${key} was quarantined`
    }
    if (kind !== 'message' && kind !== 'derived') continue
    writer.quarantine(parseStoredKey(key), [id], reason)
    yield `${id} of ${key} was quarantined`
  }
}

/** Rebuilds the counters of damaged session rows. Quarantining has updated the other rows already. */
function* recountSessions(database: DatabaseSync, faults: readonly StoreFault[]): Iterable<string> {
  const select = database.prepare('SELECT id, last, weight FROM session WHERE scope = ? AND name = ?')
  const update = database.prepare(
    'UPDATE session SET messages = ?, last = ?, weight = ?, asked = ?, gaps = ?, revision = revision + 1, removals = removals + 1 WHERE id = ?',
  )
  for (const { kind, key } of faults) {
    if (kind !== 'session' || key === undefined) continue
    const { scope, id: name } = parseStoredKey(key)
    const row = select.get(scope, name) as { id: number; last: number; weight: number }
    const totals = computeTotals(database, row.id, row.last, row.weight)
    update.run(
      totals.messageCount,
      totals.lastSequence,
      totals.totalWeight,
      totals.lastUserSequence,
      JSON.stringify(totals.gaps),
      row.id,
    )
    yield `the counters of ${key} were rebuilt from its messages`
  }
}
