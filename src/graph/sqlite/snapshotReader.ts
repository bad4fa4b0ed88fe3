import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { LongReads } from '../../domain/fileMaintenance.ts'
import type { Work } from '../../domain/work.ts'
import { connectReader } from '../../stores/sqlite/connect.ts'
import {
  FileGuard,
  type GuardedFile,
  guardFile,
  releaseFile,
  type StoreIdentity,
} from '../../stores/sqlite/fileGuard.ts'
import { isTurnLong, yieldToEventLoop } from '../../stores/yieldToEventLoop.ts'

/** Read-only connection to a file, which keeps one state of it while others write. */
export class SnapshotReader {
  readonly database: DatabaseSync
  readonly statements = new Map<string, StatementSync>()
  private readonly file: GuardedFile
  private readonly guard: FileGuard

  constructor(path: string, identity: StoreIdentity) {
    this.database = connectReader(path, identity)
    try {
      this.file = guardFile(this.database, path, identity)
    } catch (error) {
      this.database.close()
      throw error
    }
    this.guard = new FileGuard(this.file)
  }

  /** The first read afterwards determines the state. */
  begin(): void {
    this.check()
    this.database.exec('BEGIN')
  }

  /** Throws `file-changed` unless the path still names the file. */
  check(): void {
    this.guard.check()
  }

  end(): void {
    if (this.database.isTransaction) this.database.exec('COMMIT')
  }

  close(): void {
    this.database.close()
    releaseFile(this.file)
  }
}

/** Long reads at a time: the connection of each has a page cache of up to 16 MB and two descriptors. */
const maxLongReads = 8

/** Reads of many rows of a file, each with a connection of its own. */
export class SnapshotReaders {
  /** Connection of the read whose turn runs. */
  active: SnapshotReader | undefined
  /** Kept for the next read. */
  private idle: SnapshotReader | undefined
  private longReadCount = 0
  /** Long reads that wait for the end of another one, oldest first. */
  private readonly waiting: (() => void)[] = []
  private readonly open: () => SnapshotReader
  private readonly longReads: LongReads

  constructor(open: () => SnapshotReader, longReads: LongReads) {
    this.open = open
    this.longReads = longReads
  }

  /** Reads one state of the file in steps. */
  async read<T>(work: () => Work<T>): Promise<T> {
    const step = this.readOneTurn(work())
    if (step.done === true) return step.value
    // A read that takes more than one turn begins again, when it hinders nobody who empties the log.
    await this.beginLongRead()
    try {
      return await this.longReads.run(() => this.readToEnd(work()))
    } finally {
      this.endLongRead()
    }
  }

  /** Call it after the last read. */
  close(): void {
    this.idle?.close()
    this.idle = undefined
  }

  private readOneTurn<T>(steps: Work<T>): IteratorResult<number, T> {
    const reader = this.beginTransaction()
    try {
      const step = this.runTurnOn(reader, steps)
      this.endTransaction(reader)
      return step
    } catch (error) {
      reader.close()
      throw error
    }
  }

  private async readToEnd<T>(steps: Work<T>): Promise<T> {
    const reader = this.beginTransaction()
    try {
      let step = this.runTurnOn(reader, steps)
      while (step.done !== true) {
        await yieldToEventLoop()
        reader.check()
        step = this.runTurnOn(reader, steps)
      }
      this.endTransaction(reader)
      return step.value
    } catch (error) {
      reader.close()
      throw error
    }
  }

  private beginTransaction(): SnapshotReader {
    const reader = this.idle ?? this.open()
    this.idle = undefined
    try {
      reader.begin()
    } catch (error) {
      reader.close()
      throw error
    }
    return reader
  }

  private endTransaction(reader: SnapshotReader): void {
    reader.end()
    if (this.idle === undefined) this.idle = reader
    else reader.close()
  }

  private async beginLongRead(): Promise<void> {
    if (this.longReadCount < maxLongReads) this.longReadCount++
    else await new Promise<void>((resume) => this.waiting.push(resume))
  }

  private endLongRead(): void {
    const next = this.waiting.shift()
    if (next === undefined) this.longReadCount--
    else next()
  }

  private runTurnOn<T>(reader: SnapshotReader, steps: Work<T>): IteratorResult<number, T> {
    this.active = reader
    try {
      return runTurn(steps)
    } finally {
      this.active = undefined
    }
  }
}

/** Runs work until it is done or the turn of the event loop has taken long. */
export function runTurn<T>(work: Work<T>): IteratorResult<number, T> {
  let step = work.next()
  while (step.done !== true && !isTurnLong()) step = work.next()
  return step
}
