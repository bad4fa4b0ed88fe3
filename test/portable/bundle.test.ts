import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Item } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { importBundle } from '../../src/portable/import.ts'
import { newMessage as line } from '../../src/stores/conformance/fixtures.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { verifies } from '../requirements/verifies.ts'
import { countTurns, useSlowClock } from '../support/slowClock.ts'
import { openChunks, readAll } from './byteStreams.ts'
import { conversation, createStoreWith } from './histories.ts'
import { expectRoundTrip } from './roundTrip.ts'

const lock = { passphrase: 'correct horse', cost: 2 }

describe('exportBundle', () => {
  verifies('X-12', 'round trip › with any history › keeps every byte', () =>
    expectRoundTrip(
      async () => ramStore(),
      async () => ramStore(),
    ),
  )

  verifies(
    'R-03',
    'of many messages and entries › lets other work run, and writes long messages in pieces',
    async () => {
      const item = (index: number): Item => ({
        ...{ kind: 'item', id: `i${index}`, at: 7, category: 'task', importance: 5, marked: false, sources: [] },
        content: `item ${index}`,
      })
      const texts = Array.from({ length: 2_000 }, (_, index) => `message ${index}`)
      const items = Array.from({ length: 2_000 }, (_, index) => item(index))
      const store = await createStoreWith(conversation('acme:ann', texts, [], items))
      using _ = useSlowClock()
      const { value, turns } = await countTurns(readAll(exportBundle(store)))
      expect(value.toString().split('\n')).toHaveLength(texts.length + items.length + 4)
      expect(turns).toBeGreaterThan(20)
      const long = await createStoreWith(conversation('acme:bob', Array(5).fill('x'.repeat(1_000_000))))
      let longest = 0
      for await (const { length } of exportBundle(long)) longest = Math.max(longest, length)
      expect(longest).toBeLessThan(2_100_000)
    },
  )

  it('with sessions, messages and entries › writes one line each in a fixed order with chained hashes', async () => {
    const item: Item = {
      kind: 'item',
      id: 'i1',
      at: 7,
      category: 'task',
      content: 'ü',
      importance: 5,
      marked: false,
      sources: [],
    }
    const store = await createStoreWith(
      conversation('acme:bob', ['b\n\ud83d']),
      conversation('acme:ann', ['a', 'b', 'c', 'd'], [2, 4], [item]),
    )
    const lines = (await readAll(exportBundle(store))).toString().split('\n')
    expect(lines.map((line) => line.replace(/"hash":"([0-9a-f]{4})[0-9a-f]{60}"/, '"hash":"$1…"'))).toEqual([
      '{"bundle":"threadkeep","hash":"2f5c…","version":1}',
      '{"hash":"cbc9…","session":{"entries":1,"expiresAt":9007199254740991,"key":"acme:ann","last":4,"messages":2,"startedAt":1000,"touchedAt":2000}}',
      '{"hash":"8ec4…","message":{"at":1000,"content":"a","lineTokens":5,"offset":0,"role":"user","sequence":1,"tokenizer":"test","tokens":5,"weight":5}}',
      '{"hash":"1026…","message":{"at":1000,"content":"c","lineTokens":5,"offset":10,"role":"user","sequence":3,"tokenizer":"test","tokens":5,"weight":5}}',
      '{"entry":{"at":7,"category":"task","content":"ü","id":"i1","importance":5,"kind":"item","marked":false,"sources":[]},"hash":"053e…"}',
      '{"hash":"6893…","session":{"entries":0,"expiresAt":9007199254740991,"key":"acme:bob","last":1,"messages":1,"startedAt":1000,"touchedAt":2000}}',
      '{"hash":"707b…","message":{"at":1000,"content":"b\\n\ufffd","lineTokens":5,"offset":0,"role":"user","sequence":1,"tokenizer":"test","tokens":5,"weight":5}}',
      '{"end":{"entries":1,"messages":3,"sessions":2},"hash":"0c15…"}',
      '',
    ])
  })

  it('with auxiliary records › carries them, and importing twice stores them once', async () => {
    const store = await createStoreWith(conversation('acme:ann', ['a']), conversation('acme:bob', ['b']))
    const ann = parseKey('acme:ann')
    for (const id of ['r1', 'r2', 'r3', 'r4', 'r5'])
      await store.appendRecord(ann, { id, at: 5, body: `{"of":"${id}"}` }, 100)
    const bytes = await readAll(exportBundle(store))
    const target = ramStore()
    await importBundle(target, openChunks(bytes))
    await importBundle(target, openChunks(bytes))
    expect((await target.records(ann, { limit: 9 })).map(({ id }) => id)).toEqual(['r5', 'r4', 'r3', 'r2', 'r1'])
    expect(await readAll(exportBundle(target))).toEqual(bytes)
  })

  it('writes hashes that SHA-256 alone verifies', async () => {
    let previous = ''
    for (const line of (await readAll(exportBundle(await createStoreWith(conversation('acme:ann', ['ü', 'b'])))))
      .toString()
      .trimEnd()
      .split('\n')) {
      const body = line.replace(/"hash":"[0-9a-f]{64}",|,"hash":"[0-9a-f]{64}"(?=\}$)/, '')
      const hash = createHash('sha256')
        .update(previous + body)
        .digest('hex')
      expect(JSON.parse(line).hash).toBe(hash)
      previous = hash
    }
  })

  it('with an empty store › writes a header and an end', async () => {
    const bundle = await readAll(exportBundle(ramStore()))
    expect(bundle.toString().split('\n').length).toBe(3)
    expect(await importBundle(ramStore(), openChunks(bundle))).toEqual({
      sessions: 0,
      messages: 0,
      entries: 0,
      unchanged: 0,
      skipped: [],
      replaced: [],
    })
  })

  it('with a scope or a key › exports only those sessions', async () => {
    const store = await createStoreWith(
      conversation('acme', ['x']),
      conversation('acme:ann', ['x']),
      conversation('acme:bob', ['x']),
      conversation('zeta:ann', ['x']),
    )
    const keys = async (options: Parameters<typeof exportBundle>[1]) =>
      (await readAll(exportBundle(store, options))).toString().match(/(?<="key":")[^"]+/g)
    expect(await keys({ scope: 'acme' })).toEqual(['acme', 'acme:ann', 'acme:bob'])
    expect(await keys({ key: 'acme:bob' })).toEqual(['acme:bob'])
    expect(await keys({ key: 'acme:nobody' })).toEqual(null)
  })

  it('with many messages › writes pages and reports progress', async () => {
    const store = await createStoreWith(
      conversation(
        'acme:ann',
        Array.from({ length: 1_201 }, (_, index) => `${index}`),
        [700],
      ),
      conversation('acme:bob', ['x']),
    )
    const progress: string[] = []
    const chunks: number[] = []
    for await (const chunk of exportBundle(store, {
      onProgress: ({ sessions, messages }) => progress.push(`${sessions} ${messages}`),
    }))
      chunks.push(Buffer.from(chunk).toString().split('\n').length - 1)
    expect(chunks).toEqual([1, 1, 500, 500, 200, 1, 1, 1])
    expect(progress).toEqual(['0 500', '0 1000', '0 1200', '1 1200', '1 1201', '2 1201'])
  })

  it('with messages appended during the export › omits them', async () => {
    const store = await createStoreWith(
      conversation(
        'acme:ann',
        Array.from({ length: 600 }, (_, index) => `${index}`),
      ),
    )
    const before = await readAll(exportBundle(store))
    const late = {
      id: 'x',
      key: parseKey('acme:ann'),
      at: 5,
      epoch: 0,
      append: [line('late')],
      put: [],
      drop: [],
      expiresAt: noExpiry,
    }
    expect((await readAll(exportBundle(store, { onProgress: () => void store.commit(late) }))).equals(before)).toBe(
      true,
    )
  })

  it('with messages erased during the export › throws conflict', async () => {
    const store = await createStoreWith(
      conversation(
        'acme:ann',
        Array.from({ length: 600 }, (_, index) => `${index}`),
      ),
    )
    const exporting = exportBundle(store, {
      onProgress: () => void store.erase(parseKey('acme:ann'), { entries: ['m550'] }),
    })
    await expect(readAll(exporting)).rejects.toMatchObject({ code: 'conflict' })
  })

  it('when aborted › throws', async () => {
    const controller = new AbortController()
    const store = await createStoreWith(conversation('acme:ann', ['x']), conversation('acme:bob', ['x']))
    const exporting = exportBundle(store, { signal: controller.signal, onProgress: () => controller.abort() })
    await expect(readAll(exporting)).rejects.toMatchObject({ code: 'aborted' })
  })
})

