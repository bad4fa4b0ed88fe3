import { randomBytes } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { formatMessageId, isBlank, type NewMessage } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, graphKey, type Key } from '../../domain/key.ts'
import type { Keyring } from '../../domain/ports.ts'
import type { SessionChange } from '../../domain/session.ts'
import type { PackedValue } from '../../domain/tableRows.ts'
import { Cipher, keyLengthBytes, nonceBytes, tagBytes } from '../encrypted/cipher.ts'
import {
  decryptMessage,
  encryptDerived,
  encryptMessage,
  encryptRecord,
  isEncryptedValue,
} from '../encrypted/entryCipher.ts'
import { isKeyEntry, unwrapKey, wrapKey } from '../encrypted/keyEntry.ts'
import {
  type Cells,
  derivedColumns,
  messageColumns,
  parseDerivedRow,
  parseMessageRow,
  toDerivedRow,
  toMessageRow,
  updateMessage,
} from './rows.ts'

/** Content of an encrypted file that was written without its key. Graphs cannot be repaired. */
export type PlaintextRow = {
  readonly session: number
  readonly key: Key
  readonly kind: 'message' | 'derived' | 'session'
  readonly id: string
  readonly isRepairable: boolean
}

const minCiphertextChars = Math.ceil(((nonceBytes + tagBytes) * 4) / 3)
const looksEncrypted = (column: string): string =>
  `(length(${column}) >= ${minCiphertextChars} AND length(${column}) % 4 = 0 AND ${column} NOT GLOB '*[^A-Za-z0-9+/=]*')`

/** True for text that may be a ciphertext of the encrypted store. */
export const isCiphertext = (text: string): boolean =>
  text.length >= minCiphertextChars && text.length % 4 === 0 && !/[^A-Za-z0-9+/=]/.test(text)

const isDigest = /^[\w-]{43}$/

/** True for a message as the encrypted store writes it. */
function isEncryptedMessage({
  content,
  name,
  toolCalls,
  toolCallId,
  externalId,
  packedPayload,
}: Pick<NewMessage, 'content' | 'name' | 'toolCalls' | 'toolCallId' | 'externalId' | 'packedPayload'>): boolean {
  if (toolCalls !== undefined || toolCallId !== undefined || packedPayload !== undefined) return false
  if (externalId !== undefined && !isDigest.test(externalId)) return false
  return isBlank(content) ? name === undefined || isCiphertext(name) : name === undefined && isCiphertext(content)
}

/** Error for content that must not be written to an encrypted file. */
export const plaintextError = (): MemoryError =>
  new MemoryError(
    'bad-option',
    'This file is encrypted and accepts only encrypted content. Wrap it in encryptedStore.',
    {
      param: 'store',
    },
  )

/** Throws `bad-option` for a change of a session that the encrypted store did not write. */
export function requireEncrypted({ replace = [], append, put }: SessionChange): void {
  const messages = [...replace.map(({ message }) => message), ...append]
  if (!messages.every(isEncryptedMessage) || put.some(({ kind }) => kind !== 'encrypted')) throw plaintextError()
}

/** Throws `bad-option` for values of rows that the encrypted store did not write. */
export function requireEncryptedValues(values: readonly (PackedValue | null)[]): void {
  if (!values.every((value) => value === null || isEncryptedValue(value))) throw plaintextError()
}

/** Finds sessions without a key, and messages and entries without encryption. The schema must be the newest. */
export function* findPlaintextRows(database: DatabaseSync): Iterable<PlaintextRow> {
  const sessions = select(
    database,
    "SELECT s.id, s.scope, s.name FROM session s WHERE NOT EXISTS (SELECT 1 FROM derived d WHERE d.session = s.id AND d.id = '#key')",
  )
  for (const [id, scope, name] of sessions) yield toRow(id, scope, name, 'session', '')
  const messages = select(
    database,
    `SELECT s.id, s.scope, s.name, m.sequence, m.content, m.name, m.calls, m.answers, m.payload FROM message m JOIN session s ON s.id = m.session
     WHERE m.calls IS NOT NULL OR m.answers IS NOT NULL OR m.payload IS NOT NULL OR m.name IS NOT NULL OR NOT ${looksEncrypted('m.content')}`,
  )
  for (const [id, scope, sessionName, sequence, content, name, ...others] of messages) {
    const isEncrypted =
      others.every((value) => value === null) &&
      isEncryptedMessage({ content: content as string, ...(name === null ? {} : { name: name as string }) })
    if (!isEncrypted) yield toRow(id, scope, sessionName, 'message', formatMessageId(sequence as number))
  }
  const derived = select(
    database,
    "SELECT s.id, s.scope, s.name, d.id FROM derived d JOIN session s ON s.id = d.session WHERE d.kind <> 'encrypted'",
  )
  for (const [id, scope, name, entry] of derived) yield toRow(id, scope, name, 'derived', entry as string)
}

