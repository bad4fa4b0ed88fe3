import { hash } from 'node:crypto'
import { MemoryError } from '../../domain/error.ts'
import type { Keyring, MasterKey } from '../../domain/ports.ts'
import { keyLengthBytes } from './cipher.ts'

const remedy = `A key is ${keyLengthBytes} random bytes, written as 64 hex digits or in base64; a passphrase is not a key. Make one with: openssl rand -hex 32`

/**
 * Parses keys separated by white space; the first is the current one. `source` names the origin in errors, which never
 * contain key text. Throws `bad-secret` for anything that is not a key.
 *
 * @example
 * parseKeyring('4f1c…64 hex digits…', 'env:THREADKEEP_KEY')
 */
export function parseKeyring(text: string, source: string): Keyring {
  const words = text.split(/\s+/).filter((word) => word !== '')
  const keys = words.map((word, index) => parseMasterKey(word, `Key ${index + 1} of ${source}`))
  const [current, ...others] = new Map(keys.map((key) => [key.id, key])).values()
  if (current === undefined) throw badKeyError(`${source} holds no key. ${remedy}`)
  return { current, others }
}

export const findMasterKey = ({ current, others }: Keyring, id: string): MasterKey | undefined =>
  [current, ...others].find((key) => key.id === id)

/** Copies the key bytes too, so that wiping one keyring leaves the other intact. */
export function copyKeyring({ current, others }: Keyring): Keyring {
  const copy = ({ id, bytes }: MasterKey): MasterKey => ({ id, bytes: Uint8Array.from(bytes) })
  return { current: copy(current), others: others.map(copy) }
}

/** Overwrites the keys with zeros. */
export function wipeKeyring({ current, others }: Keyring): void {
  for (const key of [current, ...others]) key.bytes.fill(0)
}

export const badKeyError = (message: string, cause?: unknown): MemoryError =>
  new MemoryError('bad-secret', message, { param: 'key', cause })

function parseMasterKey(word: string, label: string): MasterKey {
  const bytes = /^[0-9A-Fa-f]{64}$/.test(word)
    ? Buffer.from(word, 'hex')
    : /^[\w+/-]{43}=?$/.test(word)
      ? Buffer.from(word, 'base64')
      : undefined
  if (bytes?.length !== keyLengthBytes) throw badKeyError(`${label} is not a key. ${remedy}`)
  return { id: hash('sha256', bytes, 'buffer').subarray(0, 8).toString('hex'), bytes }
}
