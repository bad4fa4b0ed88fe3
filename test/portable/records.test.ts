import { describe, expect, it } from 'vitest'
import { MemoryError, shortenText } from '../../src/domain/error.ts'
import { packPayload } from '../../src/domain/payload.ts'
import { noExpiry } from '../../src/domain/session.ts'
import type { LineBody } from '../../src/portable/chain.ts'
import { checkAtLine, parseRecord, toMessageRecord } from '../../src/portable/records.ts'

type Fields = Readonly<Record<string, unknown>>

const at = 1_763_000_000_000
const maxTime = 8_640_000_000_000_000
const maxSequence = 2 ** 40
const maxTokens = 2 ** 40
const maxOffset = 2 ** 50
const base = { id: 'e1', at, sources: [{ message: 'm1', session: 'ann', span: [0, 4] }] }
const tuningParameters = { trigger: 0.5, window: 4, minRelevance: 0.25 }
const tuningRun = {
  ...tuningParameters,
  at,
  tokensBefore: 9,
  tokensAfter: 8,
  compressed: 1,
  dropped: 2,
  promoted: 3,
}
const message = {
  at,
  role: 'user',
  content: 'Hello.',
  tokens: 3,
  lineTokens: 4,
  tokenizer: 'o200k_base',
  weight: 3,
  sequence: 1,
  offset: 0,
}
const graphFields = { type: 'pet', properties: { name: 'Miso' }, createdAt: at, updatedAt: at }

/** A record of every kind with all of its fields. */
const samples: Readonly<Record<string, LineBody>> = {
  session: {
    session: { key: 'acme:ann', startedAt: at, touchedAt: at, expiresAt: noExpiry, last: 2, messages: 2, entries: 1 },
  },
  'user message': {
    message: {
      ...message,
      name: 'Ann',
      branch: 1,
      externalId: 'msg-1',
      packedPayload: packPayload({ protocol: 'chat', items: [] }, 'Hello.'),
    },
  },
  'assistant message': {
    message: { ...message, role: 'assistant', toolCalls: [{ id: 'c1', name: 'look', arguments: '{}' }] },
  },
  'system message': { message: { ...message, role: 'system' } },
  'tool message': { message: { ...message, role: 'tool', toolCallId: 'c1' } },
  summary: {
    entry: {
      ...base,
      kind: 'summary',
      tier: 'progressive',
      text: 'A walrus.',
      covers: [1, 2],
      endOffset: 9,
      version: 1,
      by: 'builtin',
      lossyRanges: [[1, 1]],
    },
  },
  fact: {
    entry: {
      ...base,
      kind: 'fact',
      field: 'key_decisions',
      key: 'pet',
      value: 'walrus',
      importance: 5,
      supersedes: 'f0',
      until: at,
    },
  },
  knowledge: {
    entry: {
      ...base,
      kind: 'knowledge',
      category: 'domain',
      key: 'hours',
      value: { open: [9, 17] },
      confidence: 0.5,
      usedAt: at,
      agedAt: at,
      statedBy: ['ann'],
      usedBy: ['bob'],
      pending: true,
      origin: 'operator',
      archived: true,
    },
  },
  item: { entry: { ...base, kind: 'item', category: 'task', content: 'Feed it.', importance: 5, marked: false } },
  notes: {
    entry: {
      ...base,
      kind: 'notes',
      lease: { holder: 'x', until: at },
      faults: [{ step: 'learn', why: 'timeout' }],
      facts: 1,
      learned: 2,
      triage: { compressed: [[1, 1]], dropped: [[2, 2]], promoted: [[3, 3]] },
      tuning: { parameters: tuningParameters, runs: 1, saved: -5, snapshots: [tuningRun] },
    },
  },
  about: {
    entry: {
      ...base,
      kind: 'about',
      template: 'support',
      idle: 1,
      age: 1,
      person: 'ann',
      metadata: { a: 1 },
      movedTo: 'bob',
      movedFrom: 'eve',
      branchOf: { session: 'zoe', after: 1 },
    },
  },
  encrypted: { entry: { ...base, kind: 'encrypted', ciphertext: 'AAAA' } },
  record: { record: { id: 'r1', at, body: '{"a":1}' } },
  entity: { graph: { entity: { ...graphFields, id: 'miso', origins: [['ann', 'm1']] } } },
  relationship: { graph: { relationship: { ...graphFields, from: 'ann', to: 'miso', session: 'ann' } } },
  node: { graph: { node: { name: 'Miso', entityType: 'walrus', observations: ['swims'] } } },
  link: { graph: { link: { from: 'Ann', to: 'Miso', relationType: 'owns' } } },
  adopted: { graph: { adopted: at } },
  end: { end: { sessions: 1, messages: 2, entries: 3, rows: 4 } },
  signature: { signature: '0123456789abcdef'.repeat(4) },
  row: { row: { scope: 'acme', name: '["cats","Miso"]', createdAt: at, updatedAt: at, json: '{"age":3}' } },
}
const optionalFields = new Set(
  `message.name message.branch message.externalId message.packedPayload message.toolCalls message.toolCallId entry.supersedes entry.until entry.agedAt
  entry.statedBy entry.usedBy entry.pending entry.origin entry.archived entry.lease entry.faults entry.facts entry.learned
  entry.triage end.rows entry.tuning entry.template entry.idle entry.age entry.person entry.metadata entry.movedTo entry.movedFrom
  entry.branchOf entry.sources[0].session entry.sources[0].span graph.relationship.session`.split(/\s+/),
)

