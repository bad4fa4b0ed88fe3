import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { connectReader } from '../../stores/sqlite/connect.ts'
import {
  FileGuard,
  type GuardedFile,
  guardFile,
  releaseFile,
  type StoreIdentity,
} from '../../stores/sqlite/fileGuard.ts'

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
