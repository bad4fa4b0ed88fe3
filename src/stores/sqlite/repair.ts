import { existsSync, renameSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { MemoryError } from '../../domain/error.ts'
import { parseStoredKey } from '../../domain/key.ts'
import { searchTerms } from '../../search/terms.ts'
import { connectReader, connectWriter, prepareFile } from './connect.ts'
import { examine, type Fault, type Findings, type Progress, tallyOf } from './examine.ts'
import { faultOf, isBusy, isCorrupt } from './faults.ts'
import { salvage } from './salvage.ts'
import { Writer } from './write.ts'

/** What was found, what was done about it, and what a second look says. */
export type Repaired = { readonly before: Findings; readonly done: readonly string[]; readonly after: Findings }

/** Looks at everything in a file, in use or not, and changes nothing. */
export async function examineFile(path: string, onProgress?: Progress): Promise<Findings> {
  const database = connectReader(path)
  try {
    return await examine(database, path, onProgress)
  } finally {
    database.close()
  }
}

/**
 * Repairs a file that nobody else uses: damaged entries are put aside, what is kept beside messages is made anew from
 * them, and if the structure itself is broken everything that can be read moves to a new file. The old one is kept.
 */
export async function repair(path: string, onProgress?: Progress): Promise<Repaired> {
  refuseCompany(path)
  let database = connectWriter(path)
  const done: string[] = []
  try {
    const before = await examine(database, path, onProgress)
    if (before.faults.some(({ what }) => what === 'structure') && !reindexed(database)) {
      database.close()
      done.push(moved(path))
      database = connectWriter(path)
    }
    const found = done.length === 0 ? before : await examine(database, path)
    done.push(...mended(database, found.faults))
    return { before, done, after: await examine(database, path) }
  } finally {
    if (database.isOpen) database.close()
  }
}

/** Leaving the log behind takes the file for oneself: with anybody else there it fails. */
function refuseCompany(path: string): void {
  const database = connectWriter(path)
  try {
    database.exec('PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE')
  } catch (error) {
    if (isBusy(error))
      throw new MemoryError('busy', `${path} is in use. Stop what uses it, then repair it.`, { cause: error })
    if (!isCorrupt(error)) throw faultOf(error, path)
  } finally {
    database.close()
  }
}

/** Indexes are made anew; true if that was all that was broken. */
function reindexed(database: DatabaseSync): boolean {
  try {
    database.exec('REINDEX')
    return (
      database.prepare('PRAGMA integrity_check(1)').get()?.integrity_check === 'ok' &&
      database.prepare('PRAGMA foreign_key_check').get() === undefined
    )
  } catch {
    return false
  }
}

function moved(path: string): string {
  let number = 1
  while (existsSync(`${path}.damaged-${number}`)) number++
  const old = `${path}.damaged-${number}`
  for (const end of ['', '-wal', '-shm']) if (existsSync(path + end)) renameSync(path + end, old + end)
  prepareFile(path)
  const { kept, lost } = salvage(old, path)
  return `${kept} rows were moved to a new file${lost === 0 ? '' : `, ${lost} stretches could not be read`}; the damaged file is kept as ${old}`
}

function mended(database: DatabaseSync, faults: readonly Fault[]): string[] {
  const writer = new Writer(database)
  database.exec('BEGIN IMMEDIATE')
  try {
    writer.begun()
    const done = [...aside(writer, faults)]
    writer.ending()
    done.push(...recounted(database, faults), ...reworded(database, faults))
    database.exec('DELETE FROM snapshot')
    database.exec('COMMIT')
    return done
  } catch (error) {
    database.exec('ROLLBACK')
    throw error
  }
}

function* aside(writer: Writer, faults: readonly Fault[]): Iterable<string> {
  for (const { what, key, id, why } of faults) {
    if ((what !== 'message' && what !== 'derived') || key === undefined || id === undefined) continue
    writer.quarantine(parseStoredKey(key), [id], why)
    yield `${id} of ${key} was put aside`
  }
}

/** Sessions whose own row is wrong, and those that have just lost a message, are counted again. */
function* recounted(database: DatabaseSync, faults: readonly Fault[]): Iterable<string> {
  const update = database.prepare(
    'UPDATE session SET messages = ?, last = ?, weight = ?, asked = ?, gaps = ?, revision = revision + 1, removals = removals + 1 WHERE id = ?',
  )
  for (const { what, key } of faults) {
    if (what !== 'session' || key === undefined) continue
    const { scope, id: name } = parseStoredKey(key)
    const row = database
      .prepare('SELECT id, last, weight FROM session WHERE scope = ? AND name = ?')
      .get(scope, name) as {
      id: number
      last: number
      weight: number
    }
    const { messages, last, weight, asked, gaps } = tallyOf(database, row.id, row.last, row.weight)
    update.run(messages, last, weight, asked, JSON.stringify(gaps), row.id)
    yield `${key} was counted again from its messages`
  }
}

function* reworded(database: DatabaseSync, faults: readonly Fault[]): Iterable<string> {
  const wrong = faults.filter(({ what }) => what === 'words')
  const select = database.prepare(
    'SELECT m.place, m.content FROM message m JOIN session s ON s.id = m.session WHERE s.scope = ? AND s.name = ? AND m.sequence = ?',
  )
  const update = database.prepare('UPDATE message SET terms = ? WHERE place = ?')
  for (const { key = '', id = '' } of wrong) {
    const { scope, id: name } = parseStoredKey(key)
    const row = select.get(scope, name, Number(id.slice(1))) as { place: number; content: string } | undefined
    if (row !== undefined) update.run(searchTerms(row.content).join('\n'), row.place)
  }
  if (wrong.length > 0) yield `${wrong.length} messages can be found by their words again`
}
