import type { DatabaseSync } from 'node:sqlite'
import { type Entry, formatMessageId, getEntryText, internalKinds } from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import type { SearchTarget, StoredVector, UnembeddedPage } from '../../domain/ports.ts'
import type { IndexedVector } from '../../search/vectorIndex.ts'
import { type PreparedStatements, prepareStatements } from './prepare.ts'
import { type Cells, derivedColumns, parseDerivedRow, qualifyColumns } from './rows.ts'

/** JavaScript's white space characters as an argument of SQLite's `trim`. */
const whitespace = `char(9, 10, 11, 12, 13, 32, 160, 5760, ${Array.from({ length: 11 }, (_, at) => 8192 + at).join(', ')}, 8232, 8233, 8239, 8287, 12288, 65279)`

const silentKinds = internalKinds.map((kind) => `'${kind}'`).join(', ')
const vectorColumns = 'v.place, s.scope, s.name, v.id, v.kind, v.at, v.data'
const statements = {
  vectorsInSession: `SELECT ${vectorColumns} FROM session s JOIN vector v ON v.session = s.id
    WHERE s.scope = ? AND s.name = ? AND v.place > ? AND v.model = ? ORDER BY v.place LIMIT ?`,
  // CROSS JOIN makes SQLite scan vectors in `place` order, which avoids a sort.
  vectorsInScope: `SELECT ${vectorColumns} FROM vector v CROSS JOIN session s ON s.id = v.session
    WHERE s.scope = ? AND v.place > ? AND v.model = ? ORDER BY v.place LIMIT ?`,
  vectorOfEntry:
    'SELECT v.model, v.data FROM session s JOIN vector v ON v.session = s.id WHERE s.scope = ? AND s.name = ? AND v.id = ?',
  newest: 'SELECT coalesce(max(place), 0) FROM vector',
  unembeddedMessages: `SELECT m.place, s.scope, s.name, s.epoch, m.sequence, m.content FROM message m JOIN session s ON s.id = m.session
    LEFT JOIN vector v ON v.session = m.session AND v.id = 'm' || m.sequence
    WHERE m.place > ? AND v.model IS NOT ? AND trim(m.content, ${whitespace}) <> '' ORDER BY m.place LIMIT ?`,
  unembeddedDerived: `SELECT d.place, s.scope, s.name, s.epoch, ${qualifyColumns('d', derivedColumns)} FROM derived d JOIN session s ON s.id = d.session
    LEFT JOIN vector v ON v.session = d.session AND v.id = d.id
    WHERE d.place > ? AND v.model IS NOT ? AND d.kind NOT IN (${silentKinds}) ORDER BY d.place LIMIT ?`,
  newestEntry:
    'SELECT max(coalesce((SELECT max(place) FROM message), 0), coalesce((SELECT max(place) FROM derived), 0))',
  vectorsIn: 'SELECT count(*) FROM vector WHERE place > ? AND place <= ? AND model = ?',
  messagesIn: `SELECT count(*) FROM message WHERE place > ? AND place <= ? AND trim(content, ${whitespace}) <> ''`,
  derivedIn: `SELECT count(*) FROM derived WHERE place > ? AND place <= ? AND kind NOT IN (${silentKinds})`,
} as const

/** Rows counted at once: a few milliseconds of work. */
const placesPerStep = 2_000

/** Reads the vectors of one database, and the entries without one. */
export class VectorReader {
  private readonly sql: PreparedStatements<typeof statements>

  constructor(database: DatabaseSync) {
    this.sql = prepareStatements(database, statements)
  }

  listVectors(
    { scope, id }: SearchTarget,
    model: string,
    after: number,
    limit: number,
  ): { readonly vectors: readonly IndexedVector[]; readonly next: number } {
    // Read before the rows: vectors stored meanwhile are returned by the next call.
    const [newest] = this.sql.newest.get() as unknown as [number]
    const rows =
      id === undefined
        ? this.sql.vectorsInScope.all(scope, after, model, limit)
        : this.sql.vectorsInSession.all(scope, id, after, model, limit)
    const vectors = (rows as unknown as [number, string, string, string, Entry['kind'], number, Uint8Array][]).map(
      ([, , name, entry, kind, at, data]) => {
        return { key: { scope, id: name } as Key, id: entry, kind, at, values: toFloats(data) }
      },
    )
    const last = (rows as unknown as Cells[]).at(-1)?.[0] as number | undefined
    // Skips the vectors of other scopes for the next call.
    return { vectors, next: rows.length === limit && last !== undefined ? last : Math.max(newest, last ?? after) }
  }

  readVector({ scope, id: name }: Key, id: string): StoredVector | undefined {
    const row = this.sql.vectorOfEntry.get(scope, name, id) as unknown as [string, Uint8Array] | undefined
    return row && { model: row[0], values: toFloats(row[1]) }
  }

  getVector(key: Key, id: string, model: string): Float32Array | undefined {
    const vector = this.readVector(key, id)
    return vector?.model === model ? vector.values : undefined
  }

  /** Lists messages first, then derived entries, in insertion order. Cursors are `m` or `d` and a row number. */
  unembedded(model: string, after: string, limit: number): UnembeddedPage {
    if (!after.startsWith('d')) {
      const rows = this.sql.unembeddedMessages.all(Number(after.slice(1)), model, limit) as unknown as [
        number,
        string,
        string,
        number,
        number,
        string,
      ][]
      const entries = rows.map(([, scope, id, epoch, sequence, text]) => ({
        key: { scope, id } as Key,
        id: formatMessageId(sequence),
        epoch,
        text,
      }))
      return { entries, next: rows.length < limit ? 'd0' : `m${rows.at(-1)?.[0]}` }
    }
    const rows = this.sql.unembeddedDerived.all(Number(after.slice(1)), model, limit) as unknown as Cells[]
    const entries = rows.flatMap(([, scope, name, epoch, ...row]) => {
      const entry = parseDerivedRow(row)
      return entry === undefined
        ? []
        : [{ key: { scope, id: name } as Key, id: entry.id, epoch: epoch as number, text: getEntryText(entry) }]
    })
    return { entries, next: rows.length < limit ? undefined : `d${rows.at(-1)?.[0]}` }
  }

  /** Counts vectors and entries in steps, after which other work may run: a count reads every text. */
  *count(model: string): Generator<void, { readonly done: number; readonly total: number }> {
    const [[lastVector], [lastEntry]] = [this.sql.newest.get(), this.sql.newestEntry.get()] as unknown as [
      [number],
      [number],
    ]
    const end = Math.max(lastVector, lastEntry)
    const [readVectors, ...readEntries] = [this.sql.vectorsIn, this.sql.messagesIn, this.sql.derivedIn]
    const firstOf = (row: unknown): number => (row as [number])[0]
    let [done, total] = [0, 0]
    for (let from = 0; from < end; from += placesPerStep) {
      if (from > 0) yield
      const to = from + placesPerStep
      done += firstOf(readVectors.get(from, to, model))
      for (const read of readEntries) total += firstOf(read.get(from, to))
    }
    return { done, total }
  }
}

const toFloats = (data: Uint8Array): Float32Array =>
  new Float32Array(data.buffer, data.byteOffset, data.byteLength >> 2)
