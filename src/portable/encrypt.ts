import { createCipheriv, createDecipheriv, hash, randomBytes, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import type { Lock } from '../domain/bundle.ts'
import { type Check, fields, oneOf, reject } from '../domain/checks.ts'
import { MemoryError } from '../domain/error.ts'
import { link, origin } from './chain.ts'
import type { Bytes } from './lines.ts'
import { checkedAt, marked } from './records.ts'

/**
 * How a bundle was locked, as its first line says. `check` tells a wrong passphrase from damage; it gives away no more
 * than the first encrypted part does.
 */
type Cipher = {
  readonly name: 'aes-256-gcm'
  readonly kdf: Cost
  readonly salt: string
  readonly nonce: string
  readonly check: string
}
type Cost = { readonly name: 'scrypt'; readonly n: number; readonly r: number; readonly p: number }

const part = 65_536
const tag = 16
const lengths = { key: 32, check: 32, salt: 16, nonce: 7 }
const defaultCost = 2 ** 17
/** A gigabyte of memory: a bundle may not ask for more. */
const mostCost = 2 ** 20

/**
 * Encrypts bytes with AES-256-GCM in parts of 64 KiB, each numbered and the last one marked, so that a part that is
 * changed, moved or missing is found. Its first line is plain and says how.
 */
export async function* encrypted(
  plain: Bytes,
  { passphrase, cost = defaultCost, randomBytes: random = randomBytes }: Lock,
): AsyncGenerator<Uint8Array> {
  if (!isCost(cost))
    throw new MemoryError('bad-option', `cost is ${cost}; it must be a power of two from 2 to ${mostCost}.`, {
      param: 'cost',
    })
  const salt = Buffer.from(random(lengths.salt))
  const nonce = Buffer.from(random(lengths.nonce))
  const kdf: Cost = { name: 'scrypt', n: cost, r: 8, p: 1 }
  const { key, check } = await derived(passphrase, salt, kdf)
  const how: Cipher = { name: 'aes-256-gcm', kdf, salt: hex(salt), nonce: hex(nonce), check }
  const header = link(origin, { ...marked, cipher: how })
  yield Buffer.from(`${header.line}\n`)
  for await (const { bytes, number, last } of inParts(plain, part)) {
    const seal = createCipheriv('aes-256-gcm', key, nonceOf(nonce, number, last), { authTagLength: tag }).setAAD(
      Buffer.from(header.hash),
    )
    yield Buffer.concat([seal.update(bytes), seal.final(), seal.getAuthTag()])
  }
}

/** Decrypts what follows the first line, whose `cipher` and `hash` are given; a wrong passphrase is a `bad-secret`. */
export async function* decrypted(
  secret: Bytes,
  header: { readonly cipher: unknown; readonly hash: string },
  passphrase: string | undefined,
): AsyncGenerator<Uint8Array> {
  const { kdf, salt, nonce, check } = cipherOf(header.cipher)
  if (passphrase === undefined)
    throw new MemoryError('bad-secret', 'The bundle is encrypted; give the passphrase it was exported with.', {
      param: 'passphrase',
    })
  const made = await derived(passphrase, Buffer.from(salt, 'hex'), kdf)
  if (made.check !== check)
    throw new MemoryError(
      'bad-secret',
      'The passphrase is not the one this bundle was exported with. Nothing was read.',
      { param: 'passphrase' },
    )
  for await (const { bytes, number, last } of inParts(secret, part + tag)) {
    yield opened(bytes, made.key, nonceOf(Buffer.from(nonce, 'hex'), number, last), header.hash, number)
  }
}

function opened(bytes: Uint8Array, key: Buffer, nonce: Buffer, header: string, number: number): Buffer {
  try {
    const seal = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tag }).setAAD(Buffer.from(header))
    seal.setAuthTag(bytes.subarray(-tag))
    return Buffer.concat([seal.update(bytes.subarray(0, -tag)), seal.final()])
  } catch (cause) {
    throw new MemoryError(
      'bad-bundle',
      `Part ${number + 1} of the encrypted bundle was changed, moved or cut off. Fetch the bundle again, or export it again.`,
      { cause, param: `part ${number + 1}` },
    )
  }
}

/** The bytes in parts of one size but the last, which may be shorter or empty and is always there. */
async function* inParts(
  bytes: Bytes,
  size: number,
): AsyncGenerator<{ readonly bytes: Uint8Array; readonly number: number; readonly last: boolean }> {
  let held: Uint8Array[] = []
  let length = 0
  let number = 0
  for await (const chunk of bytes) {
    held.push(chunk)
    length += chunk.length
    if (length <= size) continue
    const all = Buffer.concat(held)
    let from = 0
    // one part is always held back: it may turn out to be the last
    for (; length > size; length -= size, from += size)
      yield { bytes: all.subarray(from, from + size), number: number++, last: false }
    held = [all.subarray(from)]
  }
  yield { bytes: Buffer.concat(held), number, last: true }
}

function nonceOf(prefix: Buffer, number: number, last: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  prefix.copy(nonce)
  nonce.writeUInt32BE(number, lengths.nonce)
  nonce.writeUInt8(last ? 1 : 0, 11)
  return nonce
}

const stretch = promisify<string, Buffer, number, { N: number; r: number; p: number; maxmem: number }, Buffer>(scrypt)

async function derived(
  passphrase: string,
  salt: Buffer,
  { n, r, p }: Cost,
): Promise<{ readonly key: Buffer; readonly check: string }> {
  if (passphrase === '')
    throw new MemoryError('bad-secret', 'The passphrase is empty; give one that is hard to guess.', {
      param: 'passphrase',
    })
  // one keyboard writes é as one character, another as two
  const bytes = await stretch(passphrase.normalize('NFC'), salt, lengths.key + lengths.check, {
    N: n,
    r,
    p,
    maxmem: 128 * r * (n + p + 2),
  })
  return { key: bytes.subarray(0, lengths.key), check: hash('sha256', bytes.subarray(lengths.key)) }
}

const hex = (bytes: Buffer): string => bytes.toString('hex')
const isCost = (cost: unknown): boolean =>
  typeof cost === 'number' && cost >= 2 && cost <= mostCost && Number.isInteger(Math.log2(cost))

const costs: Check = (value, at) => {
  if (!isCost(value)) reject(at, value, `a power of two from 2 to ${mostCost}`)
}
const only =
  (right: number): Check =>
  (value, at) => {
    if (value !== right) reject(at, value, `${right}`)
  }
const hexOf =
  (length: number): Check =>
  (value, at) => {
    if (typeof value !== 'string' || !/^[0-9a-f]*$/.test(value) || value.length !== 2 * length)
      reject(at, value, `${length} bytes in hexadecimal`)
  }
const cipher = fields({
  name: oneOf('aes-256-gcm'),
  kdf: fields({ name: oneOf('scrypt'), n: costs, r: only(8), p: only(1) }),
  salt: hexOf(lengths.salt),
  nonce: hexOf(lengths.nonce),
  check: hexOf(lengths.check),
})

function cipherOf(value: unknown): Cipher {
  checkedAt(1, cipher, value, 'cipher')
  return value as Cipher
}
