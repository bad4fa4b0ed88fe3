import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import type { Store, TableWrite } from '../../src/domain/ports.ts'
import { chainStart, createChainLine, type LineBody } from '../../src/portable/chain.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { findBundleConflicts, importBundle } from '../../src/portable/import.ts'
import { parseRecord } from '../../src/portable/records.ts'
import { newChange, newMessage } from '../../src/stores/conformance/fixtures.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { verifies } from '../requirements/verifies.ts'
import { openChunks, readAll } from './byteStreams.ts'

const at = 1_763_000_000_000
const row = { scope: 'acme', name: '["cats","Miso"]', createdAt: at, updatedAt: at, json: '{"age":3}' }
const message = { ...newMessage('Hello.', { at }), sequence: 1, offset: 0 }

/** Returns the problem of a record without its line, or `accepted`. */
function problemOf(body: LineBody): string {
  try {
    parseRecord(body, 7)
    return 'accepted'
  } catch (error) {
    return (error as Error).message.replace(/^Line 7 of the bundle cannot be read: /, '')
  }
}

describe('parseRecord', () => {
  it.each(['x', 'x'.repeat(256), 'é \u{1f642}'])('with the message id %j › accepts it', (externalId) => {
    expect(problemOf({ message: { ...message, externalId } })).toBe('accepted')
  })

  verifies('R-04', 'with a message id that no message can have › rejects it', () => {
    for (const externalId of ['', 'x'.repeat(257), 'a\u0000', '\ud800', 7])
      expect(problemOf({ message: { ...message, externalId } })).toMatch(
        /^message\.externalId is .*; it must be a text of 1 to 256 characters without U\+0000/s,
      )
  })

  it('with a row of bytes › accepts base64 as an export writes it, and not beside JSON', () => {
    const { json: _, ...fields } = row
    const withBytes = (bytes: unknown, more: object = {}) => problemOf({ row: { ...fields, ...more, bytes } })
    expect([withBytes(''), withBytes('AQI=')]).toEqual(['accepted', 'accepted'])
    for (const bytes of ['AQI', 'AQJ=', 'A Q==', '-_8=', 7]) expect(withBytes(bytes)).toContain('row.bytes is')
    expect(withBytes('AQI=', { json: '1' })).toContain('row.bytes is "AQI="; it must be absent beside JSON')
    expect(problemOf({ row: fields })).toContain('row.json is missing; it must be JSON, unless there are bytes')
    const long = Buffer.alloc(16_000_001).toString('base64')
    expect(withBytes(long)).toContain('it must be base64 of at most 16000000 bytes')
  })

  it.each(['1', '"a"', '{"b":1,"a":[null]}', '"\\ud800"'])('with a row of the JSON %j › accepts it', (json) => {
    expect(problemOf({ row: { ...row, json } })).toBe('accepted')
  })

  it.each(['', ' 1', '{"a": 1}', '{"a":1,"a":1}', '1e400', '"\ud800"', `${'['.repeat(300)}${']'.repeat(300)}`])(
    'with a row of the JSON %j › rejects it',
    (json) => expect(problemOf({ row: { ...row, json } })).toContain('row.json is'),
  )

  it.each(['["k"]', '["a","\\ud800"]', '["a","b","\\u0000"]'])('with a row named %j › accepts it', (name) => {
    expect(problemOf({ row: { ...row, name } })).toBe('accepted')
  })

  it.each(['[]', '"k"', '{}', '[""]', '["","k"]', '[1]', '["a\\u0000","k"]', '[ "k"]', `["${'x'.repeat(513)}"]`])(
    'with a row named %j › rejects it',
    (name) => expect(problemOf({ row: { ...row, name } })).toContain('row.name is'),
  )

  it('with a row of a session › rejects it', () => {
    expect(problemOf({ row: { ...row, scope: 'acme:ann' } })).toContain('row.scope is "acme:ann"; it must be a scope')
  })
})

/** Creates a bundle with these lines between the header and the end. */
function sealBundle(bodies: readonly LineBody[], end: LineBody): Buffer {
  let previous = chainStart
  const lines = [{ bundle: 'threadkeep', version: 1 }, ...bodies, { end }].map((body) => {
    const { line, hash } = createChainLine(previous, body)
    previous = hash
    return `${line}\n`
  })
  return Buffer.from(lines.join(''))
}

const noTotals = { sessions: 0, messages: 0, entries: 0 }

async function createStore(...writes: readonly (TableWrite & { readonly at?: number })[]): Promise<Store> {
  const store = ramStore()
  for (const { at: updatedAt = at, ...write } of writes) await store.table.writeRows('acme', updatedAt, [write])
  return store
}

const named = (key: string, value: TableWrite['value']): TableWrite => ({ namespace: ['cats'], key, value })
const exportText = async (store: Store, options = {}) => (await readAll(exportBundle(store, options))).toString()

