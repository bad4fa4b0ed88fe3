import type { DatabaseSync } from 'node:sqlite'
import {
  type DerivedEntry,
  type Entry,
  formatMessageId,
  type Message,
  type Millis,
  parseMessageId,
  type Role,
  type Tokens,
} from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import type { IndexChanges, PageOptions, SearchTarget, SessionFilter, StoredRecord } from '../../domain/ports.ts'
import type { SessionListItem } from '../../domain/session.ts'
import { indexName } from '../../search/indexName.ts'
import type { SearchableMessage } from '../../search/scopeIndex.ts'
import { type PreparedStatements, prepareStatements } from './prepare.ts'
import {
  type Cells,
  derivedColumns,
  hashName,
  hashSessionKey,
  listedColumns,
  messageColumns,
  parseDerivedRow,
  parseListedRow,
  parseMessageRow,
  parseSessionRow,
  qualifyColumns,
  type SessionRow,
  sessionColumns,
} from './rows.ts'

/** Bytes of a message; SQLite knows them without reading the texts. */
const messageBytes = 'octet_length(content) + ifnull(octet_length(calls), 0) + ifnull(octet_length(payload), 0)'

const statements = {
  version: 'PRAGMA data_version',
  session: `SELECT ${sessionColumns} FROM session WHERE scope = ? AND name = ?`,
  epoch: 'SELECT epoch FROM tombstone WHERE key = ?',
  removals: 'SELECT count FROM removal WHERE scope = ?',
  stamp: "SELECT value FROM meta WHERE name = 'stamp'",
  forward: `SELECT ${messageColumns} FROM message WHERE session = ? AND sequence > ? AND sequence < ? ORDER BY sequence LIMIT ?`,
  backward: `SELECT ${messageColumns} FROM message WHERE session = ? AND sequence > ? AND sequence < ? ORDER BY sequence DESC LIMIT ?`,
  forwardSizes: `SELECT ${messageBytes} FROM message WHERE session = ? AND sequence > ? AND sequence < ? ORDER BY sequence LIMIT ?`,
  backwardSizes: `SELECT ${messageBytes} FROM message WHERE session = ? AND sequence > ? AND sequence < ? ORDER BY sequence DESC LIMIT ?`,
  externalId: `SELECT ${messageColumns} FROM message WHERE session = ? AND external_id = ?`,
  derived: `SELECT ${derivedColumns} FROM derived WHERE session = ? ORDER BY place`,
  derivedSizes: 'SELECT place, octet_length(body) FROM derived WHERE session = ? ORDER BY place',
  derivedAt: `SELECT ${derivedColumns} FROM derived WHERE place IN (SELECT value FROM json_each(?)) ORDER BY place`,
  oneMessage: `SELECT ${qualifyColumns('m', messageColumns)} FROM session s JOIN message m ON m.session = s.id WHERE s.scope = ? AND s.name = ? AND m.sequence = ?`,
  oneDerived: `SELECT ${qualifyColumns('d', derivedColumns)} FROM session s JOIN derived d ON d.session = s.id WHERE s.scope = ? AND s.name = ? AND d.id = ?`,
  all: `SELECT ${listedColumns} FROM session WHERE (scope, name) > (?, ?) ORDER BY scope, name LIMIT ?`,
  ofScope: `SELECT ${listedColumns} FROM session WHERE scope = ? AND (scope, name) > (?, ?) ORDER BY scope, name LIMIT ?`,
  expired: `SELECT ${listedColumns} FROM session WHERE expires <= ? AND (?2 IS NULL OR scope = ?2) AND (scope, name) > (?, ?) ORDER BY scope, name LIMIT ?`,
  changed: 'SELECT scope, name FROM session WHERE scope = ? AND stamp > ? ORDER BY stamp, name',
  records:
    'SELECT r.number, r.id, r.at, r.body FROM session s JOIN record r ON r.session = s.id WHERE s.scope = ? AND s.name = ? AND r.number < ? ORDER BY r.number DESC LIMIT ?',
  snapshot: 'SELECT data FROM snapshot WHERE name = ?',
  indexed: `SELECT sequence, at, role, name, line_tokens, content FROM message WHERE session = ? AND sequence > ? ORDER BY sequence LIMIT ?`,
} as const

