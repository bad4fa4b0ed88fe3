import type { DatabaseSync } from 'node:sqlite'
import { type Entry, formatMessageId, getEntryText, internalKinds } from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import type { SearchTarget, UnembeddedPage } from '../../domain/ports.ts'
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
    'SELECT v.data FROM session s JOIN vector v ON v.session = s.id WHERE s.scope = ? AND s.name = ? AND v.id = ? AND v.model = ?',
  newest: 'SELECT coalesce(max(place), 0) FROM vector',
  unembeddedMessages: `SELECT m.place, s.scope, s.name, s.epoch, m.sequence, m.content FROM message m JOIN session s ON s.id = m.session
    LEFT JOIN vector v ON v.session = m.session AND v.id = 'm' || m.sequence
    WHERE m.place > ? AND v.model IS NOT ? AND trim(m.content, ${whitespace}) <> '' ORDER BY m.place LIMIT ?`,
  unembeddedDerived: `SELECT d.place, s.scope, s.name, s.epoch, ${qualifyColumns('d', derivedColumns)} FROM derived d JOIN session s ON s.id = d.session
    LEFT JOIN vector v ON v.session = d.session AND v.id = d.id
    WHERE d.place > ? AND v.model IS NOT ? AND d.kind NOT IN (${silentKinds}) ORDER BY d.place LIMIT ?`,
  done: 'SELECT count(*) FROM vector WHERE model = ?',
  total: `SELECT (SELECT count(*) FROM message WHERE trim(content, ${whitespace}) <> '') + (SELECT count(*) FROM derived WHERE kind NOT IN (${silentKinds}))`,
} as const

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

  getVector({ scope, id: name }: Key, id: string, model: string): Float32Array | undefined {
    const row = this.sql.vectorOfEntry.get(scope, name, id, model) as unknown as [Uint8Array] | undefined
    return row === undefined ? undefined : toFloats(row[0])
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

  embedded(model: string): { readonly done: number; readonly total: number } {
    const [[done], [total]] = [this.sql.done.get(model), this.sql.total.get()] as unknown as [[number], [number]]
    return { done, total }
  }
}

const toFloats = (data: Uint8Array): Float32Array =>
  new Float32Array(data.buffer, data.byteOffset, data.byteLength >> 2)
