import { hkdfSync } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { MemoryError } from '../../domain/error.ts'
import type { Key } from '../../domain/key.ts'
import type { Keyring, MasterKey } from '../../domain/ports.ts'
import { Cipher, keyLengthBytes } from '../encrypted/cipher.ts'
import { type findKeyEntry, unwrapKey } from '../encrypted/keyEntry.ts'
import { badKeyError } from '../encrypted/keyring.ts'
import { findPlaintextRows } from './plaintextRows.ts'
import { type Cells, parseDerivedRow } from './rows.ts'
import { type MigrationTask, markedFormat, readSchemaVersion, tableFormat } from './schema.ts'

/** Encryption of a file: `unused` if it has no content and can still become either. */
type FileEncryption = 'unused' | 'plaintext' | 'encrypted'

/** Reads the marker of a file, or recognizes an encrypted file of an earlier format by the keys of its sessions. */
export function readEncryption(database: DatabaseSync): FileEncryption {
  const version = readSchemaVersion(database)
  if (version === 0) return 'unused'
  const isEncrypted =
    version >= markedFormat
      ? database.prepare("SELECT 1 FROM meta WHERE name = 'encrypted' AND value = 1").get() !== undefined
      : findAnyKeyEntry(database) !== undefined
  if (isEncrypted) return 'encrypted'
  const tables = version >= tableFormat ? ['session', 'table_row'] : ['session']
  const isUsed = tables.some((table) => database.prepare(`SELECT 1 FROM ${table} LIMIT 1`).get() !== undefined)
  return isUsed ? 'plaintext' : 'unused'
}

/**
 * Throws unless the keys fit the file: `bad-secret` for missing or wrong keys, `bad-store` for keys on a file without
 * encryption. Writes nothing.
 */
export function checkKeys(database: DatabaseSync, path: string, keyring: Keyring | undefined): void {
  const encryption = readEncryption(database)
  if (encryption === 'plaintext' && keyring !== undefined)
    throw new MemoryError(
      'bad-store',
      `${path} was written without encryption. Open it without a key and export it, then import it into a new store with a key.`,
    )
  if (encryption !== 'encrypted') return
  if (keyring === undefined)
    throw badKeyError(
      `${path} is encrypted; nothing was read or written. Give its key with --store-key, THREADKEEP_STORE_KEY or the option storeKey.`,
    )
  verifyKeyring(database, path, keyring)
}

function verifyKeyring(database: DatabaseSync, path: string, keyring: Keyring): void {
  const proofs = readProofs(database)
  if (proofs.size === 0) {
    // The file has no proofs yet; the key of a session tells whether the keyring fits.
    const sample = findAnyKeyEntry(database)
    if (sample !== undefined) verifySample(sample, keyring)
    return
  }
  const isProved = [keyring.current, ...keyring.others].some((master) => {
    const proof = proofs.get(master.id)
    return proof !== undefined && deriveProofCipher(master).decrypt(proof, proofText) !== undefined
  })
  if (isProved) return
  const given = [keyring.current, ...keyring.others].map(({ id }) => id).join(', ')
  throw badKeyError(
    `${path} is encrypted under key ${[...proofs.keys()].join(', ')}, but the keys given are ${given}; nothing was read or written. Give the right key, or add it after the current one.`,
  )
}

function verifySample({ entry, key }: KeyEntryRow, keyring: Keyring): void {
  try {
    unwrapKey(entry, key, keyring)
  } catch (error) {
    // The key is on the keyring; a damaged session must stay erasable and must not block the others.
    if (!(error instanceof MemoryError) || error.code !== 'corrupt') throw error
  }
}

const proofText = 'threadkeep key proof'
const deriveProofCipher = (master: MasterKey): Cipher =>
  new Cipher(new Uint8Array(hkdfSync('sha256', master.bytes, '', 'threadkeep key proof 1', keyLengthBytes)))

function readProofs(database: DatabaseSync): ReadonlyMap<string, string> {
  if (readSchemaVersion(database) < markedFormat) return new Map()
  const rows = database.prepare('SELECT id, proof FROM master_key ORDER BY id').all() as { id: string; proof: string }[]
  return new Map(rows.map(({ id, proof }) => [id, proof]))
}

type KeyEntryRow = { readonly key: Key; readonly entry: ReturnType<typeof findKeyEntry> }

function findAnyKeyEntry(database: DatabaseSync): KeyEntryRow | undefined {
  const select = database.prepare(
    `SELECT s.scope, s.name, d.id, d.kind, d.at, d.body, d.sum FROM session s JOIN derived d ON d.session = s.id AND d.id = '#key'
     WHERE d.kind = 'encrypted'`,
  )
  select.setReturnArrays(true)
  for (const [scope, id, ...row] of select.iterate() as unknown as Iterable<Cells>) {
    const entry = parseDerivedRow(row)
    if (entry?.kind === 'encrypted') return { key: { scope, id } as Key, entry }
  }
  return undefined
}

/**
 * Marks a file as encrypted under these keys.
 *
 * Throws `bad-store` if an earlier release wrote to the encrypted file without the key: content without a key is
 * encrypted only by an explicit repair, because it is not authentic.
 */
function claimKeys(database: DatabaseSync, path: string, keyring: Keyring): void {
  const proofs = readProofs(database)
  const plaintext = proofs.size === 0 ? [...findPlaintextRows(database)].filter(({ isRepairable }) => isRepairable) : []
  if (plaintext.length > 0)
    throw new MemoryError(
      'bad-store',
      `${path} is encrypted, but holds content that was written without its key (${plaintext.length} rows). Run threadkeep doctor --store-key SOURCE to list it, and with --repair to encrypt it.`,
    )
  database.exec("UPDATE meta SET value = 1 WHERE name = 'encrypted' AND value <> 1")
  const { current } = keyring
  if (!proofs.has(current.id))
    database
      .prepare('INSERT INTO master_key (id, proof) VALUES (?, ?)')
      .run(current.id, deriveProofCipher(current).encrypt(proofText, proofText))
}

/** Checks the keys again and marks the file, in the transaction that migrates it. */
export const claimTask = (path: string, keyring: Keyring | undefined): MigrationTask => ({
  isDue: (database) => keyring !== undefined && !readProofs(database).has(keyring.current.id),
  run: (database) => {
    checkKeys(database, path, keyring)
    if (keyring !== undefined) claimKeys(database, path, keyring)
  },
})

/** Deletes the proofs of all keys but one, after all sessions were wrapped with it. */
export const retireKeys = (database: DatabaseSync, current: string): void =>
  void database.prepare('DELETE FROM master_key WHERE id <> ?').run(current)
