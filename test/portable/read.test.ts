import { createHmac, hash as digest } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { noExpiry } from '../../src/domain/session.ts'
import {
  chainStart,
  createChainLine,
  type LineBody,
  verifyChainLine,
  verifyChainLineInSteps,
} from '../../src/portable/chain.ts'
import { type ReadOptions, readBundle } from '../../src/portable/read.ts'
import { checkSigningKey, signHash, verifySignature } from '../../src/portable/signature.ts'
import { verifies } from '../requirements/verifies.ts'
import { openChunks } from './byteStreams.ts'

const header = { bundle: 'threadkeep', version: 1 }
const session = {
  key: 'acme:ann',
  startedAt: 1,
  touchedAt: 1,
  expiresAt: noExpiry,
  last: 2,
  messages: 1,
  entries: 0,
}
const message = {
  at: 1,
  role: 'user',
  content: 'x',
  tokens: 1,
  lineTokens: 1,
  tokenizer: 't',
  weight: 1,
  sequence: 1,
  offset: 0,
}
const item = { kind: 'item', id: 'b', at: 1, category: 'task', content: 'x', importance: 1, marked: true, sources: [] }
const summary = {
  kind: 'summary',
  id: 's',
  at: 1,
  tier: 'hour',
  text: 'x',
  covers: [1, 2],
  endOffset: 2,
  version: 1,
  by: 'builtin',
  lossyRanges: [],
  sources: [],
}
const record = { id: 'r', at: 1, body: '{}' }
const node = { node: { name: 'Miso', entityType: 'walrus', observations: [] } }
const graphSession = { ...session, key: 'acme::graph', last: 0, messages: 0, entries: 1 }
const totals = (sessions: number, messages: number, entries: number) => ({ end: { sessions, messages, entries } })

/** Chains bodies to the lines of a bundle. */
function chain(bodies: readonly LineBody[]): readonly { readonly line: string; readonly hash: string }[] {
  let previous = chainStart
  return bodies.map((body) => {
    const line = createChainLine(previous, body)
    previous = line.hash
    return line
  })
}

const seal = (...bodies: readonly LineBody[]): Buffer =>
  Buffer.from(
    chain(bodies)
      .map(({ line }) => `${line}\n`)
      .join(''),
  )

/** Reads a bundle: the kinds of its records, or line and problem of the error. */
async function read(bundle: Uint8Array, options?: ReadOptions): Promise<string> {
  const kinds: string[] = []
  try {
    for await (const { record: found } of readBundle(openChunks(bundle)(), options)) kinds.push(...Object.keys(found))
    return kinds.join(' ')
  } catch (error) {
    return (error as Error).message
      .replace(/^Line (\d+) of the bundle /, '$1 ')
      .replace('. Fetch the bundle again, or export it again.', '')
  }
}
const readBodies = (...bodies: readonly LineBody[]): Promise<string> => read(seal(header, ...bodies))

describe('createChainLine', () => {
  it('with fields in any order › sorts them and hashes them after the previous hash', () => {
    const hash = digest('sha256', 'before{"a":1,"b":{"c":2}}')
    for (const body of [
      { a: 1, b: { c: 2 } },
      { b: { c: 2 }, a: 1 },
    ])
      expect(createChainLine('before', body)).toEqual({ hash, line: `{"a":1,"b":{"c":2},"hash":"${hash}"}` })
  })

  it('with several fields around the hash › sorts all of them', () => {
    const { line } = createChainLine('', { z: 1, i: 2, a: 3, h: 4 })
    expect(line).toMatch(/^\{"a":3,"h":4,"hash":"[0-9a-f]{64}","i":2,"z":1\}$/)
  })
})

describe('verifyChainLine', () => {
  verifies('R-03', 'with a long line of many fields › pauses after parsing it and while it is written again', () => {
    const fields = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, at) => [`field${at}`, { text: `value ${at}` }]),
    )
    const { line } = createChainLine('before', { fields })
    const costs = [...verifyChainLineInSteps('before', line, 3)]
    expect(costs[0]).toBe(line.length)
    expect(costs.length).toBeGreaterThan(10_000)
  })

  it('with a genuine line › returns its body and hash', () => {
    const { line, hash } = createChainLine('before', { a: 1 })
    expect(verifyChainLine('before', line, 3)).toEqual({ body: { a: 1 }, hash })
  })

  it('with a line that is not a JSON object, or written differently › throws with its number', () => {
    const { line } = createChainLine('before', { a: 1 })
    const problems = ['[1]', 'null', '5', '{', ` ${line}`, line.replace('1', '2')].map((changed) => {
      try {
        return verifyChainLine('before', changed, 3)
      } catch (error) {
        return error
      }
    })
    const failure = (problem: string) =>
      expect.objectContaining({
        code: 'bad-bundle',
        param: 'line 3',
        message: `Line 3 of the bundle ${problem}. Fetch the bundle again, or export it again.`,
      })
    const notJson = failure('is not a JSON object')
    expect(problems).toEqual([
      notJson,
      notJson,
      notJson,
      notJson,
      failure('is not written as an export writes it'),
      failure('does not continue the lines before it: something was changed, removed, added or moved'),
    ])
    expect(() => verifyChainLine('other', line, 3)).toThrow('does not continue the lines before it')
  })
})

