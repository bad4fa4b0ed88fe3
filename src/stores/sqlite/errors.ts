import { MemoryError } from '../../domain/error.ts'

/** SQLite's primary result codes. */
const SQLITE_BUSY = 5
const SQLITE_READONLY = 8
const SQLITE_IOERR = 10
const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_CANTOPEN = 14
const SQLITE_TOOBIG = 18
const SQLITE_NOTADB = 26

/** Returns SQLite's primary result code of an error, without the extended bits; 0 for any other error. */
function resultCodeOf(error: unknown): number {
  const code = typeof error === 'object' && error !== null && 'errcode' in error ? Number(error.errcode) : 0
  return code & 0xff
}

/** True if the disk failed, not the statement: the connection must not be used any further. */
export const isDiskError = (error: unknown): boolean =>
  [SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CORRUPT, SQLITE_CANTOPEN].includes(resultCodeOf(error))

export const isBusy = (error: unknown): boolean => resultCodeOf(error) === SQLITE_BUSY
/** True if a read-only connection would first have to roll back or recover what a crash left behind. */
export const needsRecovery = (error: unknown): boolean => resultCodeOf(error) === SQLITE_READONLY
export const isCorrupt = (error: unknown): boolean => resultCodeOf(error) === SQLITE_CORRUPT

/** True for an error of the file system, as opposed to SQLite's, on a full disk. */
const isOutOfSpace = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ENOSPC'

/** Converts a driver error: the message says whether anything was stored, and what to do. */
export function toMemoryError(error: unknown, path: string): MemoryError {
  if (error instanceof MemoryError) return error
  const cause = { cause: error }
  const text = error instanceof Error ? error.message : String(error)
  switch (isOutOfSpace(error) ? SQLITE_FULL : resultCodeOf(error)) {
    case SQLITE_BUSY:
      return new MemoryError('busy', `${path} is locked by another process; nothing was stored. Try again.`, cause)
    case SQLITE_FULL:
      return new MemoryError(
        'disk-full',
        `The disk that holds ${path} is full; nothing was stored. Free some space and try again.`,
        cause,
      )
    case SQLITE_READONLY:
    case SQLITE_IOERR:
      return new MemoryError(
        'not-durable',
        `${path} cannot be written to (${text}); the change may not be stored. Check the disk and try again.`,
        cause,
      )
    case SQLITE_CORRUPT:
      return new MemoryError(
        'corrupt',
        `${path} is damaged (${text}). Run threadkeep doctor --store sqlite:${path}.`,
        cause,
      )
    case SQLITE_NOTADB:
      return new MemoryError(
        'bad-store',
        `${path} is not a Threadkeep store, or its header is damaged. Choose another file, or restore a backup.`,
        cause,
      )
    case SQLITE_CANTOPEN:
      return new MemoryError(
        'bad-store',
        `${path} cannot be opened (${text}). Check the path and its permissions.`,
        cause,
      )
    case SQLITE_TOOBIG:
      return new MemoryError(
        'bad-message',
        'A message exceeds the database limit of 1 GB; nothing was stored. Split the message.',
        cause,
      )
    default:
      return new MemoryError('not-durable', `${path} could not be used: ${text}.`, cause)
  }
}
