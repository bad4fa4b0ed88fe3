import { existsSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import type { Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'

/** How long a writer waits for another one, and how often it looks. */
const patience: Millis = 10_000
const pause: Millis = 5

/**
 * Waits for its turn among processes and within this one, and holds it until disposed of; whoever waits too long is told
 * what `busy` says. The lock is one of SQLite's on an empty file,
 * because the operating system takes that back from a process that dies: a lock that is merely a file would keep
 * everybody out from then on.
 *
 * @example
 * using turn = await takeTurn('keys.json.lock', 'keys.json is being written by another process for too long. Try again.')
 */
export async function takeTurn(file: string, busy: string): Promise<Disposable> {
  // SQLite makes the file: to open and close it in any other way takes back every lock this process holds on it.
  const isNew = !existsSync(file)
  for (let waited = 0; waited <= patience; waited += pause) {
    const turn = tryTurn(file)
    if (turn !== undefined) {
      if (isNew) await chmod(file, 0o600).catch(() => undefined)
      return turn
    }
    await wait(pause)
  }
  throw new MemoryError('busy', busy, { param: 'file' })
}

function tryTurn(file: string): Disposable | undefined {
  const database = new DatabaseSync(file, { timeout: 0 })
  try {
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    return { [Symbol.dispose]: () => database.close() }
  } catch (error) {
    database.close()
    const busy = 5
    if (error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === busy) return undefined
    throw error
  }
}
