import { hash, randomBytes, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import type { BundleEncryption } from '../domain/bundle.ts'
import { type Check, fields, MemoryError, oneOf, rejectField } from '../domain/error.ts'
import { decryptAesGcm, encryptAesGcm, keyLengthBytes, nonceBytes, tagBytes } from '../stores/encrypted/cipher.ts'
import { chainStart, createChainLine } from './chain.ts'
import type { ByteSource } from './lines.ts'
import { bundleHeader, checkAtLine } from './records.ts'

/**
 * Encryption parameters in the header of a bundle. `check` tells a wrong passphrase from damage; it reveals no more
 * than the first encrypted part does.
 */
type CipherHeader = {
  readonly name: 'aes-256-gcm'
  readonly kdf: KdfParameters
  readonly salt: string
  readonly nonce: string
  readonly check: string
}
type KdfParameters = { readonly name: 'scrypt'; readonly n: number; readonly r: number; readonly p: number }
type Part = { readonly bytes: Uint8Array; readonly index: number; readonly isLast: boolean }

const partBytes = 65_536
const checkBytes = 32
const saltBytes = 16
const noncePrefixBytes = 7
const defaultScryptCost = 2 ** 17
/** Corresponds to 1 GB of memory; a bundle cannot demand more. */
const maxScryptCost = 2 ** 20

/**
 * Encrypts a bundle with AES-256-GCM in parts of 64 KiB. Each nonce contains the part's index and a flag for the last
 * part, so that changed, moved and missing parts are detected. The first line is plain text with the parameters.
 */
export async function* encryptBundle(
  plaintext: ByteSource,
  { passphrase, cost = defaultScryptCost, randomBytes: random = randomBytes }: BundleEncryption,
): AsyncGenerator<Uint8Array> {
  if (!isScryptCost(cost))
    throw new MemoryError('bad-option', `cost is ${cost}; it must be a power of two from 2 to ${maxScryptCost}.`, {
      param: 'cost',
    })
  const salt = Buffer.from(random(saltBytes))
  const noncePrefix = Buffer.from(random(noncePrefixBytes))
  const kdf: KdfParameters = { name: 'scrypt', n: cost, r: 8, p: 1 }
  const { key, check } = await deriveKey(passphrase, salt, kdf)
  const cipher: CipherHeader = { name: 'aes-256-gcm', kdf, salt: toHex(salt), nonce: toHex(noncePrefix), check }
  const header = createChainLine(chainStart, { ...bundleHeader, cipher })
  yield Buffer.from(`${header.line}\n`)
  for await (const part of splitParts(plaintext, partBytes)) {
    yield encryptAesGcm(key, buildNonce(noncePrefix, part), part.bytes, header.hash)
  }
}

/**
 * Decrypts the bytes after the first line of a bundle.
 *
 * @throws MemoryError `bad-secret` for a missing or wrong passphrase, `bad-bundle` for damage.
 */
export async function* decryptBundle(
  ciphertext: ByteSource,
  header: { readonly cipher: unknown; readonly hash: string },
  passphrase: string | undefined,
): AsyncGenerator<Uint8Array> {
  const { kdf, salt, nonce, check } = parseCipherHeader(header.cipher)
  if (passphrase === undefined)
    throw new MemoryError('bad-secret', 'The bundle is encrypted; give the passphrase it was exported with.', {
      param: 'passphrase',
    })
  const derived = await deriveKey(passphrase, Buffer.from(salt, 'hex'), kdf)
  if (derived.check !== check)
    throw new MemoryError(
      'bad-secret',
      'The passphrase is not the one this bundle was exported with. Nothing was read.',
      { param: 'passphrase' },
    )
  const noncePrefix = Buffer.from(nonce, 'hex')
  for await (const part of splitParts(ciphertext, partBytes + tagBytes)) {
    yield decryptPart(part, derived.key, buildNonce(noncePrefix, part), header.hash)
  }
}

function decryptPart({ bytes, index }: Part, key: Buffer, nonce: Buffer, headerHash: string): Buffer {
  try {
    return decryptAesGcm(key, nonce, bytes, headerHash)
  } catch (cause) {
    throw new MemoryError(
      'bad-bundle',
      `Part ${index + 1} of the encrypted bundle was changed, moved or cut off. Fetch the bundle again, or export it again.`,
      { cause, param: `part ${index + 1}` },
    )
  }
}

/** Splits bytes into parts of one size; the last part always exists and may be shorter or empty. */
async function* splitParts(bytes: ByteSource, size: number): AsyncGenerator<Part> {
  let pending: Uint8Array[] = []
  let length = 0
  let index = 0
  for await (const chunk of bytes) {
    pending.push(chunk)
    length += chunk.length
    if (length <= size) continue
    const all = Buffer.concat(pending)
    let start = 0
    // A full part is held back until more bytes arrive, because it may be the last one.
    for (; length > size; length -= size, start += size)
      yield { bytes: all.subarray(start, start + size), index: index++, isLast: false }
    pending = [all.subarray(start)]
  }
  yield { bytes: Buffer.concat(pending), index, isLast: true }
}

/** Builds the 12-byte nonce: 7 bytes random prefix, 4 bytes index (big endian), 1 byte flag for the last part. */
function buildNonce(prefix: Buffer, { index, isLast }: Part): Buffer {
  const nonce = Buffer.alloc(nonceBytes)
  prefix.copy(nonce)
  nonce.writeUInt32BE(index, noncePrefixBytes)
  nonce.writeUInt8(isLast ? 1 : 0, nonceBytes - 1)
  return nonce
}

const scryptAsync = promisify<string, Buffer, number, { N: number; r: number; p: number; maxmem: number }, Buffer>(
  scrypt,
)

async function deriveKey(
  passphrase: string,
  salt: Buffer,
  { n, r, p }: KdfParameters,
): Promise<{ readonly key: Buffer; readonly check: string }> {
  if (passphrase === '')
    throw new MemoryError('bad-secret', 'The passphrase is empty; give one that is hard to guess.', {
      param: 'passphrase',
    })
  // Normalized, because keyboards compose letters such as é differently.
  const bytes = await scryptAsync(passphrase.normalize('NFC'), salt, keyLengthBytes + checkBytes, {
    N: n,
    r,
    p,
    maxmem: 128 * r * (n + p + 2),
  })
  return { key: bytes.subarray(0, keyLengthBytes), check: hash('sha256', bytes.subarray(keyLengthBytes)) }
}

const toHex = (bytes: Buffer): string => bytes.toString('hex')
const isScryptCost = (cost: unknown): boolean =>
  typeof cost === 'number' && cost >= 2 && cost <= maxScryptCost && Number.isInteger(Math.log2(cost))

const checkScryptCost: Check = (value, at) => {
  if (!isScryptCost(value)) rejectField(at, value, `a power of two from 2 to ${maxScryptCost}`)
}
const exactly =
  (expected: number): Check =>
  (value, at) => {
    if (value !== expected) rejectField(at, value, `${expected}`)
  }
const hexBytes =
  (length: number): Check =>
  (value, at) => {
    if (typeof value !== 'string' || !/^[0-9a-f]*$/.test(value) || value.length !== 2 * length)
      rejectField(at, value, `${length} bytes in hexadecimal`)
  }
const checkCipherHeader = fields({
  name: oneOf('aes-256-gcm'),
  kdf: fields({ name: oneOf('scrypt'), n: checkScryptCost, r: exactly(8), p: exactly(1) }),
  salt: hexBytes(saltBytes),
  nonce: hexBytes(noncePrefixBytes),
  check: hexBytes(checkBytes),
})

function parseCipherHeader(value: unknown): CipherHeader {
  checkAtLine(1, checkCipherHeader, value, 'cipher')
  return value as CipherHeader
}
