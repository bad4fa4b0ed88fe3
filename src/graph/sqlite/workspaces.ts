import type { DerivedEntry, Millis } from '../../domain/entry.ts'
import type { Keyring } from '../../domain/ports.ts'
import { noExpiry } from '../../domain/session.ts'
import { type Cells, derivedColumns, hashSessionKey, parseDerivedRow } from '../../stores/sqlite/rows.ts'
import { Writer } from '../../stores/sqlite/write.ts'
import type { GraphCipher } from '../cipher.ts'
import { parseWorkspace, WorkspaceCiphers } from '../workspace.ts'
import type { GraphDatabase } from './database.ts'

/** Row id of the session that owns the graph of a workspace (column `home`), and the cipher of its rows. */
export type GraphWorkspace = { readonly id: number; readonly cipher: GraphCipher }

/**
 * Finds and creates the graph workspaces of a database. Each is owned by an internal session, so that erasing a scope,
 * rotating the keys of a store and salvaging a damaged one include the graph without special handling.
 */
export class GraphWorkspaces {
  private readonly database: GraphDatabase
  private readonly ciphers: WorkspaceCiphers

  /** With a keyring, rows are encrypted. */
  constructor(database: GraphDatabase, keyring?: Keyring) {
    this.database = database
    this.ciphers = new WorkspaceCiphers(keyring)
  }

  /** Returns undefined if the workspace was never written. Call it inside `read` or `write`. */
  find(name: string): GraphWorkspace | undefined {
    const key = parseWorkspace(name)
    const sql = 'SELECT id FROM session WHERE scope = ? AND name = ?'
    const [id] = this.database.get<[number]>(sql, key.scope, key.id) ?? []
    if (id === undefined) return undefined
    const cells = this.database.all<Cells>(`SELECT ${derivedColumns} FROM derived WHERE session = ?`, id)
    const derived = cells.map(parseDerivedRow).filter((entry): entry is DerivedEntry => entry !== undefined)
    return { id, cipher: this.ciphers.open(key, derived) }
  }

  /** Call it inside `write`. */
  findOrCreate(name: string, at: Millis): GraphWorkspace {
    const existing = this.find(name)
    if (existing !== undefined) return existing
    const key = parseWorkspace(name)
    const [epoch] = this.database.get<[number]>('SELECT epoch FROM tombstone WHERE key = ?', hashSessionKey(key)) ?? [0]
    const put = this.ciphers.createKeyEntries(key, at)
    const writer = new Writer(this.database.database)
    writer.afterBegin()
    writer.commit({ key, at, epoch, append: [], put, drop: [], expiresAt: noExpiry })
    writer.beforeCommit()
    return this.find(name) as GraphWorkspace
  }

  close(): void {
    this.ciphers.wipe()
  }
}
