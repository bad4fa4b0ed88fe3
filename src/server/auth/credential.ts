import { hash, randomInt } from 'node:crypto'
import { z } from 'zod'
import type { Millis } from '../../domain/entry.ts'
import { checkOption, MemoryError } from '../../domain/error.ts'
import { parseKey, type Scope } from '../../domain/key.ts'
import { findSecrets, normalizeSecrets } from '../../text/secrets.ts'

/** `use` reads and writes the memory of its scopes; `admin` may also use the endpoints for operators. */
export type Rights = 'use' | 'admin'

/** The permissions of an API key. The key itself is never stored. */
export type Credential = {
  readonly id: string
  readonly name: string
  /** The scopes it may use; `*` stands for all. */
  readonly scopes: readonly Scope[]
  readonly rights: Rights
  readonly createdAt: Millis
  readonly expiresAt?: Millis
  readonly revokedAt?: Millis
  /** Accurate to one hour. */
  readonly lastUsedAt?: Millis
}

/** A credential as stored in the key file, with the SHA-256 of its key. */
export type StoredCredential = Credential & { readonly sha256: string }

export type CredentialOptions = {
  readonly scopes: readonly string[]
  readonly name?: string
  /** Default `use`. */
  readonly rights?: Rights
  readonly expiresAt?: Millis
}

/** Stands for all scopes. */
export const allScopes = '*'

/** True for a key that is limited to some tenants. */
export const isLimitedToTenants = ({ scopes, rights }: Pick<Credential, 'scopes' | 'rights'>): boolean =>
  rights !== 'admin' && !scopes.includes(allScopes)

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const idLength = 8
/** 62^32 possible secrets cannot be guessed, so a plain hash is enough. */
const secretLength = 32
const keyPattern = /^tk_[0-9A-Za-z]{8}_[0-9A-Za-z]{32,64}$/
const maxNameLength = 100

/** True when a credential may use a scope. */
export const allowsScope = ({ scopes }: Credential, scope: Scope): boolean =>
  scopes.includes(allScopes) || scopes.includes(scope)

/** The scope of a credential that has exactly one. */
export const onlyScope = ({ scopes }: Credential): Scope | undefined =>
  scopes.length === 1 && scopes[0] !== allScopes ? scopes[0] : undefined

/** True when a credential is neither revoked nor expired. */
export const isValid = ({ expiresAt, revokedAt }: Credential, now: Millis): boolean =>
  revokedAt === undefined && (expiresAt === undefined || now < expiresAt)

/** The hash a key is looked up by; undefined for malformed keys. */
export const hashKey = (key: string): string | undefined => (keyPattern.test(key) ? hash('sha256', key) : undefined)

/**
 * Creates a key `tk_<id>_<secret>` and its stored form.
 *
 * @throws {MemoryError} `bad-option` for a missing or invalid scope, name or expiry.
 *
 * @example
 * const { key, stored } = createCredential({ scopes: ['acme'] }, Date.now())
 */
export function createCredential(
  options: CredentialOptions,
  now: Millis,
): { readonly key: string; readonly stored: StoredCredential } {
  const { name = '', rights = 'use', expiresAt } = options
  const scopes = checkScopes(options.scopes)
  const isName = name.length <= maxNameLength && !/\p{C}/u.test(name)
  checkOption('name', name, isName, `at most ${maxNameLength} characters, without control characters`)
  const isFuture = expiresAt === undefined || (Number.isSafeInteger(expiresAt) && expiresAt > now)
  checkOption('expires', expiresAt, isFuture, 'a time in the future')
  const id = randomText(idLength)
  const key = `tk_${id}_${randomText(secretLength)}`
  const expiry = expiresAt === undefined ? {} : { expiresAt }
  return {
    key,
    stored: {
      id,
      name: normalizeSecrets(name),
      scopes,
      rights,
      createdAt: now,
      ...expiry,
      sha256: hash('sha256', key),
    },
  }
}

/** Removes the hash of the key. */
export function withoutHash({ sha256: _, ...credential }: StoredCredential): Credential {
  return credential
}

function checkScopes(scopes: readonly string[]): readonly Scope[] {
  if (scopes.length === 0) {
    const message = 'scope is missing. Name the scopes the key may use, such as acme, or * for all.'
    throw new MemoryError('bad-option', message, { param: 'scope' })
  }
  for (const scope of scopes) {
    const isScope = scope === allScopes || parseKey(scope).id === ''
    checkOption('scope', scope, isScope, 'a scope such as acme, without a session, or * for all')
    checkOption('scope', '…', findSecrets(scope).length === 0, 'a name without a key, password or card number')
  }
  return scopes.includes(allScopes) ? [allScopes] : [...new Set(scopes)]
}

const randomText = (length: number): string =>
  Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('')

const time = z.number().int()
const storedCredential = z.strictObject({
  id: z.string().regex(/^[0-9A-Za-z]{8}$/),
  name: z.string(),
  scopes: z.array(z.string().regex(/^(?:\*|[\w+\-.@]{1,64})$/)).min(1),
  rights: z.enum(['use', 'admin']),
  createdAt: time,
  expiresAt: time.exactOptional(),
  revokedAt: time.exactOptional(),
  lastUsedAt: time.exactOptional(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})
const keyFile = z.strictObject({
  format: z.literal('threadkeep-keys'),
  version: z.literal(1),
  keys: z.array(storedCredential),
})

/**
 * Parses a key file. A damaged file is rejected as a whole, because it must never be treated as a file without keys.
 */
export function parseKeyFile(text: string, file: string): readonly StoredCredential[] {
  const { data, error } = keyFile.safeParse(parseKeyJson(text, file))
  if (error !== undefined) throw damagedFile(file, `${error.issues[0]?.path.join('.') || 'the top level'} is invalid`)
  for (const field of ['id', 'sha256'] as const) {
    if (new Set(data.keys.map((key) => key[field])).size < data.keys.length)
      throw damagedFile(file, `two keys have the same ${field}`)
  }
  return data.keys
}

export const formatKeyFile = (keys: readonly StoredCredential[]): string =>
  `${JSON.stringify({ format: 'threadkeep-keys', version: 1, keys }, null, 2)}\n`

function parseKeyJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw damagedFile(file, 'it is not JSON', cause)
  }
}

const damagedFile = (file: string, reason: string, cause?: unknown): MemoryError =>
  new MemoryError(
    'corrupt',
    `The key file ${file} is damaged: ${reason}. Restore a backup, or move the file away and create new keys.`,
    { param: 'file', cause },
  )