function toRow(
  session: Cells[number] | undefined,
  scope: Cells[number] | undefined,
  name: Cells[number] | undefined,
  kind: PlaintextRow['kind'],
  id: string,
): PlaintextRow {
  const key = { scope, id: name } as Key
  return { session: session as number, key, kind, id, isRepairable: name !== graphKey(key.scope).id }
}

function select(database: DatabaseSync, sql: string, ...values: readonly number[]): readonly Cells[] {
  const statement = database.prepare(sql)
  statement.setReturnArrays(true)
  return statement.all(...values) as unknown as Cells[]
}

/** Encrypts content that was written without the key, in the caller's transaction. Returns descriptions. */
export function encryptPlaintextRows(database: DatabaseSync, keyring: Keyring): readonly string[] {
  const rows = [...findPlaintextRows(database)].filter(({ isRepairable }) => isRepairable)
  const sessions = new Map(rows.map(({ session, key }) => [session, key]))
  for (const [session, key] of sessions) encryptSession(database, session, key, keyring)
  if (sessions.size > 0) database.exec('DELETE FROM snapshot; DELETE FROM vector')
  return [...sessions.values()].map(
    (key) => `content of ${formatKey(key)} that was written without the key was encrypted`,
  )
}

function encryptSession(database: DatabaseSync, session: number, key: Key, keyring: Keyring): void {
  const derived = select(database, `SELECT ${derivedColumns} FROM derived WHERE session = ?`, session).flatMap(
    (row) => parseDerivedRow(row) ?? [],
  )
  const put = database.prepare(
    `INSERT INTO derived (session, id, kind, at, body, sum) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (session, id) DO UPDATE SET kind = excluded.kind, at = excluded.at, body = excluded.body, sum = excluded.sum`,
  )
  const keyEntry = derived.find(isKeyEntry)
  const sessionKey = keyEntry?.kind === 'encrypted' ? unwrapKey(keyEntry, key, keyring) : randomBytes(keyLengthBytes)
  if (keyEntry?.kind !== 'encrypted') put.run(session, ...toDerivedRow(wrapKey(sessionKey, key, 0, keyring.current)))
  const cipher = new Cipher(sessionKey)
  for (const entry of derived)
    if (entry.kind !== 'encrypted') put.run(session, ...toDerivedRow(encryptDerived(entry, key, cipher)))
  encryptMessages(database, session, key, cipher)
  const updateRecord = database.prepare('UPDATE record SET body = ? WHERE session = ? AND number = ?')
  for (const [number, id, at, body] of select(
    database,
    'SELECT number, id, at, body FROM record WHERE session = ?',
    session,
  )) {
    if (isCiphertext(body as string)) continue
    const record = encryptRecord({ id: id as string, at: at as number, body: body as string }, key, cipher)
    updateRecord.run(record.body, session, number as number)
  }
  database
    .prepare('UPDATE session SET revision = revision + 1, removals = removals + 1, learnt = learnt + 1 WHERE id = ?')
    .run(session)
  cipher.wipe()
}

function encryptMessages(database: DatabaseSync, session: number, key: Key, cipher: Cipher): void {
  const update = database.prepare(updateMessage)
  for (const row of select(database, `SELECT ${messageColumns} FROM message WHERE session = ?`, session)) {
    const message = parseMessageRow(row)
    if (message === undefined || isAuthentic(() => decryptMessage(message, key, cipher))) continue
    const { kind: _, id: __, sequence, offset, ...content } = message
    update.run(...toMessageRow(encryptMessage(content, key, cipher), sequence, offset), session, sequence)
  }
}

function isAuthentic(decrypt: () => unknown): boolean {
  try {
    decrypt()
    return true
  } catch {
    return false
  }
}
