import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import { formatKey, type Key, parseKey } from '../../../src/domain/key.ts'
import type { Credential } from '../../../src/server/auth/credential.ts'
import { Credentials } from '../../../src/server/auth/credentials.ts'
import {
  authenticate,
  type KeySources,
  readApiKey,
  readSessionHint,
  resolveKey,
} from '../../../src/server/auth/identity.ts'
import { HttpError, notFound } from '../../../src/server/http/httpError.ts'
import { verifies } from '../../requirements/verifies.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-identity-'))
afterAll(() => rmSync(folder, { recursive: true }))

const credential = (...scopes: string[]): Credential => ({
  id: '7fK2mQ9x',
  name: '',
  scopes,
  rights: 'use',
  createdAt: 0,
})
const key = `tk_7fK2mQ9x_${'s'.repeat(32)}`

/** The key as text, or the error. */
function resolve(sources: KeySources): string | undefined {
  try {
    const found = resolveKey(sources)
    return found === undefined ? undefined : formatKey(found)
  } catch (error) {
    if (error instanceof HttpError) return `${error.status} ${error.message}`
    if (error instanceof MemoryError) return error.code
    throw error
  }
}
const notFoundError = `404 ${notFound().message}`

describe('readApiKey', () => {
  it('finds the key in each supported header', () => {
    for (const headers of [
      { authorization: `Bearer ${key}` },
      { authorization: `bearer  ${key} ` },
      { 'x-api-key': key },
      { 'x-threadkeep-api-key': key },
      { authorization: 'Bearer sk-upstream', 'x-threadkeep-api-key': key },
      { authorization: 'Bearer tk_other', 'x-api-key': 'sk-ant', 'x-threadkeep-api-key': key },
      { authorization: 'Bearer sk-upstream', 'x-api-key': key },
    ])
      expect(readApiKey(headers)).toBe(key)
  })

  it('ignores keys of model providers and other headers', () => {
    for (const headers of [
      {},
      { authorization: 'Bearer sk-1' },
      { authorization: `Basic ${key}` },
      { 'x-api-key': 'sk-ant-1' },
      { cookie: `key=${key}` },
    ])
      expect(readApiKey(headers)).toBeUndefined()
    expect(readApiKey({ 'x-threadkeep-api-key': 'sk-1', authorization: `Bearer ${key}` })).toBe('sk-1')
  })
})

describe('authenticate', () => {
  it('requires a key once one exists, and does not reveal why a key is refused', async () => {
    const credentials = new Credentials(join(folder, 'keys.json'))
    expect([authenticate(undefined, {}, 0), authenticate(credentials, {}, 0)]).toEqual([undefined, undefined])
    const created = await credentials.create({ scopes: ['acme'], expiresAt: 100 }, 0)
    const revoked = await credentials.create({ scopes: ['acme'] }, 0)
    await credentials.revoke(revoked.credential.id, 0)
    expect(authenticate(credentials, { 'x-api-key': created.key }, 50)).toEqual(created.credential)
    await credentials.settled()
    const tryAuthenticate = (headers: Record<string, string>, now: number) => {
      try {
        return authenticate(credentials, headers, now)
      } catch (error) {
        const { status, code, message, headers: responseHeaders } = error as HttpError
        return [status, code, message, responseHeaders]
      }
    }
    const bearer = { 'www-authenticate': 'Bearer' }
    const missing =
      'A Threadkeep key is missing. Send one as Authorization: Bearer tk_…, or in the header x-api-key or x-threadkeep-api-key.'
    expect(tryAuthenticate({ authorization: 'Bearer sk-1' }, 50)).toEqual([401, 'invalid_api_key', missing, bearer])
    const invalid = [
      401,
      'invalid_api_key',
      'This Threadkeep key is not valid. Ask the operator of this server for a new one.',
      bearer,
    ]
    for (const text of [key, revoked.key, 'tk_'])
      expect(tryAuthenticate({ authorization: `Bearer ${text}` }, 50)).toEqual(invalid)
    expect(tryAuthenticate({ authorization: `Bearer ${created.key}` }, 100)).toEqual(invalid)
  })
})