/** Returns the problem of a body, or `accepted`. */
function problemOf(body: LineBody): string {
  try {
    expect(parseRecord(body, 7)).toBe(body)
    return 'accepted'
  } catch (error) {
    expect(error).toMatchObject({ code: 'bad-bundle', param: 'line 7' })
    const { message: text } = error as MemoryError
    expect(text).toMatch(/^Line 7 of the bundle .*\. Fetch the bundle again, or export it again\.$/s)
    return text.slice('Line 7 of the bundle '.length, text.indexOf('. Fetch the bundle again'))
  }
}

const rejected = (path: string, value: unknown, expected: string): string =>
  `cannot be read: ${path} is ${value === undefined ? 'missing' : shortenText(JSON.stringify(value), 60)}; it must be ${expected}`

/** Lists every object inside a value with its path. */
function* objectsIn(value: unknown, path: string): Generator<{ readonly fields: Fields; readonly path: string }> {
  if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* objectsIn(item, `${path}[${index}]`)
  else if (typeof value === 'object' && value !== null) {
    yield { fields: value as Fields, path }
    for (const [name, inner] of Object.entries(value)) yield* objectsIn(inner, path === '' ? name : `${path}.${name}`)
  }
}

/** Returns a copy in which the object at a path is replaced. */
function replaceAt(value: unknown, path: string, at: string, replacement: unknown): unknown {
  if (path === at) return replacement
  if (Array.isArray(value)) return value.map((item, index) => replaceAt(item, `${path}[${index}]`, at, replacement))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      replaceAt(inner, path === '' ? name : `${path}.${name}`, at, replacement),
    ]),
  )
}

/** Sets a field by its path in a sample. */
const withField = (name: string, path: string, value: unknown): LineBody =>
  replaceAt(samples[name], '', path, value) as LineBody

/** Objects of any shape: their fields are values. */
const isFree = (path: string): boolean => /(?:\.|^)(?:value|metadata|properties)$/.test(path) || path === ''
const isKindHolder = (path: string): boolean => path === 'graph'