describe('exportBundle with a lock', () => {
  it('writes an encrypted bundle that importBundle reads with the passphrase', async () => {
    const store = await createStoreWith(conversation('acme:ann', ['the walrus', 'x'.repeat(200_000)]))
    const plain = await readAll(exportBundle(store))
    const secret = await readAll(exportBundle(store, { encryption: lock }))
    expect(secret.includes('walrus')).toBe(false)
    const other = ramStore()
    await importBundle(other, openChunks(secret), { passphrase: 'correct horse' })
    expect((await readAll(exportBundle(other))).equals(plain)).toBe(true)
  })

  it('with a passphrase in another Unicode normalization › imports it', async () => {
    const secret = await readAll(
      exportBundle(await createStoreWith(conversation('acme:ann', ['x'])), {
        encryption: { ...lock, passphrase: 'caf\u00e9' },
      }),
    )
    expect(await importBundle(ramStore(), openChunks(secret), { passphrase: 'cafe\u0301' })).toMatchObject({
      messages: 1,
    })
  })

  it('twice › writes different bytes unless randomBytes is fixed', async () => {
    const store = await createStoreWith(conversation('acme:ann', ['x']))
    const twice = async (more: object) => {
      const [a, b] = await Promise.all([
        readAll(exportBundle(store, { encryption: { ...lock, ...more } })),
        readAll(exportBundle(store, { encryption: { ...lock, ...more } })),
      ])
      return a.equals(b)
    }
    expect(await twice({})).toBe(false)
    expect(await twice({ randomBytes: (length: number) => new Uint8Array(length).fill(7) })).toBe(true)
  })

  it('with a missing, wrong or empty passphrase or an invalid cost › throws', async () => {
    const secret = openChunks(
      await readAll(exportBundle(await createStoreWith(conversation('acme:ann', ['x'])), { encryption: lock })),
    )
    const attempt = (options: Parameters<typeof importBundle>[2]) => importBundle(ramStore(), secret, options)
    await expect(attempt({})).rejects.toMatchObject({
      code: 'bad-secret',
      message: 'The bundle is encrypted; give the passphrase it was exported with.',
    })
    await expect(attempt({ passphrase: 'wrong' })).rejects.toMatchObject({
      code: 'bad-secret',
      message: 'The passphrase is not the one this bundle was exported with. Nothing was read.',
    })
    await expect(attempt({ passphrase: '' })).rejects.toMatchObject({ code: 'bad-secret' })
    await expect(readAll(exportBundle(ramStore(), { encryption: { passphrase: '' } }))).rejects.toMatchObject({
      code: 'bad-secret',
    })
    await expect(readAll(exportBundle(ramStore(), { encryption: { ...lock, cost: 3 } }))).rejects.toMatchObject({
      code: 'bad-option',
      param: 'cost',
    })
  })

  it('by default › uses scrypt with N = 131,072', async () => {
    const [header = ''] = (await readAll(exportBundle(ramStore(), { encryption: { passphrase: 'x' } })))
      .toString('latin1')
      .split('\n')
    expect(JSON.parse(header).cipher.kdf).toEqual({ name: 'scrypt', n: 131_072, r: 8, p: 1 })
  })
})
