import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../src/domain/error.ts'
import {
  branchKey,
  encryptedTableKey,
  filesKey,
  formatKey,
  graphKey,
  isInScope,
  isInternalKey,
  type Key,
  knowledgeKey,
  outboxKey,
  parseKey,
  parseScope,
  parseStoredKey,
  personKey,
  scopeKey,
} from '../../src/domain/key.ts'
import { verifies } from '../requirements/verifies.ts'

const parseError = (text: string, parse: (text: string) => Key = parseKey): string => {
  try {
    parse(text)
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

  it('names the part at fault and the field, and quotes at most 80 characters', () => {
    expect(() => parseKey('a b')).toThrow(expect.objectContaining({ code: 'bad-key', param: 'key' }))
    const quoted = (length: number) => /of key "(.*)" (?:may|is)/.exec(parseError(`${'x'.repeat(length - 1)}/`))?.[1]
    expect([quoted(64)?.length, quoted(80)?.length, quoted(81)]).toEqual([64, 80, `${'x'.repeat(80)}…`])
  })

  verifies('T-11', 'checks a key object again', () => {
    const parse = (key: unknown): string => parseError('', () => parseKey(key as Key))
    for (const key of [
      { scope: 'acme', id: '' },
      { scope: 'acme', id: 'ann' },
    ]) {
      expect(parseKey(key as Key)).toEqual(key)
    }
    for (const key of [
      undefined,
      null,
      7,
      {},
      { scope: 'acme' },
      { id: 'ann' },
      { scope: 1, id: 'ann' },
      { scope: 'acme', id: 1 },
    ])
      expect(parse(key)).toBe(
        `bad-key: The key is ${JSON.stringify(key) ?? 'missing'}; it must be text such as acme:+15551234567.`,
      )
    expect(() => parseKey({} as Key)).toThrow(expect.objectContaining({ param: 'key' }))
    expect(parse({ scope: '', id: '' })).toContain('The scope of key "" is empty')
    expect(parse({ scope: 'a:b', id: '' })).toContain('The scope of key "a:b" may hold only')
    expect(parse({ scope: 'acme', id: ':files' })).toContain('The session of key ":files" may hold only')
    expect(parse({ scope: 's'.repeat(65), id: '' })).toContain('longer than 64 characters')
    expect(parse({ scope: 'acme', id: 'i'.repeat(129) })).toContain('longer than 128 characters')
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

describe('parseScope', () => {
  verifies('T-01', 'accepts a tenant, and refuses a session, which would stand for its whole tenant', () => {
    expect(parseScope('acme')).toBe('acme')
    expect(() => parseScope('acme:ann')).toThrow(
      expect.objectContaining({
        code: 'bad-key',
        param: 'scope',
        message: 'acme:ann is a session, not a tenant. Use acme.',
      }),
    )
    expect(() => parseScope('acme:')).toThrow('is empty')
  })
})

describe('isInScope', () => {
  verifies('T-01', 'is true for the scope and its sessions, not for a scope with a longer or shorter name', () => {
    for (const key of ['acme', 'acme:ann', 'acme::files', 'acme:ann:1']) expect(isInScope(key, 'acme')).toBe(true)
    for (const key of ['acm', 'acmes', 'acme-2:ann', 'other:acme', 'other', 'xacme', 'x:acme:'])
      expect(isInScope(key, 'acme')).toBe(false)
  })
})

describe('keys of internal sessions', () => {
  const ann = parseKey('acme:ann')
  const internal = [
    filesKey('acme'),
    encryptedTableKey('acme'),
    graphKey('acme'),
    outboxKey('acme'),
    personKey('acme', 'bob'),
    knowledgeKey(ann, 'bob'),
    branchKey(ann, 7),
    branchKey(parseKey(`acme:${'i'.repeat(128)}`), 1),
  ]

  verifies('T-11', 'are read back by stores, and clients cannot name them', () => {
    expect(internal.map(formatKey)).toEqual([
      'acme::files',
      'acme::table',
      'acme::graph',
      'acme::outbox',
      'acme::person:bob',
      'acme::person:bob',
      'acme:ann:7',
      `acme:${'i'.repeat(128)}:1`,
    ])
    for (const key of internal) {
      expect(isInternalKey(key)).toBe(true)
      expect(parseStoredKey(formatKey(key))).toEqual(key)
      expect(parseError(formatKey(key))).toContain('bad-key')
    }
    for (const key of [ann, scopeKey(ann), knowledgeKey(ann)]) expect(isInternalKey(key)).toBe(false)
    expect([scopeKey(ann), knowledgeKey(ann)]).toEqual([parseKey('acme'), parseKey('acme')])
  })

  it('parseStoredKey › accepts ordinary keys and rejects what formatKey never writes', () => {
    for (const text of ['acme', 'acme:ann']) expect(parseStoredKey(text)).toEqual(parseKey(text))
    const invalid = [
      '',
      ':files',
      'acme:',
      'acme::',
      'acme:a:b:c:d',
      'a b::files',
      'acme::fi les',
      'acme::files\n',
      'x/acme::files',
    ]
    for (const text of [
      ...invalid,
      `${'s'.repeat(65)}::files`,
      `acme::${'f'.repeat(129)}`,
      `acme:${'i'.repeat(129)}:1`,
    ])
      expect(parseError(text, parseStoredKey)).toContain('bad-key')
  })

  it('personKey › with an invalid name › is rejected like a session', () => {
    expect(parseError('Ann Lee', (person) => personKey('acme', person))).toContain(
      'The session of key "Ann Lee" may hold only',
    )
    expect(parseError('p'.repeat(129), (person) => personKey('acme', person))).toContain('longer than 128 characters')
  })
})