describe('parseRecord', () => {
  it.each(Object.entries(samples))('with a complete %s › returns it', (_, body) => {
    expect(problemOf(body)).toBe('accepted')
  })

  it.each(Object.entries(samples))(
    'with a field of a %s missing, null or added › accepts only optional fields',
    (_, body) => {
      for (const { fields, path } of objectsIn(body, '')) {
        if (isFree(path) || isKindHolder(path)) continue
        for (const name of Object.keys(fields)) {
          const fieldPath = `${path}.${name}`
          const { [name]: removed, ...others } = fields
          const problem = problemOf(replaceAt(body, '', path, others) as LineBody)
          if (optionalFields.has(fieldPath)) expect([fieldPath, problem]).toEqual([fieldPath, 'accepted'])
          else expect(problem).toContain(`cannot be read: ${fieldPath} is missing; it must be`)
          if (name === 'value' || name === 'metadata') continue
          expect(problemOf(replaceAt(body, '', path, { ...fields, [name]: null }) as LineBody)).toContain(
            `cannot be read: ${fieldPath} is null; it must be`,
          )
          const other = typeof removed === 'number' ? 'text' : 1.5
          expect(problemOf(replaceAt(body, '', path, { ...fields, [name]: other }) as LineBody)).toContain(
            `cannot be read: ${fieldPath} is ${JSON.stringify(other)}; it must be`,
          )
        }
        const added = problemOf(replaceAt(body, '', path, { ...fields, extra: 1 }) as LineBody)
        expect(added).toBe(`cannot be read: Unknown field ${path}.extra. Use one of: ${added.split('Use one of: ')[1]}`)
      }
    },
  )

  it.each([
    ['session', 'session.startedAt', -maxTime, maxTime],
    ['session', 'session.touchedAt', -maxTime, maxTime],
    ['row', 'row.createdAt', -maxTime, maxTime],
    ['row', 'row.updatedAt', -maxTime, maxTime],
    ['session', 'session.expiresAt', -maxTime, noExpiry],
    ['user message', 'message.at', -maxTime, maxTime],
    ['fact', 'entry.importance', 0, 10],
    ['fact', 'entry.until', -maxTime, maxTime],
    ['item', 'entry.importance', 0, 10],
    ['knowledge', 'entry.confidence', 0, 1],
    ['about', 'entry.idle', 1, noExpiry],
    ['about', 'entry.age', 1, noExpiry],
    ['notes', 'entry.tuning.parameters.trigger', 0, 1],
    ['notes', 'entry.tuning.parameters.minRelevance', 0, 1],
    ['adopted', 'graph.adopted', -maxTime, maxTime],
  ])('with a %s › accepts %s from %d to %d', (name, path, min, max) => {
    const expected = `from ${min} to ${max}`
    for (const value of [min, max, (min + max) / 2]) expect(problemOf(withField(name, path, value))).toBe('accepted')
    for (const value of [min - 2, max + 2, '1', Number.NaN])
      expect(problemOf(withField(name, path, value))).toBe(rejected(path, value, expected))
  })

  it.each([
    ['session', 'session.last', 0, maxSequence],
    ['session', 'session.messages', 0, maxSequence],
    ['session', 'session.entries', 0, maxSequence],
    ['user message', 'message.sequence', 1, maxSequence],
    ['user message', 'message.branch', 1, maxSequence],
    ['user message', 'message.tokens', 0, maxTokens],
    ['user message', 'message.lineTokens', 0, maxTokens],
    ['user message', 'message.weight', 0, maxTokens],
    ['user message', 'message.offset', 0, maxOffset],
    ['summary', 'entry.endOffset', 0, maxOffset],
    ['summary', 'entry.version', 0, maxSequence],
    ['notes', 'entry.facts', 0, maxSequence],
    ['notes', 'entry.learned', 0, maxSequence],
    ['notes', 'entry.tuning.saved', -maxOffset, maxOffset],
    ['notes', 'entry.tuning.runs', 0, maxSequence],
    ['notes', 'entry.tuning.parameters.window', 0, maxSequence],
    ['notes', 'entry.tuning.snapshots[0].tokensBefore', 0, maxTokens],
    ['about', 'entry.branchOf.after', 0, maxSequence],
    ['end', 'end.sessions', 0, maxSequence],
    ['end', 'end.rows', 0, maxSequence],
  ])('with a %s › accepts %s as a whole number from %d to %d', (name, path, min, max) => {
    const expected = `a whole number from ${min} to ${max}`
    for (const value of [min, max]) expect(problemOf(withField(name, path, value))).toBe('accepted')
    for (const value of [min - 1, max + 1, min + 0.5, '1'])
      expect(problemOf(withField(name, path, value))).toBe(rejected(path, value, expected))
  })

  it.each([
    ['user message', 'message.role', ['system', 'user', 'assistant', 'tool'], ['system', 'user', 'assistant']],
    ['summary', 'entry.tier', ['progressive', 'hour', 'session', 'batch']],
    ['knowledge', 'entry.origin', ['operator', 'learned']],
    ['item', 'entry.category', ['code', 'file', 'data', 'concept', 'task']],
    ['fact', 'entry.kind', ['summary', 'fact', 'knowledge', 'item', 'notes', 'about', 'encrypted'], ['fact']],
  ])('with a %s › accepts %s only from its list', (name, path, choices, accepted = choices) => {
    for (const value of accepted) expect(problemOf(withField(name, path, value))).toBe('accepted')
    for (const value of ['', 'other', 5])
      expect(problemOf(withField(name, path, value))).toBe(rejected(path, value, `one of ${choices.join(', ')}`))
  })

  it.each([
    ['user message', 'message.packedPayload'],
    ['record', 'record.id'],
    ['record', 'record.body'],
    ['fact', 'entry.id'],
    ['entity', 'graph.entity.id'],
    ['entity', 'graph.entity.type'],
    ['relationship', 'graph.relationship.from'],
    ['relationship', 'graph.relationship.to'],
  ])('with a %s › rejects an empty %s', (name, path) => {
    expect(problemOf(withField(name, path, ''))).toBe(rejected(path, '', 'text that is not empty'))
  })

  it.each([
    ['user message', 'message.content'],
    ['user message', 'message.name'],
    ['node', 'graph.node.name'],
    ['about', 'entry.person'],
  ])('with a %s › accepts an empty %s, and only text', (name, path) => {
    expect(problemOf(withField(name, path, ''))).toBe('accepted')
    expect(problemOf(withField(name, path, 5))).toBe(rejected(path, 5, 'text'))
  })
})

