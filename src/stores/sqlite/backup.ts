import { closeSync, existsSync, openSync } from 'node:fs'
import { backup, type DatabaseSync } from 'node:sqlite'
import { MemoryError } from '../../domain/error.ts'
import { faultOf } from './faults.ts'

/** So many pages are copied at a time, so that others get their turn. */
const pages = 500

/** Copies a database that is in use to a new file: one consistent moment of it, never over something that is there. */
export async function backUp(
  database: DatabaseSync,
  path: string,
  target: string,
  onProgress: (done: number, total: number) => void = () => undefined,
): Promise<void> {
  if (existsSync(target))
    throw new MemoryError('bad-option', `${target} exists already. Choose another file for the backup.`, {
      param: 'backup',
    })
  try {
    // Made first, so that nobody but its owner can ever read it.
    closeSync(openSync(target, 'wx', 0o600))
    await backup(database, target, {
      rate: pages,
      progress: ({ totalPages, remainingPages }) => onProgress(totalPages - remainingPages, totalPages),
    })
  } catch (error) {
    throw faultOf(error, path)
  }
}
