import { closeSync, existsSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { MemoryError } from '../../domain/error.ts'
import { toMemoryError } from './errors.ts'
import { migrate, rejectForeignDatabase } from './schema.ts'

/** Time to wait for a writer in another process, in milliseconds. */
export const busyTimeoutMs = 10_000

/** Older releases can lose committed data in a checkpoint. */
const minSqliteVersion = [3, 51, 3] as const

/**
 * Opens a file for writing. Every commit is on disk before it returns, deleted data is overwritten, and nothing is
 * written outside the database and its log.
 */
export function connectWriter(path: string): DatabaseSync {
  return connect(path, (database) => {
    const { journal_mode: mode } = database.prepare('PRAGMA journal_mode = WAL').get() as { journal_mode: string }
    if (mode !== 'wal')
      throw new MemoryError(
        'bad-store',
        `${path} is on a file system without shared memory, where SQLite cannot write safely. Choose a local disk.`,
      )
    database.exec(`
      PRAGMA synchronous = FULL;
      PRAGMA fullfsync = ON;
      PRAGMA checkpoint_fullfsync = ON;
      PRAGMA secure_delete = ON;
      PRAGMA temp_store = MEMORY;
      PRAGMA cell_size_check = ON;
      PRAGMA trusted_schema = OFF;
    `)
  })
}

/** Opens a file for reading. */
export function connectReader(path: string): DatabaseSync {
  return connect(path, (database) =>
    database.exec(
      'PRAGMA query_only = ON; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF',
    ),
  )
}

/** Creates the file and its folder if missing, readable by the owner only, and migrates it to the newest schema. */
export function prepareFile(path: string): void {
  try {
    if (!existsSync(path)) createFile(path)
  } catch (error) {
    throw new MemoryError(
      'bad-store',
      `${path} cannot be opened (${error instanceof Error ? error.message : error}). Check the path and its permissions.`,
      {
        cause: error,
      },
    )
  }
  rejectOtherPrograms(path)
  const database = connectWriter(path)
  try {
    migrate(database, path)
  } catch (error) {
    throw toMemoryError(error, path)
  } finally {
    database.close()
  }
}

/** Throws before anything is written to a database of another program. */
function rejectOtherPrograms(path: string): void {
  const database = connect(path, () => undefined)
  try {
    rejectForeignDatabase(database, path)
  } catch (error) {
    throw toMemoryError(error, path)
  } finally {
    database.close()
  }
}

/** Creates a file and syncs its folder, so that a power loss cannot remove the name again. */
function createFile(path: string): void {
  const folder = dirname(path)
  const createdFolder = mkdirSync(folder, { recursive: true })
  closeSync(openSync(path, 'a', 0o600))
  for (const name of createdFolder === undefined ? [folder] : [folder, dirname(createdFolder)]) syncFile(name)
}

/** Syncs a file, or the names in a folder, to disk. */
export function syncFile(path: string): void {
  // Windows cannot open folders and needs no sync for their names.
  if (process.platform === 'win32') return
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

function connect(path: string, configure: (database: DatabaseSync) => void): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { timeout: busyTimeoutMs, enableForeignKeyConstraints: true })
    checkSqliteVersion(database)
    configure(database)
    return database
  } catch (error) {
    database?.close()
    throw toMemoryError(error, path)
  }
}

function checkSqliteVersion(database: DatabaseSync): void {
  const { version } = database.prepare('SELECT sqlite_version() AS version').get() as { version: string }
  const parts = version.split('.').map(Number)
  const index = minSqliteVersion.findIndex((part, at) => parts[at] !== part)
  if (index >= 0 && (parts[index] ?? 0) < (minSqliteVersion[index] as number)) {
    throw new MemoryError(
      'bad-store',
      `This Node contains SQLite ${version}, which can lose committed data; ${minSqliteVersion.join('.')} or newer is required. Update Node (24 has it), or use ram:.`,
    )
  }
}