describe('parseRecord with a message', () => {
  it('with tool calls of another role › rejects it', () => {
    const { message: assistant } = samples['assistant message'] as { message: Fields }
    for (const role of ['system', 'user'])
      expect(problemOf({ message: { ...assistant, role } })).toBe(
        rejected('message.toolCalls', role, 'absent for this role'),
      )
  })

  it('with the call it answers, and a role that answers none › rejects it', () => {
    expect(problemOf({ message: { ...message, toolCallId: 'c1' } })).toBe(
      rejected('message.toolCallId', 'c1', 'absent for this role'),
    )
  })

  it('with a payload that cannot be unpacked › rejects it', () => {
    for (const packedPayload of ['x', '{}', '{"protocol":"chat","items":[{"$content":[0,99]}]}'])
      expect(problemOf({ message: { ...message, packedPayload } })).toBe(
        rejected('message.packedPayload', packedPayload, 'the original form of the message'),
      )
  })

  it.each([
    ['user', 'chat', 'system'],
    ['assistant', 'responses', 'constructor'],
    ['system', 'messages', 'user'],
  ])('with the original form of a %s message of %s that has the role %s › rejects it', (role, protocol, other) => {
    const packedPayload = packPayload({ protocol, items: [{ role: other }] }, '')
    expect(problemOf({ message: { ...message, role, packedPayload } })).toContain('the original form of the message')
  })
})

describe('parseRecord with an entry', () => {
  it('with a reserved id › rejects it', () => {
    for (const id of ['m1', 'm999', '#key'])
      expect(problemOf(withField('fact', 'entry.id', id))).toBe(rejected('entry.id', id, 'an id that is not reserved'))
    for (const id of ['m', 'm0', 'key', '#k']) expect(problemOf(withField('fact', 'entry.id', id))).toBe('accepted')
  })

  it('that is not an object › names the kinds', () => {
    for (const entry of [null, 'fact', []])
      expect(problemOf({ entry })).toBe(
        rejected('entry.kind', undefined, 'one of summary, fact, knowledge, item, notes, about, encrypted'),
      )
  })

  it('with a range that is not two ordered numbers › rejects it', () => {
    const path = 'entry.covers'
    for (const value of [
      [2, 2],
      [0, 0],
      [0, maxSequence],
    ])
      expect(problemOf(withField('summary', path, value))).toBe('accepted')
    for (const value of [
      [2, 1],
      [1, 2, 3],
    ])
      expect(problemOf(withField('summary', path, value))).toBe(rejected(path, value, 'two numbers in order'))
    for (const value of [[], [1], 'ab'])
      expect(problemOf(withField('summary', path, value))).toBe(rejected(path, value, 'a list with at least 2 entry'))
    expect(problemOf(withField('summary', path, [-1, 1]))).toBe(
      rejected(`${path}[0]`, -1, `a whole number from 0 to ${maxSequence}`),
    )
  })

  it('with a lease of more than a day after the entry › rejects it', () => {
    const day = 86_400_000
    for (const until of [at + day, at, 0])
      expect(problemOf(withField('notes', 'entry.lease.until', until))).toBe('accepted')
    expect(problemOf(withField('notes', 'entry.lease.until', at + day + 1))).toBe(
      rejected('entry.lease.until', at + day + 1, 'at most a day after the entry'),
    )
  })

  it('with a value nested deeper than 200 levels › rejects it', () => {
    const nest = (levels: number): unknown => (levels === 0 ? 1 : [nest(levels - 1)])
    for (const path of ['entry.value', 'entry.metadata']) {
      const name = path === 'entry.value' ? 'fact' : 'about'
      for (const value of [null, 0, '', nest(200)]) expect(problemOf(withField(name, path, value))).toBe('accepted')
      expect(problemOf(withField(name, path, nest(201)))).toBe(rejected(path, '…', 'nested at most 200 levels deep'))
    }
  })

  it('with the id of a session that no key can have › rejects it', () => {
    for (const path of ['entry.movedTo', 'entry.movedFrom', 'entry.branchOf.session'])
      for (const id of ['a b', 'x'.repeat(2_000)])
        expect(problemOf(withField('about', path, id))).toMatch(/^cannot be read: /)
  })
})

