import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readdirSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { MemoryError } from '../../domain/error.ts'
import type { Keyring } from '../../domain/ports.ts'
import { checkKeys, claimTask } from './encryption.ts'
import { needsRecovery, toMemoryError } from './errors.ts'
import { checkIdentity, followLinks, readIdentity, type StoreIdentity } from './fileGuard.ts'
import { DatabaseSync } from './nodeSqlite.ts'
import { migrate, migrations, rejectForeignDatabase } from './schema.ts'

/** Time to wait for a writer in another process, in milliseconds. */
export const busyTimeoutMs = 10_000

/** Older releases can lose committed data in a checkpoint. */
const minSqliteVersion = [3, 51, 3] as const

/** Access to a file: the identity that `prepareFile` returned, or `checked` after `checkAccess` in a repair. */
export type FileAccess = StoreIdentity | 'checked'

/**
 * Opens a file for writing. Every commit is on disk before it returns, deleted data is overwritten, and nothing is
 * written outside the database and its log.
 */
export function connectWriter(path: string, access: FileAccess): DatabaseSync {
  return connect(path, access, (database) => {
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
export function connectReader(path: string, access: FileAccess): DatabaseSync {
  return connect(path, access, (database) =>
    database.exec(
      'PRAGMA query_only = ON; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF',
    ),
  )
}

/**
 * Creates the file and its folder if missing, readable by the owner only, checks its keys before anything else is read
 * or written, and migrates it to the newest schema. Returns the identity that connections must find.
 */
export function prepareFile(path: string, keyring?: Keyring): StoreIdentity {
  try {
    if (!existsSync(path)) createFile(followLinks(path))
  } catch (error) {
    if (error instanceof MemoryError) throw error
    throw new MemoryError(
      'bad-store',
      `${path} cannot be opened (${error instanceof Error ? error.message : error}). Check the path and its permissions.`,
      {
        cause: error,
      },
    )
  }
  checkAccess(path, keyring)
  const database = connectWriter(path, 'checked')
  try {
    // Another process may have encrypted the file meanwhile.
    checkKeys(database, path, keyring)
    migrate(database, path, migrations, claimTask(path, keyring))
    return readIdentity(database)
  } catch (error) {
    throw toMemoryError(error, path)
  } finally {
    database.close()
  }
}

/**
 * Throws `bad-store` for a database of another program, and `bad-secret` or `bad-store` for keys that do not fit.
 * Leaves every byte of the file as it is, unless a crash has left it in a state that must be recovered first. With
 * `allowsDamage` a damaged file passes, so that it can be examined and repaired.
 */
export function checkAccess(path: string, keyring: Keyring | undefined, allowsDamage = false): void {
  try {
    try {
      checkDatabase(openUntouched(path), path, keyring)
    } catch (error) {
      if (!needsRecovery(error)) throw error
      checkDatabase(connectReader(path, 'checked'), path, keyring)
    }
  } catch (error) {
    if (!allowsDamage || error instanceof MemoryError) throw toMemoryError(error, path)
  }
}

function checkDatabase(database: DatabaseSync, path: string, keyring: Keyring | undefined): void {
  try {
    rejectForeignDatabase(database, path)
    checkKeys(database, path, keyring)
  } finally {
    database.close()
  }
}

/**
 * Opens a database without changing it. Without a log no connection has the file open, and `immutable` avoids creating
 * one. With a log, a read-only connection reads it without moving it into the database; with a journal, it refuses to
 * read what must be rolled back first.
 */
function openUntouched(path: string): DatabaseSync {
  const file = followLinks(path)
  const url = pathToFileURL(file)
  if (!existsSync(`${file}-wal`) && !existsSync(`${file}-journal`)) url.searchParams.set('immutable', '1')
  return new DatabaseSync(url, { readOnly: true, timeout: busyTimeoutMs })
}

/** Creates a file and syncs its folder, so that a power loss cannot remove the name again. */
function createFile(path: string): void {
  const folder = dirname(path)
  rejectRecoverable(path, folder)
  const createdFolder = mkdirSync(folder, { recursive: true })
  closeSync(openSync(path, 'a', 0o600))
  for (const name of createdFolder === undefined ? [folder] : [folder, dirname(createdFolder)]) syncFile(name)
}

/** Name of the copy of a database that was deleted or replaced while it was open. */
export const recoveredFile = (path: string, number: number): string => `${path}.recovered-${number}`

/** Throws rather than begin an empty store beside the recovered content of a deleted one. */
function rejectRecoverable(path: string, folder: string): void {
  if (!existsSync(folder)) return
  const prefix = recoveredFile(basename(path), 0).slice(0, -1)
  const recovered = readdirSync(folder).find((name) => name.startsWith(prefix) && !name.endsWith('.unfinished'))
  if (recovered === undefined) return
  throw new MemoryError(
    'bad-store',
    `${path} is missing, but its content was recovered to ${recovered}. Rename that file to ${basename(path)}, or move it away to begin an empty store.`,
  )
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

function connect(path: string, access: FileAccess, configure: (database: DatabaseSync) => void): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { timeout: busyTimeoutMs, enableForeignKeyConstraints: true })
    checkSqliteVersion(database)
    configure(database)
    if (access !== 'checked') checkIdentity(database, path, access)
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
