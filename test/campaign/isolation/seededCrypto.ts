import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import type { Random } from '../random.ts'

let current: Random | undefined

/** Takes random ids from this generator from now on, so that two worlds give the same ids to the same operations. */
export function useRandom(random: Random): void {
  current = random
}

const { randomBytes, randomUUID } = crypto

/** Larger requests fill supplies that all worlds of a process share. */
const maxSeededBytes = 256

const seededBytes = (length: number): Buffer =>
  current === undefined || length > maxSeededBytes
    ? randomBytes(length)
    : Buffer.from(Array.from({ length }, () => (current as Random).int(0, 255)))

const seededUuid = (): ReturnType<typeof randomUUID> =>
  current === undefined
    ? randomUUID()
    : (seededBytes(16)
        .toString('hex')
        .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-') as ReturnType<typeof randomUUID>)

Object.assign(crypto, {
  randomBytes: (length: number, callback?: (error: null, bytes: Buffer) => void) =>
    callback === undefined ? seededBytes(length) : callback(null, randomBytes(length)),
  randomUUID: seededUuid,
})
syncBuiltinESMExports()
globalThis.crypto.randomUUID = seededUuid
// Placeholders of secrets are digests under a random key.
globalThis.crypto.subtle.generateKey = (() =>
  globalThis.crypto.subtle.importKey('raw', new Uint8Array(32), { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
  ])) as unknown as typeof globalThis.crypto.subtle.generateKey
