import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import { formatKey, type Key, parseKey } from '../../../src/domain/key.ts'
import { admit } from '../../../src/server/auth/admit.ts'
import type { Credential } from '../../../src/server/auth/credential.ts'
import { Credentials } from '../../../src/server/auth/credentials.ts'
import { keyFor, type Named, presented, sessionIn } from '../../../src/server/auth/identity.ts'
import { notFound, Refusal } from '../../../src/server/http/httpError.ts'
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

/** The key as text, or what a client is told. */
function answer(named: Named): string | undefined {
  try {
    const found = keyFor(named)
    return found === undefined ? undefined : formatKey(found)
  } catch (error) {
    if (error instanceof Refusal) return `${error.status} ${error.message}`
    if (error instanceof MemoryError) return error.code
    throw error
  }
}
const nothing = `404 ${notFound().message}`

describe('the key a request brings', () => {
  it('is found in each of its headers', () => {
    for (const headers of [
      { authorization: `Bearer ${key}` },
      { authorization: `bearer  ${key} ` },
      { 'x-api-key': key },
      { 'x-threadkeep-api-key': key },
      { authorization: 'Bearer sk-upstream', 'x-threadkeep-api-key': key },
      { authorization: 'Bearer tk_other', 'x-api-key': 'sk-ant', 'x-threadkeep-api-key': key },
      { authorization: 'Bearer sk-upstream', 'x-api-key': key },
    ])
      expect(presented(headers)).toBe(key)
  })

  it("is not a model server's, nor anything else", () => {
    for (const headers of [
      {},
      { authorization: 'Bearer sk-1' },
      { authorization: `Basic ${key}` },
      { 'x-api-key': 'sk-ant-1' },
      { cookie: `key=${key}` },
    ])
      expect(presented(headers)).toBeUndefined()
    expect(presented({ 'x-threadkeep-api-key': 'sk-1', authorization: `Bearer ${key}` })).toBe('sk-1')
  })

  it('is asked for from the first one on, and why it is refused is not told', async () => {
    const credentials = new Credentials(join(folder, 'keys.json'))
    expect([admit(undefined, {}, 0), admit(credentials, {}, 0)]).toEqual([undefined, undefined])
    const made = await credentials.create({ scopes: ['acme'], expiresAt: 100 }, 0)
    const revoked = await credentials.create({ scopes: ['acme'] }, 0)
    await credentials.revoke(revoked.credential.id, 0)
    expect(admit(credentials, { 'x-api-key': made.key }, 50)).toEqual(made.credential)
    await credentials.settled()
    const refused = (headers: Record<string, string>, now: number) => {
      try {
        return admit(credentials, headers, now)
      } catch (error) {
        const { status, code, message, headers: told } = error as Refusal
        return [status, code, message, told]
      }
    }
    const bearer = { 'www-authenticate': 'Bearer' }
    const missing =
      'A Threadkeep key is missing. Send one as Authorization: Bearer tk_…, or in the header x-api-key or x-threadkeep-api-key.'
    expect(refused({ authorization: 'Bearer sk-1' }, 50)).toEqual([401, 'invalid_api_key', missing, bearer])
    const wrong = [
      401,
      'invalid_api_key',
      'This Threadkeep key is not accepted. Ask whoever runs this server for another one.',
      bearer,
    ]
    for (const text of [key, revoked.key, 'tk_'])
      expect(refused({ authorization: `Bearer ${text}` }, 50)).toEqual(wrong)
    expect(refused({ authorization: `Bearer ${made.key}` }, 100)).toEqual(wrong)
  })
})