/** Called for each entry whose checksum does not match. */
export type DamageListener = (key: Key, id: string) => void

/** Reads one database. Each method sees one consistent state; use `snapshotRead` for several calls. */
export class Reader {
  private readonly database: DatabaseSync
  private readonly sql: PreparedStatements<typeof statements>
  private readonly onDamage: DamageListener

  constructor(database: DatabaseSync, onDamage: DamageListener) {
    this.database = database
    this.sql = prepareStatements(database, statements)
    this.onDamage = onDamage
  }

  /** SQLite's data version: changes whenever another connection has written. */
  version(): number {
    return cells(this.sql.version.get())[0] as number
  }

  /** Runs several reads in one transaction, so that they see the same state. */
  snapshotRead<T>(read: () => T): T {
    if (this.database.isTransaction) return read()
    this.database.exec('BEGIN')
    try {
      return read()
    } finally {
      this.database.exec('COMMIT')
    }
  }

  session(key: Key): SessionRow | undefined {
    const row = this.sql.session.get(key.scope, key.id)
    return row === undefined ? undefined : parseSessionRow(cells(row))
  }

  /** Epoch of a session that does not exist; 0 if it was never erased. */
  tombstoneEpoch(key: Key): number {
    const row = this.sql.epoch.get(hashSessionKey(key))
    return row === undefined ? 0 : (cells(row)[0] as number)
  }

  messages(
    key: Key,
    session: number,
    { after = 0, before = Number.MAX_SAFE_INTEGER, limit, newest = false }: PageOptions,
  ): Message[] {
    const rows = (newest ? this.sql.backward : this.sql.forward).all(
      session,
      after,
      clampInteger(before),
      clampInteger(limit),
    ) as unknown as Cells[]
    const messages = this.parseMessages(key, rows)
    return newest ? messages.reverse() : messages
  }

  /** Returns the bytes of the messages that `messages` would read. */
  messageSizes(
    session: number,
    { after = 0, before = Number.MAX_SAFE_INTEGER, limit, newest = false }: PageOptions,
  ): readonly number[] {
    const rows = (newest ? this.sql.backwardSizes : this.sql.forwardSizes).all(
      session,
      after,
      clampInteger(before),
      clampInteger(limit),
    ) as unknown as [number][]
    return rows.map(([bytes]) => bytes)
  }

  findMessages(key: Key, externalIds: readonly string[]): readonly Message[] {
    const session = this.session(key)
    if (session === undefined) return []
    const rows = [...new Set(externalIds)].flatMap(
      (id) => this.sql.externalId.all(session.id, id) as unknown as Cells[],
    )
    return this.parseMessages(key, rows).sort((a, b) => a.sequence - b.sequence)
  }

  private parseMessages(key: Key, rows: readonly Cells[]): Message[] {
    return rows.flatMap((row) => {
      const message = parseMessageRow(row)
      if (message === undefined) this.onDamage(key, formatMessageId(row[0] as number))
      return message ?? []
    })
  }

  derivedOf(key: Key): DerivedEntry[] {
    const session = this.session(key)
    return session === undefined || session.derivedVersion === 0 ? [] : this.derived(key, session.id)
  }

  derived(key: Key, session: number): DerivedEntry[] {
    return this.parseDerivedRows(key, this.sql.derived.all(session) as unknown as Cells[])
  }

  /** Places and bytes of the derived entries of a session, in order. */
  derivedSizes(session: number): readonly (readonly [place: number, bytes: number])[] {
    return this.sql.derivedSizes.all(session) as unknown as [number, number][]
  }

