import { hkdfSync } from 'node:crypto'
import type { DerivedEntry, EncryptedEntry, Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { Keyring, MasterKey } from '../../domain/ports.ts'
import { Cipher, keyLengthBytes } from './cipher.ts'
import { badKeyError, findMasterKey } from './keyring.ts'

/**
 * Id of the entry that holds the wrapped key of its session. The encrypted store hides it and rejects other entries
 * with this id.
 */
const keyEntryId = '#key'

export const isKeyEntry = (entry: Pick<DerivedEntry, 'id'>): boolean => entry.id === keyEntryId

/**
 * Wraps a session key with the scope's key, as an entry of the session. The ciphertext is prefixed with the master
 * key's id.
 */
export function wrapKey(sessionKey: Uint8Array, key: Key, at: Millis, master: MasterKey): EncryptedEntry {
  return {
    kind: 'encrypted',
    id: keyEntryId,
    at,
    ciphertext: `${master.id}.${deriveScopeCipher(master, key).encrypt(sessionKey, associatedData(key))}`,
    sources: [],
  }
}

export const isWrappedBy = ({ id }: MasterKey, { ciphertext }: EncryptedEntry): boolean =>
  ciphertext.startsWith(`${id}.`)

/** Unwraps a session key. Throws `bad-secret` if its master key is not on the keyring, `corrupt` if it was modified. */
export function unwrapKey({ ciphertext: wrapped }: EncryptedEntry, key: Key, keyring: Keyring): Uint8Array {
  const [, masterId, ciphertext] = /^([0-9a-f]{16})\.(.+)$/.exec(wrapped) ?? []
  if (masterId === undefined || ciphertext === undefined) throw corruptKeyError(key)
  const master = findMasterKey(keyring, masterId)
  if (master === undefined) throw missingKeyError(masterId, key, keyring)
  const sessionKey = deriveScopeCipher(master, key).decrypt(ciphertext, associatedData(key))
  if (sessionKey?.length !== keyLengthBytes) throw corruptKeyError(key)
  return sessionKey
}

/** Finds the key entry of a session that has been written to; throws `bad-store` for a session without encryption. */
export function findKeyEntry(derived: readonly DerivedEntry[], key: Key): EncryptedEntry {
  const entry = derived.find(isKeyEntry)
  if (entry?.kind === 'encrypted') return entry
  throw new MemoryError(
    'bad-store',
    `Session ${formatKey(key)} was written without encryption. Open the store without a key and export it, then import it into a new store with a key.`,
  )
}

/**
 * Derives the scope's key instead of storing it: concurrent first writers get the same key, no session outlives it, and
 * a scope key leaked under an old master key reveals nothing that is encrypted under a new one.
 */
const deriveScopeCipher = (master: MasterKey, { scope }: Key): Cipher =>
  new Cipher(new Uint8Array(hkdfSync('sha256', master.bytes, '', `threadkeep scope key 1 ${scope}`, keyLengthBytes)))

const associatedData = (key: Key): string => JSON.stringify(['session key', key.scope, key.id])

const corruptKeyError = (key: Key): MemoryError =>
  new MemoryError(
    'corrupt',
    `The key of session ${formatKey(key)} was modified, or copied from another session, so the session cannot be decrypted. Restore it from a backup or forget it.`,
  )

function missingKeyError(masterId: string, key: Key, { current, others }: Keyring): MemoryError {
  const keyIds = [current, ...others].map(({ id }) => id).join(', ')
  return badKeyError(
    `Session ${formatKey(key)} is encrypted under key ${masterId}, but the keys given are ${keyIds}. Add the missing key after the current one, separated by a space or a new line.`,
  )
}