describe('a signature', () => {
  const key = Buffer.alloc(16, 7)

  it('is the HMAC-SHA-256 of a label and the hash', () => {
    expect(signHash(key, 'abc')).toBe(createHmac('sha256', key).update('threadkeep bundle abc').digest('hex'))
  })

  it('of the same key and hash › is accepted; of another one or another length › is rejected', () => {
    const signature = signHash(key, 'abc')
    expect(() => verifySignature(key, 'abc', signature)).not.toThrow()
    for (const [otherKey, hash, given] of [
      [Buffer.alloc(16, 8), 'abc', signature],
      [key, 'abd', signature],
      [key, 'abc', signature.slice(1)],
      [key, 'abc', `${signature}0`],
    ] as const)
      expect(() => verifySignature(otherKey, hash, given)).toThrow(
        expect.objectContaining({
          code: 'bad-secret',
          param: 'verifyKey',
          message:
            'The bundle is signed with another key; nothing was imported. Import a bundle that was exported with the key, or leave out the verification.',
        }),
      )
  })

  it('with a key of fewer than 16 bytes or of another type › is rejected', () => {
    expect(() => checkSigningKey(key, 'signingKey')).not.toThrow()
    for (const bad of [Buffer.alloc(15), 'a key of more than sixteen characters' as unknown as Uint8Array])
      expect(() => checkSigningKey(bad, 'signingKey')).toThrow(
        expect.objectContaining({
          code: 'bad-option',
          param: 'signingKey',
          message: 'signingKey must be at least 16 random bytes.',
        }),
      )
  })
})

