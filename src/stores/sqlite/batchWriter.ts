import type { DatabaseSync } from 'node:sqlite'
import type { Millis } from '../../domain/entry.ts'
import { type ErrorCode, MemoryError } from '../../domain/error.ts'
import type { Key, Scope } from '../../domain/key.ts'
import type { AuxiliaryRecord, EntryVector, EraseFilter, SearchTarget } from '../../domain/ports.ts'
import type { SessionChange } from '../../domain/session.ts'
import { busyTimeoutMs, connectWriter, syncFile } from './connect.ts'
import { isBusy, isDiskError, toMemoryError } from './errors.ts'
import { checkIdentity, FileGuard, type GuardedFile } from './fileGuard.ts'
import type { PackedWrite } from './table/tableWriter.ts'
import type { IndexedTable } from './wipe/mergeIndexes.ts'
import type { Slices } from './wipe/pageWiper.ts'
import { wipeFile } from './wipe/wipeFile.ts'
import { type CommitResult, Writer } from './write.ts'

/** A write operation, as plain data that can be sent to the worker thread. */
export type WriteTask =
  | { readonly commit: SessionChange }
  | { readonly erase: Key; readonly only: EraseFilter | undefined }
  | { readonly appendRecord: AuxiliaryRecord; readonly key: Key; readonly keep: number }
  | { readonly embed: readonly EntryVector[]; readonly model: string }
  | { readonly writeRows: readonly PackedWrite[]; readonly scope: Scope; readonly at: Millis }
  | { readonly eraseRows: Scope }
  /** Names of damaged rows. */
  | { readonly quarantineRows: readonly string[]; readonly scope: Scope; readonly reason: string }
  /** Removes erased data from the write-ahead log. */
  | { readonly truncateLog: true }
  /** Begins or continues a merge of a trigram index of the graph. */
  | { readonly mergeIndex: IndexedTable; readonly isFirst: boolean }
  /** Continues a pass of `wipeFile`, or begins one; sent in a batch of its own. */
  | { readonly wipe: true }
  | { readonly snapshot: SearchTarget; readonly stamp: number; readonly lineage: string; readonly data: Uint8Array }
  | { readonly quarantine: readonly string[]; readonly key: Key; readonly reason: string }

/** Result of a task, as plain data. `isLogTruncated` is set for erasures and log truncations. */
export type WriteResult =
  | { readonly committed: CommitResult }
  | { readonly erasedIds: readonly string[]; readonly isLogTruncated?: boolean; readonly erasedRows?: number }
  | { readonly storedCount: number }
  | { readonly isMerged: boolean }
  /** `waitMs` is the time until the next task of an unfinished pass. */
  | { readonly isWiped: boolean; readonly waitMs: Millis }
  | { readonly error: { readonly code: ErrorCode; readonly message: string } }

type Connection = { readonly database: DatabaseSync; readonly writer: Writer }

/** Writes many tasks in one transaction, so that they share one disk sync. */
export class BatchWriter {
  private readonly file: GuardedFile
  private readonly guard: FileGuard
  private connection: Connection | undefined
  private wipePass: Slices<void> | undefined

  constructor(file: GuardedFile) {
    this.file = file
    this.guard = new FileGuard(file)
  }

  /** Returns the results in order. A rejected task does not affect the others; if the disk fails, all tasks fail. */
  run(tasks: readonly WriteTask[]): readonly WriteResult[] {
    try {
      const statements = tasks.filter((task): task is Statement => !('wipe' in task))
      if (statements.length < tasks.length) return [this.continueWipe()]
      const results = this.transact(statements)
      return tasks.some(isErasure) ? this.truncateLog(results) : results
    } catch (error) {
      if (tasks.length > 1 && !(error instanceof MemoryError) && !isDiskError(error) && !isBusy(error))
        return tasks.flatMap((task) => this.run([task]))
      return tasks.map(() => errorResult(toMemoryError(error, this.file.path)))
    }
  }

  /** Closes the connection. SQLite moves the log into the database then, so that no other file is left. */
  close(): void {
    this.wipePass?.return()
    this.wipePass = undefined
    const { connection } = this
    this.connection = undefined
    connection?.database.close()
  }

