import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { formatMessageId, isBlank } from '../../domain/entry.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import { addGap, type Gap } from '../../domain/session.ts'
import { describeTableKey, parseTableKey } from '../../domain/tableRows.ts'
import { readEncryption } from './encryption.ts'
import { toMemoryError } from './errors.ts'
import { findPlaintextRows } from './plaintextRows.ts'
import { type Cells, derivedColumns, messageColumns, parseDerivedRow, parseMessageRow, qualifyColumns } from './rows.ts'
import { readSchemaVersion, tableFormat } from './schema.ts'
import { decodeRowName, parseRow, rowColumns } from './table/tableWriter.ts'

/** A defect of a database file. */
export type StoreFault = {
  readonly kind: 'structure' | 'message' | 'derived' | 'session' | 'row' | 'plaintext'
  /** Key of the session; the scope of a row. */
  readonly key?: string
  /** Id of the entry; namespace and key of a row as a JSON list. */
  readonly id?: string
  readonly reason: string
}

/** Contents and defects of a database file. */
export type StoreReport = {
  readonly path: string
  readonly format: number
  readonly bytes: number
  readonly sessions: number
  readonly messages: number
  readonly derived: number
  readonly vectors: number
  /** Rows of tables. */
  readonly rows: number
  /** Number of damaged entries in the quarantine table. */
  readonly quarantined: number
  readonly faults: readonly StoreFault[]
}

export type ProgressListener = (done: number, total: number) => void

/** Values of a session row, computed from the session's messages. */
export type SessionTotals = {
  readonly messageCount: number
  readonly lastSequence: number
  readonly totalWeight: number
  readonly lastUserSequence: number | null
  readonly gaps: readonly Gap[]
}

/** Rows checked between two turns of the event loop. */
const batchSize = 1_000
/** Rows of tables may have 16 MB each. */
const rowBatchSize = 10

/** Checks everything in a database without changing it. */
export async function examineDatabase(
  database: DatabaseSync,
  path: string,
  onProgress: ProgressListener = () => undefined,
): Promise<StoreReport> {
  const count = (table: string): number => {
    try {
      return Number(database.prepare(`SELECT count(*) AS count FROM ${table}`).get()?.count)
    } catch {
      return 0
    }
  }
  const total = count('message') + count('derived') + count('session') + count('table_row')
  const faults = [...checkStructure(database, path), ...checkEncryption(database)]
  let done = 0
  for (const check of [checkMessages, checkDerived, checkSessions, checkRows]) {
    for await (const batch of check(database, path)) {
      faults.push(...batch.faults)
      done += batch.rows
      onProgress(Math.min(done, total), total)
    }
  }
  return {
    path,
    format: readSchemaVersion(database),
    bytes: statSync(path).size,
    // Neither the memories of scopes nor internal sessions.
    sessions: count("session WHERE name != '' AND instr(name, ':') = 0"),
    messages: count('message'),
    derived: count('derived'),
    vectors: count('vector'),
    rows: count('table_row'),
    quarantined: count('quarantine') + count('row_quarantine'),
    faults,
  }
}

type CheckedBatch = { readonly rows: number; readonly faults: readonly StoreFault[] }

function* checkStructure(database: DatabaseSync, path: string): Iterable<StoreFault> {
  try {
    const lines = database.prepare('PRAGMA integrity_check(100)').all() as { integrity_check: string }[]
    for (const { integrity_check: why } of lines) if (why !== 'ok') yield { kind: 'structure', reason: why }
    for (const { table } of database.prepare('PRAGMA foreign_key_check').all() as { table: string }[])
      yield { kind: 'structure', reason: `a row of ${table} refers to a missing session` }
  } catch (error) {
    yield { kind: 'structure', reason: toMemoryError(error, path).message }
  }
}

/** Names content of an encrypted file that was written without its key. */
function* checkEncryption(database: DatabaseSync): Iterable<StoreFault> {
  try {
    if (!hasColumn(database, 'payload') || readEncryption(database) !== 'encrypted') return
    for (const { kind, key, id, isRepairable } of findPlaintextRows(database)) {
      const reason = isRepairable ? 'it was written without the key' : 'it was written without the key; forget it'
      yield { kind: 'plaintext', key: formatKey(key), ...(id !== '' && { id }), reason: `${kind}: ${reason}` }
    }
  } catch {
    // The other checks report that the file is unreadable.
  }
}

async function* checkMessages(database: DatabaseSync, path: string): AsyncIterable<CheckedBatch> {
  const columns = qualifyColumns('m', messageColumns)
  // A file that is only examined is not migrated.
  const known = ['payload', 'branch', 'external_id'].reduce(
    (all, column) => (hasColumn(database, column) ? all : all.replace(`m.${column}`, 'NULL')),
    columns,
  )
  const select = `SELECT m.place, s.scope, s.name, ${known} FROM message m JOIN session s ON s.id = m.session WHERE m.place > ? ORDER BY m.place LIMIT ${batchSize}`
  yield* checkTable(database, path, select, ([scope, name, ...row]) => {
    const key = keyName(scope, name)
    const message = parseMessageRow(row)
    if (message !== undefined) return undefined
    return {
      kind: 'message',
      key,
      id: formatMessageId(row[0] as number),
      reason: 'its checksum differs from what was written',
    }
  })
}

