import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import {
  type CredentialOptions,
  createCredential,
  formatKeyFile,
  hashKey,
  isLimitedToTenants,
  parseKeyFile,
  type StoredCredential,
} from '../../../src/server/auth/credential.ts'
import { readApiKey, resolveKey } from '../../../src/server/auth/identity.ts'
import { verifies } from '../../requirements/verifies.ts'

const id = '7fK2mQ9x'
const secret = 's'.repeat(32)

/** Code and parameter of the error that a call throws. */
function errorOf(call: () => unknown): string {
  try {
    call()
    return 'none'
  } catch (error) {
    return error instanceof MemoryError ? `${error.code} ${error.param}: ${error.message}` : String(error)
  }
}

describe('hashKey', () => {
  verifies('T-11', 'has a hash only for text that is a key and nothing else', () => {
    const key = `tk_${id}_${secret}`
    expect(hashKey(key)).toMatch(/^[0-9a-f]{64}$/)
    expect(hashKey(`tk_${id}_${'s'.repeat(64)}`)).toBeDefined()
    const malformed = ['', secret, `tk_${id}_${secret.slice(1)}`, `tk_${id}_${'s'.repeat(65)}`, `tk_${id}x_${secret}`]
    for (const text of [...malformed, `x${key}`, ` ${key}`, `${key}\n`, `${key} `, `${key}-x`, `TK_${id}_${secret}`])
      expect(hashKey(text)).toBeUndefined()
  })
})

describe('isLimitedToTenants', () => {
  verifies('T-11', 'is true unless the key is for administrators or for all scopes', () => {
    expect(isLimitedToTenants({ scopes: ['acme'], rights: 'use' })).toBe(true)
    expect(isLimitedToTenants({ scopes: ['*'], rights: 'use' })).toBe(false)
    expect(isLimitedToTenants({ scopes: ['acme'], rights: 'admin' })).toBe(false)
    expect(isLimitedToTenants({ scopes: ['*'], rights: 'admin' })).toBe(false)
  })
})

describe('createCredential', () => {
  const create = (options: Partial<CredentialOptions>) => createCredential({ scopes: ['acme'], ...options }, 100)

  it('stores the defaults: no name, no expiry, the right to use', () => {
    const { key, stored } = create({})
    const { id: created, sha256, ...rest } = stored
    expect(rest).toEqual({ name: '', scopes: ['acme'], rights: 'use', createdAt: 100 })
    expect([key.startsWith(`tk_${created}_`), hashKey(key)]).toEqual([true, sha256])
    expect(Object.keys(stored)).not.toContain('expiresAt')
  })

  it('refuses names that are too long or have control characters, and a missing scope', () => {
    expect(create({ name: 'n'.repeat(100) }).stored.name).toHaveLength(100)
    expect(errorOf(() => create({ name: 'n'.repeat(101) }))).toContain('bad-option name: name is')
    expect(errorOf(() => create({ name: 'a\nb' }))).toContain('bad-option name: name is')
    expect(errorOf(() => create({ scopes: [] }))).toBe(
      'bad-option scope: scope is missing. Name the scopes the key may use, such as acme, or * for all.',
    )
  })
})

describe('parseKeyFile', () => {
  const { stored } = createCredential({ scopes: ['acme'], rights: 'admin' }, 100)
  const parse = (change: Partial<Record<keyof StoredCredential, unknown>>) =>
    parseKeyFile(formatKeyFile([{ ...stored, ...change } as StoredCredential]), 'keys.json')

  it('reads what formatKeyFile writes', () => {
    expect(parse({})).toEqual([stored])
    const all = { scopes: ['*'], expiresAt: 7, revokedAt: 8, lastUsedAt: 9, rights: 'use' }
    expect(parse(all)).toEqual([{ ...stored, ...all }])
  })

  verifies('T-11', 'rejects a file in which one field is more or less than it should be', () => {
    const { sha256 } = stored
    for (const [field, values] of Object.entries({
      id: [`${id}x`, id.slice(1), ` ${id}`, `${id}\n`],
      scopes: [[], [''], ['a:b'], ['acme '], [' acme'], ['**'], ['*acme'], ['s'.repeat(65)]],
      rights: ['', 'root'],
      sha256: [`${sha256}0`, sha256.slice(1), `x${sha256}`, sha256.toUpperCase().replace(/[0-9]/g, 'A')],
      createdAt: ['100', 1.5],
    }))
      for (const value of values)
        expect(errorOf(() => parse({ [field]: value }))).toMatch(
          new RegExp(`^corrupt file: The key file keys.json is damaged: keys.0.${field}[.0-9]* is invalid.`),
        )
    expect(errorOf(() => parseKeyFile('[]', 'keys.json'))).toContain('is damaged: the top level is invalid')
    expect(errorOf(() => parseKeyFile('{', 'keys.json'))).toContain(
      'corrupt file: The key file keys.json is damaged: it is not JSON',
    )
  })
})

describe('readApiKey', () => {
  const key = `tk_${id}_${secret}`

  verifies('T-11', 'reads a bearer token that is the whole header, and trims the own header', () => {
    expect(readApiKey({ authorization: `Bearer ${key}` })).toBe(key)
    expect(readApiKey({ authorization: `bearer   ${key} ` })).toBe(key)
    for (const authorization of [`Basic Bearer ${key}`, `Bearer ${key} more`, key, `Bearer${key}`])
      expect(readApiKey({ authorization })).toBeUndefined()
    expect(readApiKey({})).toBeUndefined()
    expect(readApiKey({ 'x-threadkeep-api-key': ` ${key} ` })).toBe(key)
  })
})

describe('resolveKey', () => {
  const credential = { id, name: '', rights: 'use' as const, createdAt: 0 }

  verifies('T-11', 'without a scope › names no session', () => {
    expect(resolveKey({ sessionHint: 'ann', credential: { ...credential, scopes: ['a', 'b'] } })).toBeUndefined()
    expect(resolveKey({ sessionHint: 'ann', credential: { ...credential, scopes: ['*'] } })).toBeUndefined()
    expect(resolveKey({ defaultScope: 'acme' })).toBeUndefined()
    expect(errorOf(() => resolveKey({ header: ':ann' }))).toContain('bad-key key: The scope of key ":ann" is empty')
  })
})