  private transact(tasks: readonly Statement[]): readonly WriteResult[] {
    this.guard.checkAll()
    const { database, writer } = this.connect()
    try {
      database.exec('BEGIN IMMEDIATE')
      if (writer.afterBegin()) checkIdentity(database, this.file.path, this.file.identity)
      const results = tasks.map((task) => runTask(writer, task))
      writer.beforeCommit()
      database.exec('COMMIT')
      // A commit to a file that has lost its name would be missing after a restart, and is not acknowledged.
      this.guard.checkAll()
      return results
    } catch (error) {
      this.rollBack(error)
      throw error
    }
  }

  private rollBack(error: unknown): void {
    if (this.connection === undefined) return
    const { database, writer } = this.connection
    writer.afterRollback()
    try {
      if (database.isTransaction) database.exec('ROLLBACK')
    } catch {
      // SQLite rolled back by itself, or the connection is unusable and is closed below.
    }
    // The state of the disk is unknown after a failed write: a new connection reads it again.
    if (isDiskError(error)) this.discardConnection()
  }

  /** Runs the next slice of a pass. */
  private continueWipe(): WriteResult {
    const pass = this.wipePass ?? wipeFile(this.file)
    this.wipePass = undefined
    try {
      this.guard.checkAll()
      const { done, value } = pass.next()
      if (done === true) return { isWiped: true, waitMs: 0 }
      this.wipePass = pass
      return { isWiped: false, waitMs: value }
    } catch (error) {
      pass.return()
      throw error
    }
  }

  private discardConnection(): void {
    try {
      this.close()
    } catch {
      // A connection that cannot be closed is abandoned.
    }
  }

  /** Removes erased data from the log too. If the disk fails, only the erasures fail. */
  private truncateLog(results: readonly WriteResult[]): readonly WriteResult[] {
    try {
      // A pass in progress keeps the log, and empties it at its end.
      const isLogTruncated = this.wipePass === undefined && truncateLog(this.connect().database)
      // Without the sync, a power loss could bring back the old log.
      if (isLogTruncated) syncFile(`${this.file.path}-wal`)
      return results.map((result) => ('erasedIds' in result ? { ...result, isLogTruncated } : result))
    } catch (error) {
      const failure = errorResult(toMemoryError(error, this.file.path))
      if (isDiskError(error)) this.discardConnection()
      return results.map((result) => ('erasedIds' in result ? failure : result))
    }
  }

  private connect(): Connection {
    if (this.connection === undefined) {
      const database = connectWriter(this.file.path, this.file.identity)
      this.connection = { database, writer: new Writer(database) }
    }
    return this.connection
  }
}

/** A task that is part of a transaction. */
type Statement = Exclude<WriteTask, { wipe: true }>

const isErasure = (task: WriteTask): boolean => 'erase' in task || 'eraseRows' in task || 'truncateLog' in task

/** Runs one task. A `MemoryError` is its result; any other error aborts the transaction. */
function runTask(writer: Writer, task: Statement): WriteResult {
  try {
    if ('commit' in task) return { committed: writer.commit(task.commit) }
    if ('erase' in task) return { erasedIds: writer.erase(task.erase, task.only) }
    if ('truncateLog' in task) return { erasedIds: [] }
    if ('mergeIndex' in task) return { isMerged: writer.mergeIndex(task.mergeIndex, task.isFirst) }
    if ('appendRecord' in task)
      return { storedCount: writer.appendRecord(task.key, task.appendRecord, task.keep) ? 1 : 0 }
    if ('embed' in task) return { storedCount: writer.embed(task.model, task.embed) }
    if ('writeRows' in task) return { storedCount: writer.table.write(task.scope, task.at, task.writeRows) }
    if ('eraseRows' in task) return { erasedIds: [], erasedRows: writer.table.erase(task.eraseRows) }
    if ('quarantineRows' in task)
      return { storedCount: writer.table.quarantine(task.scope, task.quarantineRows, task.reason) }
    if ('snapshot' in task) return { storedCount: writer.snapshot(task.snapshot, task) ? 1 : 0 }
    return { erasedIds: writer.quarantine(task.key, task.quarantine, task.reason) }
  } catch (error) {
    if (error instanceof MemoryError) return errorResult(error)
    throw error
  }
}

/** SQLite holds the write lock while it waits for readers of the log. */
const maxTruncateMs = 50

/** Empties the log; false if a reader blocked it for longer than other writers should wait. */
function truncateLog(database: DatabaseSync): boolean {
  database.exec(`PRAGMA busy_timeout = ${maxTruncateMs}`)
  try {
    return (database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }).busy === 0
  } finally {
    database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
  }
}

const errorResult = ({ code, message }: MemoryError): WriteResult => ({ error: { code, message } })
