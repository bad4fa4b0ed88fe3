import { MemoryError } from '../../domain/error.ts'

/** What SQLite's primary result codes mean to a caller. */
const busy = 5
const readOnly = 8
const inputOutput = 10
const corrupt = 11
const full = 13
const cannotOpen = 14
const tooBig = 18
const notADatabase = 26

/** SQLite's result code behind an error, without what it adds to tell where; 0 for any other error. */
function resultOf(error: unknown): number {
  const code = typeof error === 'object' && error !== null && 'errcode' in error ? Number(error.errcode) : 0
  return code & 0xff
}

/** Whether the disk, and not what was written, is at fault: nothing more should be tried on this connection. */
export const isDiskFault = (error: unknown): boolean =>
  [readOnly, inputOutput, full, corrupt, cannotOpen].includes(resultOf(error))

export const isBusy = (error: unknown): boolean => resultOf(error) === busy
export const isCorrupt = (error: unknown): boolean => resultOf(error) === corrupt

/** A driver's error as the engine's own: what happened to the words, and what to do. */
export function faultOf(error: unknown, path: string): MemoryError {
  if (error instanceof MemoryError) return error
  const cause = { cause: error }
  const text = error instanceof Error ? error.message : String(error)
  switch (resultOf(error)) {
    case busy:
      return new MemoryError(
        'busy',
        `${path} is being written to by another process for too long; nothing was stored. Try again.`,
        cause,
      )
    case full:
      return new MemoryError(
        'full',
        `There is no room left for ${path}; nothing was stored. Make room and try again.`,
        cause,
      )
    case readOnly:
    case inputOutput:
      return new MemoryError(
        'not-durable',
        `${path} cannot be written to (${text}); nothing is known to be stored. Look at the disk and try again.`,
        cause,
      )
    case corrupt:
      return new MemoryError(
        'corrupt',
        `${path} is damaged (${text}). Run threadkeep doctor --store sqlite:${path}.`,
        cause,
      )
    case notADatabase:
      return new MemoryError(
        'bad-store',
        `${path} is not a Threadkeep store, or is damaged at its beginning. Choose another file, or bring back a backup.`,
        cause,
      )
    case cannotOpen:
      return new MemoryError(
        'bad-store',
        `${path} cannot be opened (${text}). Look at the path and its permissions.`,
        cause,
      )
    case tooBig:
      return new MemoryError(
        'full',
        `A message is larger than a database can hold (1 GB); nothing was stored. Split it.`,
        cause,
      )
    default:
      return new MemoryError('not-durable', `${path} could not be used: ${text}.`, cause)
  }
}