  /** Rows of derived entries, for `parseDerivedRows`. */
  derivedRows(places: readonly number[]): readonly Cells[] {
    return this.sql.derivedAt.all(JSON.stringify(places)) as unknown as Cells[]
  }

  parseDerivedRows(key: Key, rows: readonly Cells[]): DerivedEntry[] {
    return rows.flatMap((row) => this.parseDerived(key, row) ?? [])
  }

  entry(key: Key, id: string): Entry | undefined {
    const sequence = parseMessageId(id)
    const row =
      sequence === undefined
        ? this.sql.oneDerived.get(key.scope, key.id, id)
        : this.sql.oneMessage.get(key.scope, key.id, sequence)
    if (row === undefined) return undefined
    const entry = sequence === undefined ? parseDerivedRow(cells(row)) : parseMessageRow(cells(row))
    if (entry === undefined) this.onDamage(key, id)
    return entry
  }

  list({ scope, expiredBy, after = '', limit }: Omit<SessionFilter, 'metadata'>): readonly SessionListItem[] {
    const [afterScope = '', afterName = ''] = after.split(/:(.*)/s)
    const maxRows = clampInteger(limit)
    const rows =
      expiredBy !== undefined
        ? this.sql.expired.all(expiredBy, scope ?? null, afterScope, afterName, maxRows)
        : scope === undefined
          ? this.sql.all.all(afterScope, afterName, maxRows)
          : this.sql.ofScope.all(scope, afterScope, afterName, maxRows)
    return (rows as unknown as Cells[]).map(parseListedRow)
  }

  changes({ scope, id }: SearchTarget, since: number): IndexChanges {
    return this.snapshotRead(() => {
      const stamp = cells(this.sql.stamp.get())[0] as number
      if (id === undefined) {
        const removals = this.sql.removals.get(hashName(scope))
        const sessions = (this.sql.changed.all(scope, since) as unknown as [string, string][]).map(
          ([, name]) => ({ scope, id: name }) as Key,
        )
        return { stamp, lineage: `${removals === undefined ? 0 : cells(removals)[0]}`, sessions }
      }
      const key = { scope, id } as Key
      const session = this.session(key)
      const lineage = `${session?.epoch ?? this.tombstoneEpoch(key)}.${session?.removals ?? 0}`
      return { stamp, lineage, sessions: session !== undefined && session.stamp > since ? [key] : [] }
    })
  }

  snapshot(where: SearchTarget): Uint8Array | undefined {
    const row = this.sql.snapshot.get(hashName(indexName(where)))
    return row === undefined ? undefined : (cells(row)[0] as Uint8Array)
  }

  records(key: Key, before: number, limit: number): readonly StoredRecord[] {
    const rows = this.sql.records.all(key.scope, key.id, clampInteger(before), clampInteger(limit)) as unknown as [
      number,
      string,
      number,
      string,
    ][]
    return rows.map(([number, id, at, body]) => ({ number, id, at, body }))
  }

  indexed(key: Key, after: number, limit: number): readonly SearchableMessage[] {
    const session = this.session(key)
    if (session === undefined) return []
    const rows = this.sql.indexed.all(session.id, after, limit) as unknown as IndexedCells[]
    return rows.map(([sequence, at, role, name, lineTokens, content]) => ({
      sequence,
      at,
      role,
      lineTokens,
      content,
      ...(name !== null && { name }),
    }))
  }

  private parseDerived(key: Key, row: Cells): DerivedEntry | undefined {
    const entry = parseDerivedRow(row)
    if (entry === undefined) this.onDamage(key, row[0] as string)
    return entry
  }
}

type IndexedCells = readonly [
  sequence: number,
  at: Millis,
  role: Role,
  name: string | null,
  lineTokens: Tokens,
  content: string,
]

const cells = (row: unknown): Cells => row as Cells

/** Keeps infinite limits within SQLite's integers. */
const clampInteger = (value: number): number => Math.min(value, Number.MAX_SAFE_INTEGER)
