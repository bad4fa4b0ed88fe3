import { hash, randomInt } from 'node:crypto'
import type { Millis } from '../../domain/entry.ts'
import { check, MemoryError } from '../../domain/error.ts'
import { parseKey, type Scope } from '../../domain/key.ts'

/** `use` reads and writes the memory of its scopes; `admin` may also do what concerns the server as a whole. */
export type Rights = 'use' | 'admin'

/** Who may do what. The key itself is known to its holder alone. */
export type Credential = {
  readonly id: string
  readonly name: string
  /** The scopes it opens; `*` stands for all. */
  readonly scopes: readonly Scope[]
  readonly rights: Rights
  readonly createdAt: Millis
  readonly expiresAt?: Millis
  readonly revokedAt?: Millis
  /** To within an hour. */
  readonly lastUsedAt?: Millis
}

/** A credential as it is kept: with the SHA-256 of its key, from which nobody gets the key back. */
export type Kept = Credential & { readonly sha256: string }

/** What a new key is to be good for. */
export type Wanted = {
  readonly scopes: readonly string[]
  readonly name?: string
  readonly rights?: Rights
  readonly expiresAt?: Millis
}

/** All scopes. */
export const everywhere = '*'

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 62^32 possibilities: a plain hash is enough, for nobody can try them. */
const length = { id: 8, secret: 32 }
const shape = /^tk_[0-9A-Za-z]{8}_[0-9A-Za-z]{32,64}$/
const longestName = 100

/** Whether a credential opens a scope. */
export const allows = ({ scopes }: Credential, scope: Scope): boolean =>
  scopes.includes(everywhere) || scopes.includes(scope)

/** The only scope a credential opens, if there is just one. */
export const soleScope = ({ scopes }: Credential): Scope | undefined =>
  scopes.length === 1 && scopes[0] !== everywhere ? scopes[0] : undefined

/** Whether a credential is good for anything at this time. */
export const isValid = ({ expiresAt, revokedAt }: Credential, now: Millis): boolean =>
  revokedAt === undefined && (expiresAt === undefined || now < expiresAt)

/** What a key is known by; `undefined` for text that cannot be one. */
export const fingerprint = (key: string): string | undefined => (shape.test(key) ? hash('sha256', key) : undefined)

/**
 * Makes a key `tk_<id>_<secret>` and what is kept of it.
 *
 * @example
 * const { key, kept } = issue({ scopes: ['acme'] }, Date.now())
 */
export function issue(wanted: Wanted, now: Millis): { readonly key: string; readonly kept: Kept } {
  const { name = '', rights = 'use', expiresAt } = wanted
  const scopes = scopesOf(wanted.scopes)
  check(
    'name',
    name,
    name.length <= longestName && !/\p{C}/u.test(name),
    `at most ${longestName} characters, none of them invisible`,
  )
  check(
    'expires',
    expiresAt,
    expiresAt === undefined || (Number.isSafeInteger(expiresAt) && expiresAt > now),
    'a time to come',
  )
  const id = random(length.id)
  const key = `tk_${id}_${random(length.secret)}`
  const expiry = expiresAt === undefined ? {} : { expiresAt }
  return { key, kept: { id, name, scopes, rights, createdAt: now, ...expiry, sha256: hash('sha256', key) } }
}

/** A credential without the hash of its key, which is nobody's business. */
export function shown({ sha256: _, ...credential }: Kept): Credential {
  return credential
}

function scopesOf(texts: readonly string[]): readonly Scope[] {
  if (texts.length === 0)
    throw new MemoryError(
      'bad-option',
      'scope is missing: name what the key opens, such as acme, or * for everything.',
      { param: 'scope' },
    )
  for (const text of texts)
    check(
      'scope',
      text,
      text === everywhere || parseKey(text).id === '',
      'a scope such as acme, without a session, or * for everything',
    )
  return texts.includes(everywhere) ? [everywhere] : [...new Set(texts)]
}

const random = (count: number): string => Array.from({ length: count }, () => digits[randomInt(digits.length)]).join('')
