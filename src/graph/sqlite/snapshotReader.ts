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

/** Reads of many rows of a file, each with a connection of its own. */
export class SnapshotReaders {
  /** Connection of the read whose turn runs. */
  active: SnapshotReader | undefined
  /** Kept for the next read. */
  private idle: SnapshotReader | undefined
  private readonly open: () => SnapshotReader
  private readonly longReads: LongReads

  constructor(open: () => SnapshotReader, longReads: LongReads) {
    this.open = open
    this.longReads = longReads
  }

  /** Reads one state of the file in steps. */
  async read<T>(work: () => Work<T>): Promise<T> {
    let reader: SnapshotReader | undefined
    try {
      reader = this.idle ?? this.open()
      this.idle = undefined
      reader.begin()
      const step = this.runTurnOn(reader, work())
      reader.end()
      // A read that takes more than one turn begins again, when it hinders nobody who empties the log.
      const result = step.done === true ? step.value : await this.readToEnd(reader, work)
      if (this.idle === undefined) this.idle = reader
      else reader.close()
      return result
    } catch (error) {
      reader?.close()
      throw error
    }
  }

  /** Call it after the last read. */
  close(): void {
    this.idle?.close()
    this.idle = undefined
  }

  private readToEnd<T>(reader: SnapshotReader, work: () => Work<T>): Promise<T> {
    return this.longReads.run(async () => {
      const steps = work()
      reader.begin()
      let step = this.runTurnOn(reader, steps)
      while (step.done !== true) {
        await yieldToEventLoop()
        reader.check()
        step = this.runTurnOn(reader, steps)
      }
      reader.end()
      return step.value
    })
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
