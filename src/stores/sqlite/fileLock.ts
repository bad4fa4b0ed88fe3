import { existsSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import type { Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { isBusy } from './errors.ts'
import { DatabaseSync } from './nodeSqlite.ts'

const timeoutMs: Millis = 10_000
const pollIntervalMs: Millis = 5

/**
 * Acquires an exclusive lock among processes and within this one, and holds it until disposed. Throws `busy` with the
 * given message after 10 seconds. It is an SQLite lock on an empty file: the operating system releases it when the
 * process dies, whereas a lock that is merely a file would stay for good.
 *
 * @example
 * using lock = await acquireFileLock('keys.json.lock', 'keys.json is locked by another process. Try again.')
 */
export async function acquireFileLock(file: string, busyMessage: string): Promise<Disposable> {
  // SQLite creates the file: opening and closing it in any other way would release every lock this process holds on it.
  const isNew = !existsSync(file)
  for (let waitedMs = 0; waitedMs <= timeoutMs; waitedMs += pollIntervalMs) {
    const lock = tryLock(file)
    if (lock !== undefined) {
      if (isNew) await chmod(file, 0o600).catch(() => undefined)
      return lock
    }
    await wait(pollIntervalMs)
  }
  throw new MemoryError('busy', busyMessage)
}

function tryLock(file: string): Disposable | undefined {
  const database = new DatabaseSync(file, { timeout: 0 })
  try {
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    return { [Symbol.dispose]: () => database.close() }
  } catch (error) {
    database.close()
    if (isBusy(error)) return undefined
    throw error
  }
}
