import { hash } from 'node:crypto'
import { MemoryError } from '../../domain/error.ts'
import { keyLength } from './box.ts'

/** A key that opens a store. Its id, the beginning of its SHA-256, stands in the clear beside whatever it wrapped. */
export type MasterKey = { readonly id: string; readonly bytes: Uint8Array }

/** `current` seals what is new; `others` still open what they sealed before. */
export type Keyring = { readonly current: MasterKey; readonly others: readonly MasterKey[] }

const remedy = `A key is ${keyLength} random bytes, written as 64 hex digits or in base64; a passphrase is not a key. Make one with: openssl rand -hex 32`

/**
 * Reads keys parted by white space: the first is the current one. `source` names them in errors, which never repeat them.
 *
 * @example
 * parseKeyring('4f1c…64 hex digits…', 'env:THREADKEEP_KEY')
 */
export function parseKeyring(text: string, source: string): Keyring {
  const words = text.split(/\s+/).filter((word) => word !== '')
  const keys = words.map((word, place) => masterKey(word, `Key ${place + 1} of ${source}`))
  const [current, ...others] = new Map(keys.map((key) => [key.id, key])).values()
  if (current === undefined) throw badKey(`${source} holds no key. ${remedy}`)
  return { current, others }
}

/** The key of this id, if it is on the ring. */
export const keyOf = ({ current, others }: Keyring, id: string): MasterKey | undefined =>
  [current, ...others].find((key) => key.id === id)

/** The same keys in memory of their own. */
export function copyOf({ current, others }: Keyring): Keyring {
  const copy = ({ id, bytes }: MasterKey): MasterKey => ({ id, bytes: Uint8Array.from(bytes) })
  return { current: copy(current), others: others.map(copy) }
}

/** Overwrites the keys. */
export function wipe({ current, others }: Keyring): void {
  for (const key of [current, ...others]) key.bytes.fill(0)
}

export const badKey = (message: string, cause?: unknown): MemoryError =>
  new MemoryError('bad-secret', message, { param: 'key', cause })

function masterKey(word: string, place: string): MasterKey {
  const bytes = /^[0-9A-Fa-f]{64}$/.test(word)
    ? Buffer.from(word, 'hex')
    : /^[\w+/-]{43}=?$/.test(word)
      ? Buffer.from(word, 'base64')
      : undefined
  if (bytes?.length !== keyLength) throw badKey(`${place} is not a key. ${remedy}`)
  return { id: hash('sha256', bytes, 'buffer').subarray(0, 8).toString('hex'), bytes }
}
