import { randomBytes } from 'node:crypto'
import type { DerivedEntry, Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { type Key, parseKey } from '../domain/key.ts'
import type { Keyring } from '../domain/ports.ts'
import { noExpiry } from '../domain/session.ts'
import { keyLengthBytes } from '../stores/encrypted/cipher.ts'
import { findKeyEntry, isKeyEntry, unwrapKey, wrapKey } from '../stores/encrypted/keyEntry.ts'
import { copyKeyring, wipeKeyring } from '../stores/encrypted/keyring.ts'
import { graphKey } from '../stores/sqlite/graph.ts'
import { type Cells, derivedColumns, hashSessionKey, parseDerivedRow } from '../stores/sqlite/rows.ts'
import { Writer } from '../stores/sqlite/write.ts'
import { createCipher, type GraphCipher, plaintextCipher } from './cipher.ts'
import type { GraphDatabase } from './database.ts'

/** Row id of the session that owns the graph of a workspace (column `home`), and the cipher of its rows. */
export type GraphWorkspace = { readonly id: number; readonly cipher: GraphCipher }

const maxCachedWorkspaces = 10_000

/**
 * Finds and creates the graph workspaces of a database. Each is owned by an internal session, so that erasing a scope,
 * rotating the keys of a store and salvaging a damaged one include the graph without special handling.
 */
export class GraphWorkspaces {
  private readonly database: GraphDatabase
  private readonly keyring: Keyring | undefined
  private readonly cached = new Map<string, GraphWorkspace & { readonly epoch: number }>()

  /** With a keyring, rows are encrypted. */
  constructor(database: GraphDatabase, keyring?: Keyring) {
    this.database = database
    this.keyring = keyring && copyKeyring(keyring)
  }

  /** Returns undefined if the workspace was never written. Call it inside `read` or `write`. */
  find(name: string): GraphWorkspace | undefined {
    const key = parseWorkspace(name)
    const row = this.database.get<[number, number]>(
      'SELECT id, epoch FROM session WHERE scope = ? AND name = ?',
      key.scope,
      key.id,
    )
    if (row === undefined) return undefined
    const [id, epoch] = row
    const cached = this.cached.get(name)
    // A workspace that was erased and created again has a new key, and another epoch.
    if (cached?.id === id && cached.epoch === epoch) return cached
    const workspace = { id, epoch, cipher: this.loadCipher(id, key) }
    if (this.cached.size >= maxCachedWorkspaces) this.cached.clear()
    this.cached.set(name, workspace)
    return workspace
  }

  /** Call it inside `write`. */
  findOrCreate(name: string, at: Millis): GraphWorkspace {
    const existing = this.find(name)
    if (existing !== undefined) return existing
    const key = parseWorkspace(name)
    const [epoch] = this.database.get<[number]>('SELECT epoch FROM tombstone WHERE key = ?', hashSessionKey(key)) ?? [0]
    const put = this.keyring === undefined ? [] : [wrapKey(randomBytes(keyLengthBytes), key, at, this.keyring.current)]
    const writer = new Writer(this.database.database)
    writer.afterBegin()
    writer.commit({ key, at, epoch, append: [], put, drop: [], expiresAt: noExpiry })
    writer.beforeCommit()
    return this.find(name) as GraphWorkspace
  }

  close(): void {
    for (const { cipher } of this.cached.values()) cipher.wipe()
    this.cached.clear()
    if (this.keyring !== undefined) wipeKeyring(this.keyring)
  }

  private loadCipher(id: number, key: Key): GraphCipher {
    const cells = this.database.all<Cells>(`SELECT ${derivedColumns} FROM derived WHERE session = ?`, id)
    const derived = cells.map(parseDerivedRow).filter((entry): entry is DerivedEntry => entry !== undefined)
    if (this.keyring !== undefined)
      return createCipher(unwrapKey(findKeyEntry(derived, key), key, this.keyring), key.scope)
    if (!derived.some(isKeyEntry)) return plaintextCipher
    throw new MemoryError('bad-secret', `The graph of ${key.scope} is encrypted. Open it with the key of its store.`, {
      param: 'storeKey',
    })
  }
}

function parseWorkspace(name: string): Key {
  const { scope, id } = parseKey(name)
  if (id === '') return graphKey(scope)
  throw new MemoryError(
    'bad-key',
    `Workspace ${JSON.stringify(name)} names a session. Give the scope alone, for example ${scope}.`,
    { param: 'workspace' },
  )
}