describe('the session a request belongs to', () => {
  const acme = credential('acme')
  const many = credential('acme', 'other')
  const all = credential('*')

  it('is that of its address, else of its header, else of its body, else none', () => {
    const whole = { path: parseKey('acme:path'), header: 'acme:header', session: 'body', credential: acme }
    expect(answer(whole)).toBe('acme:path')
    expect(answer({ ...whole, path: undefined })).toBe('acme:header')
    expect(answer({ ...whole, path: undefined, header: undefined })).toBe('acme:body')
    expect(answer({ ...whole, path: undefined, header: ' ', session: ' ' })).toBeUndefined()
    expect(answer({})).toBeUndefined()
  })

  it('may be named without its scope where there is just one', () => {
    expect(answer({ header: ':ann', credential: acme })).toBe('acme:ann')
    expect(answer({ header: 'ann', credential: acme })).toBe('acme:ann')
    expect(answer({ header: 'acme', credential: acme })).toBe('acme')
    expect(answer({ header: 'acme:acme', credential: acme })).toBe('acme:acme')
    for (const credential of [many, all, undefined]) {
      expect(answer({ header: ':ann', credential })).toBe('bad-key')
      expect(answer({ session: 'ann', credential })).toBeUndefined()
      expect(answer({ header: ':ann', credential, defaultScope: 'other' })).toBe('other:ann')
      expect(answer({ session: 'ann', credential, defaultScope: 'other' })).toBe('other:ann')
    }
    expect(answer({ header: 'other', credential: many })).toBe('other')
    expect(answer({ header: 'ann', credential: undefined, defaultScope: 'other' })).toBe('ann')
    expect(answer({ session: 'ann', credential: acme, defaultScope: 'other' })).toBe('acme:ann')
    expect(answer({ session: 'ann', credential: many, defaultScope: 'third' })).toBeUndefined()
  })

  it('of another tenant is as if it were not there', () => {
    expect(answer({ path: parseKey('other:ann'), credential: acme })).toBe(nothing)
    expect(answer({ path: parseKey('other'), credential: acme })).toBe(nothing)
    expect(answer({ header: 'other:ann', credential: acme })).toBe(nothing)
    expect(answer({ header: 'third', credential: many })).toBe(nothing)
    expect(answer({ path: parseKey('other:ann'), credential: all })).toBe('other:ann')
    expect(answer({ path: parseKey('other:ann') })).toBe('other:ann')
  })

  verifies('T-11', 'has a proper id: what a body says is made one, what a header says is refused', () => {
    const made = (session: string) => answer({ session, credential: acme })
    expect(made('other:ann')).toBe('acme:u.nTbD84pNZMO-v4sV4BrHt2')
    expect(made('ann@example.com')).toBe('acme:ann@example.com')
    for (const text of ['a b', '..', '__proto__', 'i'.repeat(129), 'a/b', ':files', 'zażółć', '\ud800'])
      expect(made(text)).toMatch(/^acme:u\.[\w-]{22}$/)
    for (const header of [':a b', ':..', ':a:b', 'acme:a:receipts', 'acme:', ':'])
      expect(answer({ header, credential: acme })).toBe('bad-key')
  })

  it('is read from the fields that clients have for it, the plainest first', () => {
    const metadata = { threadkeep_session: 'a', session_id: 'b' }
    expect(sessionIn({ metadata, prompt_cache_key: 'c', user: 'd' })).toBe('a')
    expect(sessionIn({ metadata: { session_id: 'b' }, prompt_cache_key: 'c', user: 'd' })).toBe('b')
    expect(sessionIn({ metadata: null, prompt_cache_key: 'c', user: 'd' })).toBe('c')
    expect(sessionIn({ metadata: ['x'], prompt_cache_key: 7, user: 'd' })).toBe('d')
    expect(sessionIn({ user: ' ', key: 'other:ann', scope: 'other' })).toBeUndefined()
  })
})

describe('nobody', () => {
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
  const named = fc.record({
    path,
    header: fc.option(text, { nil: undefined }),
    session: fc.option(text, { nil: undefined }),
    credential: fc
      .uniqueArray(fc.oneof({ weight: 9, arbitrary: scope }, fc.constant('*')), { minLength: 1, maxLength: 3 })
      .map((scopes) => credential(...scopes)),
    defaultScope: fc.option(scope, { nil: undefined }),
  })

  it('gets into a scope that was not given to them, whatever they say', () => {
    fc.assert(
      fc.property(named, (said) => {
        const outcome = ((): Key | undefined | 'refused' => {
          try {
            return keyFor(said)
          } catch (error) {
            expect(error instanceof Refusal ? error.status : (error as MemoryError).code).toBeOneOf([404, 'bad-key'])
            return 'refused'
          }
        })()
        if (outcome === undefined || outcome === 'refused') return
        const { scopes } = said.credential
        expect(scopes.includes('*') || scopes.includes(outcome.scope)).toBe(true)
        expect(parseKey(formatKey(outcome))).toEqual(outcome)
        // What a body says never decides about the scope.
        if (said.path === undefined && (said.header ?? '').trim() === '')
          expect([said.defaultScope, ...scopes]).toContain(outcome.scope)
      }),
      { numRuns: 5000 },
    )
  })

  it('finds two sessions in one because their names look alike', () => {
    fc.assert(
      fc.property(text, text, (one, other) => {
        const [first, second] = [one, other].map((session) => answer({ session, credential: credential('acme') }))
        if (one.isWellFormed() && other.isWellFormed() && one.trim() !== '' && other.trim() !== '')
          expect(first === second).toBe(one === other)
      }),
    )
  })
})