function hasColumn(database: DatabaseSync, column: string): boolean {
  try {
    const columns = database.prepare('PRAGMA table_info(message)').all() as { name: string }[]
    return columns.some(({ name }) => name === column)
  } catch {
    // The check of the table reports that it is unreadable.
    return true
  }
}

async function* checkDerived(database: DatabaseSync, path: string): AsyncIterable<CheckedBatch> {
  const select = `SELECT d.place, s.scope, s.name, ${qualifyColumns('d', derivedColumns)} FROM derived d JOIN session s ON s.id = d.session WHERE d.place > ? ORDER BY d.place LIMIT ${batchSize}`
  yield* checkTable(database, path, select, ([scope, name, ...row]) =>
    parseDerivedRow(row) === undefined
      ? {
          kind: 'derived',
          key: keyName(scope, name),
          id: String(row[0]),
          reason: 'its checksum differs from what was written',
        }
      : undefined,
  )
}

async function* checkSessions(database: DatabaseSync, path: string): AsyncIterable<CheckedBatch> {
  const select = `SELECT id, scope, name, id, messages, last, weight, asked, gaps FROM session WHERE id > ? ORDER BY id LIMIT ${batchSize}`
  yield* checkTable(database, path, select, ([scope, name, id, messages, last, weight, asked, gaps]) => {
    const totals = computeTotals(database, id as number, last as number, weight as number)
    const isCorrect =
      totals.messageCount === messages &&
      totals.lastSequence === last &&
      totals.totalWeight === weight &&
      totals.lastUserSequence === asked &&
      JSON.stringify(totals.gaps) === gaps
    return isCorrect
      ? undefined
      : { kind: 'session', key: keyName(scope, name), reason: 'its counters do not match its messages' }
  })
}

async function* checkRows(database: DatabaseSync, path: string): AsyncIterable<CheckedBatch> {
  if (readSchemaVersion(database) < tableFormat) return
  const select = `SELECT place, scope, ${rowColumns} FROM table_row WHERE place > ? ORDER BY place LIMIT ${rowBatchSize}`
  yield* checkTable(
    database,
    path,
    select,
    ([scope, ...row]) =>
      parseRow(row) === undefined
        ? {
            kind: 'row',
            key: String(scope),
            id: describeTableKey(parseTableKey(decodeRowName(row[0] as Uint8Array))),
            reason: 'its checksum differs from what was written',
          }
        : undefined,
    rowBatchSize,
  )
}

/**
 * Computes a session's totals from its messages. Sequence numbers and weights of messages removed at the end are known
 * only to the session row, so larger values of `last` and `weight` are kept.
 */
export function computeTotals(database: DatabaseSync, session: number, last: number, weight: number): SessionTotals {
  const select = database.prepare(
    'SELECT sequence, role, content, "offset" + weight FROM message WHERE session = ? ORDER BY sequence',
  )
  select.setReturnArrays(true)
  let totals: SessionTotals = { messageCount: 0, lastSequence: 0, totalWeight: 0, lastUserSequence: null, gaps: [] }
  for (const [sequence, role, content, sum] of select.iterate(session) as unknown as Iterable<
    [number, string, string, number]
  >) {
    const lastUserSequence = role === 'user' && !isBlank(content) ? sequence : totals.lastUserSequence
    totals = {
      messageCount: totals.messageCount + 1,
      lastSequence: sequence,
      totalWeight: sum,
      lastUserSequence,
      gaps: withMissingRange(totals.gaps, totals.lastSequence + 1, sequence - 1),
    }
  }
  const hasTrailingGap = Number.isSafeInteger(last) && last > totals.lastSequence
  return {
    ...totals,
    lastSequence: hasTrailingGap ? last : totals.lastSequence,
    totalWeight: Number.isSafeInteger(weight) && weight > totals.totalWeight ? weight : totals.totalWeight,
    gaps: hasTrailingGap ? withMissingRange(totals.gaps, totals.lastSequence + 1, last) : totals.gaps,
  }
}

function withMissingRange(gaps: readonly Gap[], first: number, last: number): readonly Gap[] {
  return first > last ? gaps : first === last ? addGap(gaps, first) : [...gaps, [first, last]]
}

/** Checks a table in batches; an unreadable part is reported and ends the check. */
async function* checkTable(
  database: DatabaseSync,
  path: string,
  select: string,
  faultIn: (row: Cells) => StoreFault | undefined,
  rowLimit = batchSize,
): AsyncIterable<CheckedBatch> {
  try {
    const statement = database.prepare(select)
    statement.setReturnArrays(true)
    for (let after = 0; ; ) {
      const rows = statement.all(after) as unknown as Cells[]
      yield { rows: rows.length, faults: rows.flatMap(([, ...row]) => faultIn(row) ?? []) }
      if (rows.length < rowLimit) return
      after = rows.at(-1)?.[0] as number
      await new Promise((resolve) => setImmediate(resolve))
    }
  } catch (error) {
    yield { rows: 0, faults: [{ kind: 'structure', reason: toMemoryError(error, path).message }] }
  }
}

const keyName = (scope: Cells[number] | undefined, id: Cells[number] | undefined): string =>
  formatKey({ scope, id } as Key)
