import { closeSync, existsSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { MemoryError } from '../../domain/error.ts'
import { faultOf } from './faults.ts'
import { migrate, refuseStrangers } from './schema.ts'

/** How long a process waits for another one that is writing. */
export const patience = 10_000

/** Before this release of SQLite a checkpoint could lose what had been committed. */
const oldest = [3, 51, 3] as const

/**
 * Opens a file for writing: every commit is on the disk before it returns, what is deleted is overwritten, nothing is
 * written beside the database and its log.
 */
export function connectWriter(path: string): DatabaseSync {
  return connected(path, (database) => {
    const { journal_mode: mode } = database.prepare('PRAGMA journal_mode = WAL').get() as { journal_mode: string }
    if (mode !== 'wal')
      throw new MemoryError(
        'bad-store',
        `${path} cannot be written safely here: its file system has no shared memory. Choose a local disk.`,
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

/** Opens a file for reading only. */
export function connectReader(path: string): DatabaseSync {
  return connected(path, (database) =>
    database.exec(
      'PRAGMA query_only = ON; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF',
    ),
  )
}

/** Makes the file and its folder if they are missing, and brings it to the newest schema. Only its owner may read it. */
export function prepareFile(path: string): void {
  try {
    if (!existsSync(path)) makeFile(path)
  } catch (error) {
    throw new MemoryError(
      'bad-store',
      `${path} cannot be opened (${error instanceof Error ? error.message : error}). Look at the path and its permissions.`,
      {
        cause: error,
      },
    )
  }
  refuseOther(path)
  const database = connectWriter(path)
  try {
    migrate(database, path)
  } catch (error) {
    throw faultOf(error, path)
  } finally {
    database.close()
  }
}

/** Leaves the files of other programs as they are. */
function refuseOther(path: string): void {
  const database = connected(path, () => undefined)
  try {
    refuseStrangers(database, path)
  } catch (error) {
    throw faultOf(error, path)
  } finally {
    database.close()
  }
}

/** A new file, whose name is on the disk too: a loss of power must not take it away again. */
function makeFile(path: string): void {
  const folder = dirname(path)
  const made = mkdirSync(folder, { recursive: true })
  closeSync(openSync(path, 'a', 0o600))
  for (const name of made === undefined ? [folder] : [folder, dirname(made)]) syncFile(name)
}

/** Waits until a file, or the names in a folder, are on the disk. */
export function syncFile(path: string): void {
  // Windows opens no folders, and keeps their names by itself.
  if (process.platform === 'win32') return
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

function connected(path: string, prepare: (database: DatabaseSync) => void): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { timeout: patience, enableForeignKeyConstraints: true })
    refuseOld(database)
    prepare(database)
    return database
  } catch (error) {
    database?.close()
    throw faultOf(error, path)
  }
}

function refuseOld(database: DatabaseSync): void {
  const { version } = database.prepare('SELECT sqlite_version() AS version').get() as { version: string }
  const parts = version.split('.').map(Number)
  const at = oldest.findIndex((wanted, place) => parts[place] !== wanted)
  if (at >= 0 && (parts[at] ?? 0) < (oldest[at] as number)) {
    throw new MemoryError(
      'bad-store',
      `This Node carries SQLite ${version}, which can lose what was written; ${oldest.join('.')} or newer is needed. Update Node (24 has it), or use ram:.`,
    )
  }
}
