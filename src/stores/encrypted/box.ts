import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { MemoryError } from '../../domain/error.ts'

const cipher = 'aes-256-gcm'
const nonceLength = 12
const tagLength = 16

export const keyLength = 32

/**
 * One key of AES-256-GCM. A box is base64 of nonce, ciphertext and tag. The nonce is random: a key may seal four
 * thousand million boxes before two of the same nonce become likely enough to matter, far more than a session holds.
 */
export class BoxKey {
  private readonly bytes: Uint8Array
  private wiped = false

  /** Takes the bytes over: `wipe` overwrites them. */
  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  /** Seals a content; the box opens only beside the same `bound` text, which is not part of it. */
  seal(content: string | Uint8Array, bound: string): string {
    const nonce = randomBytes(nonceLength)
    const sealing = createCipheriv(cipher, this.live(), nonce, { authTagLength: tagLength }).setAAD(Buffer.from(bound))
    return Buffer.concat([nonce, sealing.update(Buffer.from(content)), sealing.final(), sealing.getAuthTag()]).toString(
      'base64',
    )
  }

  /** What is in the box, or undefined when it was changed, sealed by another key or bound to something else. */
  open(box: string, bound: string): Buffer | undefined {
    const key = this.live()
    const bytes = Buffer.from(box, 'base64')
    if (bytes.length < nonceLength + tagLength) return undefined
    const opening = createDecipheriv(cipher, key, bytes.subarray(0, nonceLength), { authTagLength: tagLength }).setAAD(
      Buffer.from(bound),
    )
    opening.setAuthTag(bytes.subarray(-tagLength))
    try {
      return Buffer.concat([opening.update(bytes.subarray(nonceLength, -tagLength)), opening.final()])
    } catch {
      return undefined
    }
  }

  /** Overwrites the key. Whoever still holds it is refused: nothing is ever sealed under zeros. */
  wipe(): void {
    this.wiped = true
    this.bytes.fill(0)
  }

  private live(): Uint8Array {
    if (this.wiped) throw closed()
    return this.bytes
  }
}

export const closed = (): MemoryError =>
  new MemoryError('closed', 'This sealed store is closed and its keys are gone; open it again.')
