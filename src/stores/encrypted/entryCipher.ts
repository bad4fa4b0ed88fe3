import {
  type DerivedEntry,
  type EncryptedEntry,
  isBlank,
  type Message,
  type NewMessage,
  type Source,
} from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key, type Scope } from '../../domain/key.ts'
import type { AuxiliaryRecord, StoredRecord, TableKey, TableRow } from '../../domain/ports.ts'
import type { PackedValue } from '../../domain/tableRows.ts'
import { type Cipher, nonceBytes, tagBytes } from './cipher.ts'

/** Fields of a message that are encrypted. */
type EncryptedFields = Partial<
  Pick<NewMessage, 'content' | 'name' | 'toolCalls' | 'toolCallId' | 'externalId' | 'packedPayload'>
>

/**
 * Encrypts content, name, calls, answers, external id and payload of a message into one ciphertext, stored as its
 * content. Blank content stays in the clear, because stores must tell messages with visible text from others; its
 * ciphertext is stored as the name. The external id is stored as a keyed digest.
 */
export function encryptMessage(message: NewMessage, key: Key, cipher: Cipher): NewMessage {
  const { content, name, toolCalls, toolCallId, externalId, packedPayload, ...rest } = message
  const hidden: EncryptedFields = {
    ...(isBlank(content) ? {} : { content }),
    ...omitUndefined({ name, toolCalls, toolCallId, externalId, packedPayload }),
  }
  const clear = externalId === undefined ? rest : { ...rest, externalId: cipher.digest(externalId) }
  if (Object.keys(hidden).length === 0) return message
  const blank = isBlank(content) ? content : null
  const ciphertext = cipher.encrypt(JSON.stringify(hidden), messageAssociatedData(key, clear, blank))
  return blank === null ? { ...clear, content: ciphertext } : { ...clear, content, name: ciphertext }
}

/** Restores the message that `encryptMessage` was given; `cipher` is undefined for a session without a key. */
export function decryptMessage(message: Message, key: Key, cipher: Cipher | undefined): Message {
  const { content, name, toolCalls: _, toolCallId: __, packedPayload: ___, ...clear } = message
  const blank = isBlank(content) ? content : null
  const ciphertext = blank === null ? content : name
  if (ciphertext === undefined) return { ...clear, content }
  const hidden = cipher?.decrypt(ciphertext, messageAssociatedData(key, clear, blank))
  if (hidden === undefined) throw corruptEntryError(`Message ${message.id}`, key)
  return { ...clear, content, ...(JSON.parse(hidden.toString()) as EncryptedFields) }
}

/** Encrypts a derived entry. Erasure needs the ids of its source messages, which stay in the clear; quotes do not. */
export function encryptDerived(entry: DerivedEntry, key: Key, cipher: Cipher): EncryptedEntry {
  const { id, at } = entry
  const sources = entry.sources.map(({ message, session }) => ({ message, ...omitUndefined({ session }) }))
  return {
    kind: 'encrypted',
    id,
    at,
    ciphertext: cipher.encrypt(JSON.stringify(entry), entryAssociatedData(key, { id, at, sources })),
    sources,
  }
}

export function decryptDerived(entry: DerivedEntry, key: Key, cipher: Cipher): DerivedEntry {
  const content =
    entry.kind === 'encrypted' ? cipher.decrypt(entry.ciphertext, entryAssociatedData(key, entry)) : undefined
  if (content === undefined) throw corruptEntryError(`Entry ${entry.id}`, key)
  return JSON.parse(content.toString()) as DerivedEntry
}

/** Encrypts the body of an auxiliary record. */
export const encryptRecord = (record: AuxiliaryRecord, key: Key, cipher: Cipher): AuxiliaryRecord => ({
  ...record,
  body: cipher.encrypt(record.body, recordAssociatedData(key, record)),
})

export function decryptRecord(record: StoredRecord, key: Key, cipher: Cipher): StoredRecord {
  const body = cipher.decrypt(record.body, recordAssociatedData(key, record))
  if (body === undefined) throw corruptEntryError(`Record ${record.id}`, key)
  return { ...record, body: body.toString() }
}

const recordAssociatedData = (key: Key, { id, at }: AuxiliaryRecord): string =>
  JSON.stringify(['record', key.scope, key.id, id, at])

/** Marks an encrypted value of a row; the ciphertext follows. */
const valueMark = Buffer.from('tke1')

/** Encrypts the value of a row. Its first byte in the ciphertext tells JSON (0) from bytes (1). */
export function encryptValue(value: PackedValue, scope: Scope, row: TableKey, cipher: Cipher): Uint8Array {
  const content =
    typeof value === 'string' ? Buffer.concat([Buffer.of(0), Buffer.from(value)]) : Buffer.concat([Buffer.of(1), value])
  return Buffer.concat([valueMark, cipher.encryptBytes(content, rowAssociatedData(scope, row))])
}

/** Restores the value that `encryptValue` was given; undefined if it was modified or belongs to another key. */
export function decryptValue(
  value: TableRow['value'],
  scope: Scope,
  row: TableKey,
  cipher: Cipher,
): PackedValue | undefined {
  if (!isEncryptedValue(value)) return undefined
  const content = cipher.decryptBytes(value.subarray(valueMark.length), rowAssociatedData(scope, row))
  if (content === undefined) return undefined
  return content[0] === 0 ? content.toString('utf8', 1) : content.subarray(1)
}

/** True for a value that may have been written by `encryptValue`. */
export const isEncryptedValue = (value: unknown): value is Uint8Array =>
  value instanceof Uint8Array &&
  value.length > valueMark.length + nonceBytes + tagBytes &&
  valueMark.equals(value.subarray(0, valueMark.length))

const rowAssociatedData = (scope: Scope, { namespace, key }: TableKey): string =>
  JSON.stringify(['row', scope, namespace, key])

/**
 * Binds a ciphertext to its session and to all fields in the clear beside it: it cannot be moved to another session,
 * given another role or other token counts. The position in the session is unknown before the write, so somebody with
 * write access to the disk can still remove messages, or swap two with equal role, time and counts, unnoticed. Each
 * message is authentic; completeness is not proved.
 */
function messageAssociatedData(
  key: Key,
  { role, at, tokens, lineTokens, tokenizer, weight, branch, externalId }: Omit<NewMessage, 'content'>,
  blank: string | null,
): string {
  const fields = ['message', key.scope, key.id, role, at, tokens, lineTokens, tokenizer, weight, blank]
  // Messages without a branch or an external id keep the associated data that they had before these existed.
  if (externalId !== undefined) return JSON.stringify([...fields, branch ?? null, externalId])
  return JSON.stringify(branch === undefined ? fields : [...fields, branch])
}

/** Binds a derived entry in the same way. Replacing it with an older version of itself goes unnoticed. */
function entryAssociatedData(
  key: Key,
  { id, at, sources }: { readonly id: string; readonly at: number; readonly sources: readonly Source[] },
): string {
  return JSON.stringify([
    'entry',
    key.scope,
    key.id,
    id,
    at,
    sources.map(({ message, session }) => [message, session ?? null]),
  ])
}

const corruptEntryError = (what: string, key: Key): MemoryError =>
  new MemoryError(
    'corrupt',
    `${what} of ${formatKey(key)} was modified, or copied from elsewhere, and cannot be decrypted. Restore it from a backup or forget it.`,
  )

const omitUndefined = <T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
