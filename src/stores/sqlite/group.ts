import type { DatabaseSync } from 'node:sqlite'
import { type ErrorCode, MemoryError } from '../../domain/error.ts'
import type { Key } from '../../domain/key.ts'
import type { Embedded, Erasure, Where } from '../../domain/ports.ts'
import type { Change } from '../../domain/session.ts'
import { connectWriter, patience, syncFile } from './connect.ts'
import { faultOf, isBusy, isDiskFault } from './faults.ts'
import { Writer, type Written } from './write.ts'

/** Something to be written, as plain data that can cross threads. */
export type Task =
  | { readonly commit: Change }
  | { readonly erase: Key; readonly only: Erasure | undefined }
  | { readonly embed: readonly Embedded[]; readonly model: string }
  /** Takes what was forgotten out of the log. */
  | { readonly clean: true }
  | { readonly snapshot: Where; readonly stamp: number; readonly lineage: string; readonly data: Uint8Array }
  | { readonly quarantine: readonly string[]; readonly key: Key; readonly why: string }

/** What came of a task, in the same manner. */
export type Outcome =
  | { readonly written: Written }
  | { readonly gone: readonly string[]; readonly isClean?: boolean }
  | { readonly kept: number }
  | { readonly failed: { readonly code: ErrorCode; readonly message: string } }

/** Writes many tasks as one transaction, so that they share one wait for the disk. */
export class Group {
  private readonly path: string
  private open: { readonly database: DatabaseSync; readonly writer: Writer } | undefined

  constructor(path: string) {
    this.path = path
  }

  /** What came of each task, in order. A task that is refused does not touch the others; if the disk fails, all fail. */
  run(tasks: readonly Task[]): readonly Outcome[] {
    try {
      const outcomes = this.transact(tasks)
      return tasks.some((task) => 'erase' in task || 'clean' in task) ? this.cleaned(outcomes) : outcomes
    } catch (error) {
      if (tasks.length > 1 && !(error instanceof MemoryError) && !isDiskFault(error) && !isBusy(error))
        return tasks.flatMap((task) => this.run([task]))
      return tasks.map(() => failure(faultOf(error, this.path)))
    }
  }

  /** Folds the log into the database, so that nothing is left beside it. */
  close(): void {
    const { open } = this
    this.open = undefined
    open?.database.close()
  }

  private transact(tasks: readonly Task[]): readonly Outcome[] {
    const { database, writer } = this.connection()
    try {
      database.exec('BEGIN IMMEDIATE')
      writer.begun()
      const outcomes = tasks.map((task) => attempt(writer, task))
      writer.ending()
      database.exec('COMMIT')
      return outcomes
    } catch (error) {
      this.undo(error)
      throw error
    }
  }

  private undo(error: unknown): void {
    const { database, writer } = this.connection()
    writer.undone()
    try {
      if (database.isTransaction) database.exec('ROLLBACK')
    } catch {
      // It was rolled back by SQLite itself, or the connection is beyond use; either way it is closed below.
    }
    // After a failed write nobody knows what the disk holds of it: a new connection reads it again.
    if (isDiskFault(error)) this.letGo()
  }

  private letGo(): void {
    try {
      this.close()
    } catch {
      // A connection that cannot even be closed is given up.
    }
  }

  /** Takes what was forgotten out of the log too; if the disk fails at it, only those who wanted to forget are told. */
  private cleaned(outcomes: readonly Outcome[]): readonly Outcome[] {
    try {
      const isClean = truncateLog(this.connection().database)
      // Without this a loss of power could bring back the log as it was before.
      if (isClean) syncFile(`${this.path}-wal`)
      return outcomes.map((outcome) => ('gone' in outcome ? { ...outcome, isClean } : outcome))
    } catch (error) {
      const fault = failure(faultOf(error, this.path))
      if (isDiskFault(error)) this.letGo()
      return outcomes.map((outcome) => ('gone' in outcome ? fault : outcome))
    }
  }

  private connection(): { readonly database: DatabaseSync; readonly writer: Writer } {
    if (this.open === undefined) {
      const database = connectWriter(this.path)
      this.open = { database, writer: new Writer(database) }
    }
    return this.open
  }
}

/** Does one task; a refusal is an outcome, anything else ends the transaction. */
function attempt(writer: Writer, task: Task): Outcome {
  try {
    if ('commit' in task) return { written: writer.commit(task.commit) }
    if ('erase' in task) return { gone: writer.erase(task.erase, task.only) }
    if ('clean' in task) return { gone: [] }
    if ('embed' in task) return { kept: writer.embed(task.model, task.embed) }
    if ('snapshot' in task) return { kept: writer.snapshot(task.snapshot, task) ? 1 : 0 }
    return { gone: writer.quarantine(task.key, task.quarantine, task.why) }
  } catch (error) {
    if (error instanceof MemoryError) return failure(error)
    throw error
  }
}

/** Empties the log; false if a reader was in the way for longer than others should wait. */
function truncateLog(database: DatabaseSync): boolean {
  database.exec(`PRAGMA busy_timeout = ${patience / 20}`)
  try {
    return (database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }).busy === 0
  } finally {
    database.exec(`PRAGMA busy_timeout = ${patience}`)
  }
}

const failure = ({ code, message }: MemoryError): Outcome => ({ failed: { code, message } })