describe('resolveKey', () => {
  const acme = credential('acme')
  const many = credential('acme', 'other')
  const all = credential('*')

  it('prefers the path, then the header, then the body, and returns undefined without any', () => {
    const sources: KeySources = {
      path: parseKey('acme:path'),
      header: 'acme:header',
      sessionHint: 'body',
      credential: acme,
    }
    expect(resolve(sources)).toBe('acme:path')
    expect(resolve({ ...sources, path: undefined })).toBe('acme:header')
    expect(resolve({ ...sources, path: undefined, header: undefined })).toBe('acme:body')
    expect(resolve({ ...sources, path: undefined, header: ' ', sessionHint: ' ' })).toBeUndefined()
    expect(resolve({})).toBeUndefined()
  })

  it('completes a session without a scope from the only scope or the default scope', () => {
    expect(resolve({ header: ':ann', credential: acme })).toBe('acme:ann')
    expect(resolve({ header: 'ann', credential: acme })).toBe('acme:ann')
    expect(resolve({ header: 'acme', credential: acme })).toBe('acme')
    expect(resolve({ header: 'acme:acme', credential: acme })).toBe('acme:acme')
    for (const credential of [many, all, undefined]) {
      expect(resolve({ header: ':ann', credential })).toBe('bad-key')
      expect(resolve({ sessionHint: 'ann', credential })).toBeUndefined()
      expect(resolve({ header: ':ann', credential, defaultScope: 'other' })).toBe('other:ann')
      expect(resolve({ sessionHint: 'ann', credential, defaultScope: 'other' })).toBe('other:ann')
    }
    expect(resolve({ header: 'other', credential: many })).toBe('other')
    expect(resolve({ header: 'ann', credential: undefined, defaultScope: 'other' })).toBe('ann')
    expect(resolve({ sessionHint: 'ann', credential: acme, defaultScope: 'other' })).toBe('acme:ann')
    expect(resolve({ sessionHint: 'ann', credential: many, defaultScope: 'third' })).toBeUndefined()
  })

  it('answers 404 for the key of another tenant', () => {
    expect(resolve({ path: parseKey('other:ann'), credential: acme })).toBe(notFoundError)
    expect(resolve({ path: parseKey('other'), credential: acme })).toBe(notFoundError)
    expect(resolve({ header: 'other:ann', credential: acme })).toBe(notFoundError)
    expect(resolve({ header: 'third', credential: many })).toBe(notFoundError)
    expect(resolve({ path: parseKey('other:ann'), credential: all })).toBe('other:ann')
    expect(resolve({ path: parseKey('other:ann') })).toBe('other:ann')
  })

  verifies('T-11', 'hashes an invalid session id in a body and refuses one in a header', () => {
    const resolveBody = (session: string) => resolve({ sessionHint: session, credential: acme })
    expect(resolveBody('other:ann')).toBe('acme:u.nTbD84pNZMO-v4sV4BrHt2')
    expect(resolveBody('ann@example.com')).toBe('acme:ann@example.com')
    for (const text of ['a b', '..', '__proto__', 'i'.repeat(129), 'a/b', ':files', 'zażółć', '\ud800'])
      expect(resolveBody(text)).toMatch(/^acme:u\.[\w-]{22}$/)
    for (const header of [':a b', ':..', ':a:b', 'acme:a:receipts', 'acme:', ':'])
      expect(resolve({ header, credential: acme })).toBe('bad-key')
  })
})

describe('readSessionHint', () => {
  it('reads the fields that clients use, the most explicit first', () => {
    const metadata = { threadkeep_session: 'a', session_id: 'b' }
    expect(readSessionHint({ metadata, prompt_cache_key: 'c', user: 'd' })).toBe('a')
    expect(readSessionHint({ metadata: { session_id: 'b' }, prompt_cache_key: 'c', user: 'd' })).toBe('b')
    expect(readSessionHint({ metadata: null, prompt_cache_key: 'c', user: 'd' })).toBe('c')
    expect(readSessionHint({ metadata: ['x'], prompt_cache_key: 7, user: 'd' })).toBe('d')
    expect(readSessionHint({ user: ' ', key: 'other:ann', scope: 'other' })).toBeUndefined()
  })
})

describe('resolveKey with arbitrary input', () => {
  const scope = fc.constantFrom('acme', 'Acme', 'other', 'a', 'constructor1', 'x.y')
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 20 }),
    scope,
    fc.tuple(scope, fc.constantFrom(':', '::', '%3A', '\u0000', ' : '), fc.string()).map((parts) => parts.join('')),
  )
  const path = fc.option(
    fc.tuple(scope, fc.constantFrom('', 'ann')).map(([name, id]): Key => parseKey(id === '' ? name : `${name}:${id}`)),
    { nil: undefined },
  )
  const sources = fc.record({
    path,
    header: fc.option(text, { nil: undefined }),
    session: fc.option(text, { nil: undefined }),
    credential: fc
      .uniqueArray(fc.oneof({ weight: 9, arbitrary: scope }, fc.constant('*')), { minLength: 1, maxLength: 3 })
      .map((scopes) => credential(...scopes)),
    defaultScope: fc.option(scope, { nil: undefined }),
  })

  it('never returns a scope that the credential does not allow', () => {
    fc.assert(
      fc.property(sources, (given) => {
        const outcome = ((): Key | undefined | 'refused' => {
          try {
            return resolveKey(given)
          } catch (error) {
            expect(error instanceof HttpError ? error.status : (error as MemoryError).code).toBeOneOf([404, 'bad-key'])
            return 'refused'
          }
        })()
        if (outcome === undefined || outcome === 'refused') return
        const { scopes } = given.credential
        expect(scopes.includes('*') || scopes.includes(outcome.scope)).toBe(true)
        expect(parseKey(formatKey(outcome))).toEqual(outcome)
        // A body never determines the scope.
        if (given.path === undefined && (given.header ?? '').trim() === '')
          expect([given.defaultScope, ...scopes]).toContain(outcome.scope)
      }),
      { numRuns: 5000 },
    )
  })

  it('never maps two session names to one key', () => {
    fc.assert(
      fc.property(text, text, (one, other) => {
        const [first, second] = [one, other].map((session) =>
          resolve({ sessionHint: session, credential: credential('acme') }),
        )
        if (one.isWellFormed() && other.isWellFormed() && one.trim() !== '' && other.trim() !== '')
          expect(first === second).toBe(one === other)
      }),
    )
  })
})