describe('a bundle with rows', () => {
  verifies('X-12', 'of a store › has all rows in order, and only those of an exported scope', async () => {
    const store = await createStore(named('b', [1]), named('a', Uint8Array.of(255)))
    await store.table.writeRows('acme', at + 5, [named('b', { '2': 0, b: 1, a: '\ud800' })])
    await store.table.writeRows('zeta', at, [named('c', null)])
    const rowsOf = async (options = {}) =>
      (await exportText(store, options))
        .split('\n')
        .filter((line) => line.includes('"row":'))
        .map((line) => JSON.parse(line).row)
    const expected = [
      { scope: 'acme', name: '["cats","a"]', createdAt: at, updatedAt: at, bytes: '/w==' },
      {
        scope: 'acme',
        name: '["cats","b"]',
        createdAt: at,
        updatedAt: at + 5,
        json: '{"2":0,"b":1,"a":"\\ud800"}',
      },
      { scope: 'zeta', name: '["cats","c"]', createdAt: at, updatedAt: at, json: 'null' },
    ]
    expect(await rowsOf()).toEqual(expected)
    expect(await rowsOf({ scope: 'acme' })).toEqual(expected.slice(0, 2))
    await store.commit(newChange('a', { append: [newMessage('one')] }))
    expect(await rowsOf({ key: 'acme:ann' })).toEqual([])
    expect(await exportText(store)).toContain('{"end":{"entries":0,"messages":1,"rows":3,"sessions":1}')
  })

  it('of more rows than a page › is complete', async () => {
    const writes = Array.from({ length: 250 }, (_, index) => named(`${1_000 + index}`, index))
    const source = await createStore(...writes)
    const [bundle, target] = [await readAll(exportBundle(source)), ramStore()]
    expect(await importBundle(target, openChunks(bundle))).toEqual({
      ...noTotals,
      rows: 250,
      unchanged: 0,
      skipped: [],
      replaced: [],
    })
    expect((await readAll(exportBundle(target))).equals(bundle)).toBe(true)
  })

  verifies('R-04', 'with rows out of order, repeated, miscounted or before a session › is rejected', async () => {
    const session = { key: 'acme', startedAt: at, touchedAt: at, expiresAt: at, last: 0, messages: 0, entries: 0 }
    const other = { ...row, name: '["cats","Zoe"]' }
    const problem = (bodies: readonly LineBody[], end: LineBody) =>
      importBundle(ramStore(), openChunks(sealBundle(bodies, end))).then(
        () => 'accepted',
        (error: Error) => error.message,
      )
    const rows = { ...noTotals, rows: 2 }
    expect(await problem([{ row }, { row: other }], rows)).toBe('accepted')
    expect(await problem([{ row: other }, { row }], rows)).toContain('Line 3 of the bundle has the row ["cats","Miso"]')
    expect(await problem([{ row }, { row }], rows)).toContain('which is out of order')
    expect(await problem([{ row: { ...row, scope: 'b' } }, { row }], rows)).toContain('which is out of order')
    expect(await problem([{ row }], rows)).toContain('counts other lines than there are')
    expect(await problem([{ row }, { session }], { ...rows, sessions: 1, rows: 1 })).toContain(
      'is a session after the rows of tables',
    )
    const open = { session: { ...session, messages: 1, last: 1 } }
    expect(await problem([open, { row }], { ...noTotals, sessions: 1, rows: 1 })).toContain('comes too early')
    expect(await problem([{ row }, { record: { id: 'r', at, body: '1' } }], { ...noTotals, rows: 1 })).toContain(
      'is a record before the end of the entries',
    )
  })

  verifies('R-04', 'with a message id that is repeated in a session › is rejected', async () => {
    const session = { key: 'acme:ann', startedAt: at, touchedAt: at, expiresAt: at, last: 2, messages: 2, entries: 0 }
    const messages = [1, 2].map((sequence) => ({ message: { ...message, sequence, externalId: 'x' } }))
    const bundle = sealBundle([{ session }, ...messages], { sessions: 1, messages: 2, entries: 0 })
    const store = ramStore()
    await expect(importBundle(store, openChunks(bundle))).rejects.toThrow(
      'Line 4 of the bundle repeats the message id "x"',
    )
    expect((await store.readHead(parseKey('acme:ann'), 0)).revision).toBe(0)
  })
})

describe('importBundle', () => {
  const source = () => createStore(named('new', 1), named('other', 2), named('same', 3))
  const target = () => createStore(named('other', 'mine'), named('same', 3), named('own', 4))
  const valuesOf = async (store: Store, scope = 'acme') =>
    (await store.table.listRows(scope, { prefix: [], limit: 9 })).map(({ key, value }) => [key, value])
  const conflict = 'row ["cats","other"] of acme'

  verifies('X-12', 'with rows that differ › refuses, skips or replaces them', async () => {
    const open = openChunks(await readAll(exportBundle(await source())))
    const refused = await target()
    expect(await findBundleConflicts(refused, open)).toEqual([conflict])
    await expect(importBundle(refused, open)).rejects.toMatchObject({ code: 'conflict' })
    expect(await valuesOf(refused)).toEqual(await valuesOf(await target()))
    const skipped = await target()
    expect(await importBundle(skipped, open, { onExisting: 'skip' })).toMatchObject({ rows: 1, skipped: [conflict] })
    expect(await valuesOf(skipped)).toEqual([
      ['new', 1],
      ['other', 'mine'],
      ['own', 4],
      ['same', 3],
    ])
    const replaced = await target()
    expect(await importBundle(replaced, open, { onExisting: 'replace' })).toMatchObject({
      rows: 2,
      replaced: [conflict],
    })
    expect(await valuesOf(replaced)).toEqual([
      ['new', 1],
      ['other', 2],
      ['own', 4],
      ['same', 3],
    ])
    expect((await replaced.table.readRows('acme', [named('same', 3)]))[0]?.revision).toBe(1)
  })

  it('with another scope › writes the rows there; a bundle of two scopes is rejected', async () => {
    const store = await source()
    const other = await target()
    await importBundle(other, openChunks(await readAll(exportBundle(store))), { scope: 'beta' })
    expect([await valuesOf(other, 'beta'), await valuesOf(other)]).toEqual([
      await valuesOf(store),
      await valuesOf(await target()),
    ])
    await store.table.writeRows('zeta', at, [named('a', 1)])
    await expect(
      importBundle(other, openChunks(await readAll(exportBundle(store))), { scope: 'beta' }),
    ).rejects.toMatchObject({ code: 'bad-option', param: 'scope' })
  })
})
