import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../src/domain/error.ts'
import { formatKey, parseKey } from '../../src/domain/key.ts'
import { verifies } from '../requirements/verifies.ts'

const parseError = (text: string): string => {
  try {
    parseKey(text)
    return 'accepted'
  } catch (error) {
    return error instanceof MemoryError ? `${error.code}: ${error.message}` : String(error)
  }
}

describe('parseKey', () => {
  verifies('T-01', 'splits at the first colon; without a colon the key names the scope', () => {
    expect(parseKey('acme:+15551234567')).toEqual({ scope: 'acme', id: '+15551234567' })
    expect(parseKey('tenant1:user@email.com')).toEqual({ scope: 'tenant1', id: 'user@email.com' })
    expect(parseKey('acme')).toEqual({ scope: 'acme', id: '' })
    expect(parseError('acme:a:b')).toContain('The session of key "acme:a:b" may hold only')
  })

  verifies('T-11', 'limits the length of both parts', () => {
    expect(parseKey(`${'s'.repeat(64)}:${'i'.repeat(128)}`).id).toHaveLength(128)
    expect(parseError(`${'s'.repeat(65)}`)).toContain('longer than 64 characters')
    expect(parseError(`s:${'i'.repeat(129)}`)).toContain('longer than 128 characters')
    expect(parseError('')).toContain(
      'bad-key: The scope of key "" is empty. Write scope or scope:session, for example acme:+15551234567.',
    )
    expect(parseError('acme:')).toContain('The session of key "acme:" is empty')
    expect(parseError(':id')).toContain('The scope of key ":id" is empty')
  })

  verifies('T-11', 'rejects reserved words, look-alike letters and invisible characters', () => {
    for (const word of ['.', '..', '__proto__', 'constructor', 'prototype']) {
      expect(parseError(word)).toContain(`is the reserved word ${word}`)
      expect(parseError(`acme:${word}`)).toContain(`is the reserved word ${word}`)
    }
    for (const text of ['аcme', 'ac​me', 'ac me', 'acme/1', 'acme%3A1', 'acme\n', 'ａcme', 'acmé'])
      expect(parseError(text)).toContain('may hold only the letters A-Z and a-z, digits and _ + - . @')
  })

  it('is the inverse of formatKey for every accepted text', () => {
    const half = fc.stringMatching(/^[A-Za-z0-9_+\-.@]{1,20}$/)
    fc.assert(
      fc.property(
        fc.oneof(
          half,
          fc.tuple(half, half).map(([scope, id]) => `${scope}:${id}`),
          fc.string(),
        ),
        (text) => {
          if (parseError(text) === 'accepted') expect(formatKey(parseKey(text))).toBe(text)
        },
      ),
      { numRuns: 1_000 },
    )
  })
})
