import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { MemoryError } from '../../domain/error.ts'

const algorithm = 'aes-256-gcm'
export const nonceBytes = 12
export const tagBytes = 16
export const keyLengthBytes = 32

/** Encrypts with AES-256-GCM; returns the encrypted content and the tag. A key must never see the same nonce twice. */
export function encryptAesGcm(key: Uint8Array, nonce: Uint8Array, content: Uint8Array, associatedData: string): Buffer {
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
  cipher.setAAD(Buffer.from(associatedData))
  return Buffer.concat([cipher.update(content), cipher.final(), cipher.getAuthTag()])
}

/** Decrypts the result of `encryptAesGcm`. Throws if it was modified, or key, nonce or associated data differ. */
export function decryptAesGcm(key: Uint8Array, nonce: Uint8Array, bytes: Uint8Array, associatedData: string): Buffer {
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(associatedData))
  decipher.setAuthTag(bytes.subarray(-tagBytes))
  return Buffer.concat([decipher.update(bytes.subarray(0, -tagBytes)), decipher.final()])
}

/**
 * AES-256-GCM with one key. Ciphertext layout: base64 of nonce (12 bytes), encrypted content, tag (16 bytes). Nonces
 * are random: one key may encrypt 2^32 texts before a nonce collision becomes likely enough to matter, far more than a
 * session holds.
 */
export class Cipher {
  private readonly key: Uint8Array
  private digestKey: Uint8Array | undefined
  private isWiped = false

  /** Takes ownership of the key: `wipe` overwrites it. */
  constructor(key: Uint8Array) {
    this.key = key
  }

  /** Encrypts content. The ciphertext decrypts only with the same associated data, which it does not contain. */
  encrypt(content: string | Uint8Array, associatedData: string): string {
    return this.encryptBytes(Buffer.from(content), associatedData).toString('base64')
  }

  /** Encrypts content to the bytes of a ciphertext. */
  encryptBytes(content: Uint8Array, associatedData: string): Buffer {
    const nonce = randomBytes(nonceBytes)
    return Buffer.concat([nonce, encryptAesGcm(this.requireKey(), nonce, content, associatedData)])
  }

  /** Decrypts a ciphertext; undefined if it was modified, or belongs to another key or other associated data. */
  decrypt(ciphertext: string, associatedData: string): Buffer | undefined {
    return this.decryptBytes(Buffer.from(ciphertext, 'base64'), associatedData)
  }

  decryptBytes(bytes: Uint8Array, associatedData: string): Buffer | undefined {
    const key = this.requireKey()
    try {
      return decryptAesGcm(key, bytes.subarray(0, nonceBytes), bytes.subarray(nonceBytes), associatedData)
    } catch {
      return undefined
    }
  }

  /**
   * Returns a keyed digest of a text, by which it can be found without being readable: 43 characters of base64url. The
   * digest has a key of its own.
   */
  digest(text: string): string {
    this.digestKey ??= new Uint8Array(hkdfSync('sha256', this.requireKey(), '', 'threadkeep digest 1', keyLengthBytes))
    return createHmac('sha256', this.digestKey).update(text).digest('base64url')
  }

  /** Overwrites the key. Later calls throw, so that nothing is ever encrypted with a zero key. */
  wipe(): void {
    this.isWiped = true
    this.key.fill(0)
    this.digestKey?.fill(0)
    this.digestKey = undefined
  }

  private requireKey(): Uint8Array {
    if (this.isWiped) throw storeClosedError()
    return this.key
  }
}

export const storeClosedError = (): MemoryError =>
  new MemoryError('closed', 'This encrypted store is closed and its keys are wiped. Open it again.')
