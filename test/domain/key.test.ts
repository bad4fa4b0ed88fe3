import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../src/domain/error.ts'
import { formatKey, parseKey } from '../../src/domain/key.ts'
import { verifies } from '../requirements/verifies.ts'

const fault = (text: string): string => {
  try {
    parseKey(text)
    return 'accepted'
  } catch (error) {
    return error instanceof MemoryError ? `${error.code}: ${error.message}` : String(error)
  }
}

describe('a key', () => {
  verifies('T-01', 'is split at the first colon, and without a colon names the scope itself', () => {
    expect(parseKey('acme:+15551234567')).toEqual({ scope: 'acme', id: '+15551234567' })
    expect(parseKey('tenant1:user@email.com')).toEqual({ scope: 'tenant1', id: 'user@email.com' })
    expect(parseKey('acme')).toEqual({ scope: 'acme', id: '' })
    expect(fault('acme:a:b')).toContain('The session of key "acme:a:b" may hold only')
  })

  verifies('T-11', 'has halves of bounded length', () => {
    expect(parseKey(`${'s'.repeat(64)}:${'i'.repeat(128)}`).id).toHaveLength(128)
    expect(fault(`${'s'.repeat(65)}`)).toContain('longer than 64 characters')
    expect(fault(`s:${'i'.repeat(129)}`)).toContain('longer than 128 characters')
    expect(fault('')).toContain(
      'bad-key: The scope of key "" is empty. Write scope or scope:session, for example acme:+15551234567.',
    )
    expect(fault('acme:')).toContain('The session of key "acme:" is empty')
    expect(fault(':id')).toContain('The scope of key ":id" is empty')
  })

  verifies('T-11', 'refuses reserved words, look-alikes and what cannot be seen', () => {
    for (const word of ['.', '..', '__proto__', 'constructor', 'prototype']) {
      expect(fault(word)).toContain(`is the reserved word ${word}`)
      expect(fault(`acme:${word}`)).toContain(`is the reserved word ${word}`)
    }
    for (const text of ['аcme', 'ac​me', 'ac me', 'acme/1', 'acme%3A1', 'acme\n', 'ａcme', 'acmé'])
      expect(fault(text)).toContain('may hold only the letters A-Z and a-z, digits and _ + - . @')
  })

  it('is injective: formatting what was parsed gives the text back', () => {
    const half = fc.stringMatching(/^[A-Za-z0-9_+\-.@]{1,20}$/)
    fc.assert(
      fc.property(
        fc.oneof(
          half,
          fc.tuple(half, half).map(([scope, id]) => `${scope}:${id}`),
          fc.string(),
        ),
        (text) => {
          if (fault(text) === 'accepted') expect(formatKey(parseKey(text))).toBe(text)
        },
      ),
      { numRuns: 1_000 },
    )
  })
})
