import { createHmac, hash, hkdfSync } from 'node:crypto'
import { MemoryError } from '../domain/error.ts'
import { Cipher, keyLengthBytes } from '../stores/encrypted/cipher.ts'

/** Encodes row bodies and lookup keys for the graph tables. */
export type GraphCipher = {
  /** True if row bodies are stored as readable JSON, so that SQL can search them. */
  readonly isPlaintext: boolean
  /** Digest under which a name of a kind is looked up. */
  digest(kind: string, ...names: readonly string[]): string
  /** `associated` binds the ciphertext to its row: it decrypts only with the same value. */
  encrypt(text: string, associated: string): string
  /** Throws `corrupt` if the body was changed or belongs to another row. */
  decrypt(body: string, associated: string): string
  /** Overwrites the keys. */
  wipe(): void
}

/** Stores bodies unencrypted and lookup keys as plain SHA-256 digests. */
export const plaintextCipher: GraphCipher = {
  isPlaintext: true,
  digest: (...names) => hash('sha256', JSON.stringify(names), 'buffer').subarray(0, 16).toString('base64url'),
  encrypt: (text) => text,
  decrypt: (body) => body,
  wipe: () => undefined,
}

/**
 * Encrypts bodies with AES-256-GCM and derives lookup keys with HMAC, so that names cannot be guessed without the key.
 */
export function createCipher(secret: Uint8Array, workspace: string): GraphCipher {
  const deriveKey = (use: string): Uint8Array =>
    new Uint8Array(hkdfSync('sha256', secret, '', `threadkeep graph ${use} 1`, keyLengthBytes))
  const [contentKey, nameKey] = [new Cipher(deriveKey('content')), deriveKey('names')]
  return {
    isPlaintext: false,
    digest: (...names) =>
      createHmac('sha256', nameKey).update(JSON.stringify(names)).digest().subarray(0, 16).toString('base64url'),
    encrypt: (text, associated) => contentKey.encrypt(text, associated),
    decrypt: (body, associated) => {
      const text = contentKey.decrypt(body, associated)
      if (text !== undefined) return text.toString()
      throw new MemoryError(
        'corrupt',
        `A row of the graph of ${workspace} was modified or moved from another row. Restore a backup, or erase the workspace.`,
      )
    },
    wipe: () => {
      contentKey.wipe()
      nameKey.fill(0)
    },
  }
}