describe('readBundle', () => {
  it.each([
    ['after a call', 'acme:ann', { toolCallId: 'call-1' }],
    ['of a file, which nobody called,', 'acme::files', {}],
  ])('with a tool message %s › yields it', async (_, key, call) => {
    const bodies = [{ session: { ...session, key } }, { message: { ...message, role: 'tool', ...call } }]
    expect(await readBodies(...bodies, totals(1, 1, 0))).toBe('session message end')
  })

  it('with records in order › yields them with the hashes of their lines', async () => {
    const bodies = [
      header,
      { session: { ...session, entries: 2 } },
      { message },
      { entry: item },
      { entry: summary },
      { record },
      { record },
      totals(1, 1, 2),
    ]
    const hashes: string[] = []
    const records: unknown[] = []
    for await (const verified of readBundle([seal(...bodies)])) {
      hashes.push(verified.hash)
      records.push(verified.record)
    }
    expect(records).toEqual(bodies.slice(1))
    expect(hashes).toEqual(
      chain(bodies)
        .slice(1)
        .map(({ hash }) => hash),
    )
  })

  it('without sessions › yields the end', async () => expect(await readBodies(totals(0, 0, 0))).toBe('end'))

  it('with several sessions and a graph › counts each of them anew', async () => {
    expect(
      await readBodies(
        { session: graphSession },
        { graph: node },
        { session: { ...session, entries: 1 } },
        { message: { ...message, offset: 9 } },
        { entry: item },
        { session: { ...session, key: 'acme:bob', entries: 1 } },
        { message },
        { entry: item },
        { session: { ...session, key: 'beta' } },
        { message },
        totals(4, 3, 3),
      ),
    ).toBe('session graph session message entry session message entry session message end')
  })

  it.each([
    ['a message before a session', [{ message }], '2 is a message outside the messages of a session'],
    [
      'a message after an entry',
      [{ session: { ...session, entries: 1 } }, { entry: item }, { message }],
      '4 is a message outside the messages of a session',
    ],
    [
      'a message number twice',
      [{ session }, { message }, { message }],
      '4 has the message number 1, which is out of order',
    ],
    [
      'a message number above the last',
      [{ session }, { message: { ...message, sequence: 3 } }],
      '3 has the message number 3, which is out of order',
    ],
    [
      'a falling offset',
      [{ session }, { message: { ...message, offset: 5 } }, { message: { ...message, sequence: 2, offset: 4 } }],
      '4 has the offset 4, which is lower than that of the message before',
    ],
    [
      'a reply of a tool without its call',
      [{ session }, { message: { ...message, role: 'tool' } }],
      '3 is a reply of a tool without the id of its call',
    ],
    ['an entry before a session', [{ entry: item }], '2 is an entry outside a session'],
    [
      'an entry id twice',
      [{ session }, { entry: item }, { entry: item }],
      '4 has the entry "b", which is out of order',
    ],
    [
      'entry ids in falling order',
      [{ session }, { entry: item }, { entry: { ...item, id: 'a' } }],
      '4 has the entry "a", which is out of order',
    ],
    [
      'a summary of messages after the last',
      [{ session }, { entry: { ...summary, covers: [1, 3] } }],
      '3 is a summary of messages that the session does not have',
    ],
    ['a record before a session', [{ record }], '2 is a record before the end of the entries'],
    ['a record before the messages', [{ session }, { record }], '3 is a record before the end of the entries'],
    [
      'a record before the entries',
      [{ session: { ...session, entries: 1 } }, { message }, { record }],
      '4 is a record before the end of the entries',
    ],
    ['a graph row before a session', [{ graph: node }], '2 is a row of a graph outside a graph'],
    ['a graph row in a session', [{ session }, { graph: node }], '3 is a row of a graph outside a graph'],
    [
      'a session before all messages',
      [{ session }, { session: { ...session, key: 'acme:bob' } }],
      '3 comes too early: session acme:ann should have 1 messages and 0 entries',
    ],
    [
      'the end before all entries',
      [{ session: { ...session, entries: 1 } }, { message }, totals(1, 1, 0)],
      '4 comes too early: session acme:ann should have 1 messages and 1 entries',
    ],
    ['a session twice', [{ session }, { message }, { session }], '4 has the session acme:ann, which is out of order'],
    [
      'an earlier session',
      [{ session: { ...session, key: 'acme:bob' } }, { message }, { session }],
      '4 has the session acme:ann, which is out of order',
    ],
    [
      'an earlier scope',
      [{ session: { ...session, key: 'beta:ann' } }, { message }, { session: { ...session, key: 'acme:bob' } }],
      '4 has the session acme:bob, which is out of order',
    ],
    ['another number of sessions', [{ session }, { message }, totals(2, 1, 0)], '4 counts other lines than there are'],
    ['another number of messages', [{ session }, { message }, totals(1, 2, 0)], '4 counts other lines than there are'],
    ['another number of entries', [{ session }, { message }, totals(1, 1, 1)], '4 counts other lines than there are'],
    ['a record after the end', [totals(0, 0, 0), { record }], '3 follows the end of the bundle'],
    ['two ends', [totals(0, 0, 0), totals(0, 0, 0)], '3 follows the end of the bundle'],
    ['a signature before the end', [{ signature: 'a'.repeat(64) }], '2 is a signature before the end of the bundle'],
    [
      'two signatures',
      [totals(0, 0, 0), { signature: 'a'.repeat(64) }, { signature: 'a'.repeat(64) }],
      '4 is a signature before the end of the bundle',
    ],
    ['no end', [{ session }, { message }], '4 is missing: the end of the bundle was cut off'],
  ] as readonly (readonly [string, readonly LineBody[], string])[])('with %s › throws', async (_, bodies, problem) => {
    expect(await readBodies(...bodies)).toBe(problem)
  })

  it.each([
    ['another program', { bundle: 'other', version: 1 }, '1 is not the first line of a Threadkeep bundle'],
    [
      'another version',
      { bundle: 'threadkeep', version: '1' },
      'The bundle is of version "1", this Threadkeep reads version 1. Update Threadkeep.',
    ],
    ['an unknown field', { ...header, zip: true }, '1 has the unknown field zip'],
  ])('with the header of %s › throws', async (_, first, problem) => {
    expect(await read(seal(first, totals(0, 0, 0)))).toBe(problem)
  })

  it('with a changed header, an empty file or another file › throws', async () => {
    const bundle = seal(header, totals(0, 0, 0)).toString()
    const notFirst = '1 is not the first line of a Threadkeep bundle'
    expect([
      await read(Buffer.from(bundle.replace('"version":1', '"version":2'))),
      await read(Buffer.alloc(0)),
      await read(Buffer.from(`\n${bundle}`)),
      await read(Buffer.alloc(9_000, 'x')),
    ]).toEqual([
      '1 does not continue the lines before it: something was changed, removed, added or moved',
      notFirst,
      notFirst,
      notFirst,
    ])
  })

  it('with an error in the header › closes the source after the first bytes', async () => {
    let chunks = 0
    let isClosed = false
    const source = async function* () {
      try {
        for (; chunks < 100; chunks++) yield Buffer.alloc(1_000, 'x')
      } finally {
        isClosed = true
      }
    }
    await expect(readBundle(source()).next()).rejects.toMatchObject({ code: 'bad-bundle' })
    expect([chunks < 9, isClosed]).toEqual([true, true])
  })

  it('with a key to verify › accepts only its signature of the last line', async () => {
    const verifyKey = Buffer.alloc(16, 7)
    const bodies = [header, { session }, { message }, totals(1, 1, 0)]
    const { hash = '' } = chain(bodies).at(-1) ?? {}
    const signed = seal(...bodies, { signature: signHash(verifyKey, hash) })
    const remedy =
      'nothing was imported. Import a bundle that was exported with the key, or leave out the verification.'
    expect([
      await read(signed, { verifyKey }),
      await read(signed),
      await read(signed, { verifyKey: Buffer.alloc(16, 8) }),
      await read(seal(...bodies), { verifyKey }),
      await read(signed, { verifyKey: Buffer.alloc(15) }),
    ]).toEqual([
      'session message end signature',
      'session message end signature',
      `The bundle is signed with another key; ${remedy}`,
      `The bundle is not signed; ${remedy}`,
      'verifyKey must be at least 16 random bytes.',
    ])
  })
})
