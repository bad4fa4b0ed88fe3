import { closeSync, existsSync, openSync } from 'node:fs'
import { resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { MemoryError } from '../../domain/error.ts'
import { toMemoryError } from './errors.ts'
import { backup } from './nodeSqlite.ts'

/** Pages copied between two turns of the event loop. */
const pagesPerStep = 500

/** Copies an open database to a new file. Throws `bad-option` if the target exists. */
export async function backupDatabase(
  database: DatabaseSync,
  path: string,
  file: string,
  onProgress: (done: number, total: number) => void,
): Promise<void> {
  const target = resolve(file)
  if (existsSync(target))
    throw new MemoryError('bad-option', `${target} already exists. Choose another file for the backup.`, {
      param: 'backup',
    })
  try {
    // Created first with owner-only permissions, so that nobody else can ever read it.
    closeSync(openSync(target, 'wx', 0o600))
    await backup(database, target, {
      rate: pagesPerStep,
      progress: ({ totalPages, remainingPages }) => onProgress(totalPages - remainingPages, totalPages),
    })
  } catch (error) {
    throw toMemoryError(error, path)
  }
}
