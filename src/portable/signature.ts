import { createHmac, timingSafeEqual } from 'node:crypto'
import { MemoryError } from '../domain/error.ts'

const minKeyBytes = 16

/** Throws `bad-option` for a key that is too short. */
export function checkSigningKey(key: Uint8Array, param: string): void {
  if (!(key instanceof Uint8Array) || key.length < minKeyBytes)
    throw new MemoryError('bad-option', `${param} must be at least ${minKeyBytes} random bytes.`, { param })
}

/** Signs the hash of the last line of a bundle, which covers all of it. */
export const signHash = (key: Uint8Array, hash: string): string =>
  createHmac('sha256', key).update(`threadkeep bundle ${hash}`).digest('hex')

export function verifySignature(key: Uint8Array, hash: string, signature: string): void {
  const expected = Buffer.from(signHash(key, hash))
  const given = Buffer.from(signature)
  if (given.length !== expected.length || !timingSafeEqual(given, expected))
    throw unsignedError('is signed with another key')
}

export const unsignedError = (problem: string): MemoryError =>
  new MemoryError(
    'bad-secret',
    `The bundle ${problem}; nothing was imported. Import a bundle that was exported with the key, or leave out the verification.`,
    { param: 'verifyKey' },
  )
