import { closeSync, openSync, readSync, statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { Millis } from '../../../domain/entry.ts'
import { MemoryError } from '../../../domain/error.ts'
import { connectWriter, syncFile } from '../connect.ts'
import { FileGuard, type GuardedFile } from '../fileGuard.ts'
import { PageWiper, type Slices } from './pageWiper.ts'

/** Time after which a pass gives up waiting for readers and for passes of other processes. */
const maxWaitMs: Millis = 30_000
/** Pause between two attempts, during which others can write. */
const retryMs: Millis = 50
/** Time for which one attempt keeps other writers waiting. */
const maxBlockingMs: Millis = 50

/**
 * Overwrites the copies of moved and deleted rows that SQLite leaves in the unused parts of pages. Afterwards nothing
 * that was erased before is in the database or its log. Decision 0027 gives the reasons why no copy survives or comes
 * back, and why the database is valid after a crash at any point. `return` ends a pass early.
 */
export function* wipeFile(file: GuardedFile, sliceMs: Millis = 25): Slices<void> {
  const { path, identity } = file
  const deadline = performance.now() + maxWaitMs
  const waitForOthers = (): Millis => {
    if (performance.now() < deadline) return retryMs
    throw new MemoryError(
      'busy',
      `The data is erased, but a reader of ${path} keeps copies of it in the file. Repeat the erasure in a moment.`,
    )
  }
  const pin = connectWriter(path, identity)
  try {
    new FileGuard(file).checkAll()
    pin.exec(`PRAGMA busy_timeout = ${maxBlockingMs}`)
    while (!pinEmptyLog(pin, path)) yield waitForOthers()
    yield* new PageWiper(file, pin).wipe(sliceMs)
    const changedPages = new Set<number>()
    while (!wipeChangedPages(file, pin, changedPages)) yield waitForOthers()
    yield 0
    while (!truncateLog(pin, path)) yield waitForOthers()
  } finally {
    pin.close()
  }
}

/** Empties the log and syncs that; false if a reader uses it. */
function truncateLog(database: DatabaseSync, path: string): boolean {
  const { busy } = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }
  // Without the sync, a power loss could bring back the old log.
  if (busy === 0) syncFile(`${path}-wal`)
  return busy === 0
}

/**
 * Begins a read transaction while the log is empty. Until it ends, no connection can move changes from the log to the
 * database or begin the log anew: the pages in the file stay as they are, and the log lists all changed pages. Returns
 * false if others use the log.
 */
function pinEmptyLog(pin: DatabaseSync, path: string): boolean {
  if (!truncateLog(pin, path)) return false
  beginRead(pin)
  if (statSync(`${path}-wal`).size === 0) return true
  pin.exec('ROLLBACK')
  return false
}

function beginRead(database: DatabaseSync): void {
  database.exec('BEGIN')
  database.prepare('SELECT 1 FROM sqlite_schema').get()
}

/**
 * Moves the log to the database and wipes the pages that were changed since the log was empty. Then makes every
 * connection drop its cached pages, from which copies could come back. Others cannot write meanwhile. Returns false if
 * readers of older states prevent it; `changedPages` then has the pages so far, and the log is pinned for the others:
 * once it was moved to the database completely, it can begin anew, but then not before the pin ends again.
 */
function wipeChangedPages(file: GuardedFile, pin: DatabaseSync, changedPages: Set<number>): boolean {
  const guard = new FileGuard(file)
  const writer = connectWriter(file.path, file.identity)
  try {
    writer.exec('BEGIN IMMEDIATE')
    guard.checkAll()
    addLoggedPages(`${file.path}-wal`, file.pageSize, changedPages)
    pin.exec('COMMIT')
    const { busy, log, checkpointed } = pin.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() as {
      readonly busy: number
      readonly log: number
      readonly checkpointed: number
    }
    if (busy !== 0 || log !== checkpointed) {
      // Before the write lock is released: a writer could begin the log anew.
      beginRead(pin)
      return false
    }
    // Without pauses, because of the write lock.
    new PageWiper(file, writer, changedPages).wipe(Number.POSITIVE_INFINITY).next()
    // A connection drops its cache when another one has committed a change. This one still reads the log, where pages
    // are not wiped, so it may only write the page of `meta`, which has never held content.
    writer.exec("UPDATE meta SET value = value + 1 WHERE name = 'stamp'; COMMIT")
    guard.checkAll()
    return true
  } finally {
    writer.close()
  }
}

const logHeaderBytes = 32
const frameHeaderBytes = 24

/** Adds the pages in a log, including those of transactions that were rolled back. */
function addLoggedPages(path: string, pageSize: number, pages: Set<number>): void {
  const number = Buffer.alloc(4)
  const log = openSync(path, 'r')
  try {
    for (let frame = logHeaderBytes; readSync(log, number, 0, 4, frame) === 4; frame += frameHeaderBytes + pageSize)
      pages.add(number.readUInt32BE())
  } finally {
    closeSync(log)
  }
}