describe('parseRecord with a session', () => {
  it('with a key that no session can have › rejects it', () => {
    for (const key of ['', ':', 'a b:c', 'acme:ann:', 'x'.repeat(2_000)])
      expect([key, problemOf(withField('session', 'session.key', key))]).toEqual([
        key,
        expect.stringMatching(/^cannot be read: /),
      ])
    for (const key of ['acme', 'acme::graph'])
      expect(problemOf(withField('session', 'session.key', key))).toBe('accepted')
    expect(problemOf(withField('session', 'session.key', 5))).toBe(rejected('session.key', 5, 'text'))
  })
})

describe('parseRecord with an auxiliary record', () => {
  it('whose body is not JSON or is nested too deeply › rejects it', () => {
    for (const body of ['x', '{', '{"a":}'])
      expect(problemOf(withField('record', 'record.body', body))).toBe(rejected('record.body', body, 'JSON'))
    expect(problemOf(withField('record', 'record.body', `${'['.repeat(201)}${']'.repeat(201)}`))).toBe(
      rejected('record.body', '…', 'nested at most 200 levels deep'),
    )
    for (const body of ['null', '5', '"x"', `${'['.repeat(200)}${']'.repeat(200)}`])
      expect(problemOf(withField('record', 'record.body', body))).toBe('accepted')
  })
})

describe('parseRecord with a graph row', () => {
  const kinds = 'one of entity, relationship, node, link, adopted'

  it('of no kind, another kind or two kinds › rejects it', () => {
    for (const graph of [{}, null, 'node', []])
      expect(problemOf({ graph })).toBe(rejected('the kind of graph', undefined, kinds))
    expect(problemOf({ graph: { other: 1 } })).toBe(rejected('the kind of graph', 'other', kinds))
    expect(problemOf({ graph: { adopted: at, link: {} } })).toBe(
      rejected('graph', { adopted: at, link: {} }, 'of one kind'),
    )
  })

  it('with properties that are not an object or nested too deeply › rejects it', () => {
    const path = 'graph.entity.properties'
    for (const value of [[], 'x', 5])
      expect(problemOf(withField('entity', path, value))).toBe(rejected(path, value, 'an object'))
    const nest = (levels: number): Fields => (levels === 0 ? {} : { a: nest(levels - 1) })
    expect(problemOf(withField('entity', path, nest(200)))).toBe(rejected(path, '…', 'nested at most 200 levels deep'))
  })

  it('with an origin that is not a session and a message › rejects it', () => {
    const path = 'graph.entity.origins'
    for (const origin of [[], ['ann'], ['ann', 'm1', 'm2']])
      expect(problemOf(withField('entity', path, [origin]))).toBe(
        rejected(`${path}[0]`, origin, 'a session and a message'),
      )
    expect(problemOf(withField('entity', path, [['ann', 1]]))).toBe(rejected(`${path}[0][1]`, 1, 'text'))
    expect(problemOf(withField('entity', path, [['', '']]))).toBe('accepted')
  })
})

describe('parseRecord with a signature', () => {
  it('that is not 64 hex digits › rejects it', () => {
    const genuine = '0123456789abcdef'.repeat(4)
    for (const signature of [genuine.toUpperCase(), genuine.slice(1), `${genuine}0`, `${genuine}\n`, 'g'.repeat(64), 5])
      expect(problemOf({ signature })).toBe(rejected('signature', signature, 'an HMAC-SHA-256'))
  })
})

describe('parseRecord with a body', () => {
  const kinds = 'must hold one of session, message, entry, record, graph, row, end, signature'

  it.each([
    ['no kind', {}],
    ['an unknown kind', { other: 1 }],
    ['an inherited name', { toString: 1 }],
    ['two kinds', { end: samples.end?.end, session: samples.session?.session }],
  ])('of %s › names the kinds', (_, body) => {
    expect(problemOf(body)).toBe(kinds)
  })
})

describe('checkAtLine', () => {
  it('with an error that is not about the value › passes it on', () => {
    const fault = new TypeError('broken')
    const check = (): never => {
      throw fault
    }
    expect(() => checkAtLine(1, check, 1, 'x')).toThrow(fault)
  })

  it('with an error about the value › names the line and drops only the last full stop', () => {
    const check = (): never => {
      throw new MemoryError('bad-option', 'It is 1.5. Use 2.')
    }
    expect(() => checkAtLine(3, check, 1, 'x')).toThrow('Line 3 of the bundle cannot be read: It is 1.5. Use 2. Fetch')
  })
})

describe('toMessageRecord', () => {
  it('of a message › leaves out what follows from its sequence number', () => {
    expect(toMessageRecord({ ...message, role: 'user', kind: 'message', id: 'm1' })).toEqual(message)
  })
})
