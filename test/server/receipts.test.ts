import { zstdCompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { parseKey, receiptsKey } from '../../src/domain/key.ts'
import type { Ledger } from '../../src/domain/ledger.ts'
import type { Store } from '../../src/domain/ports.ts'
import { never } from '../../src/domain/session.ts'
import { compacted, restored } from '../../src/server/receipts/receiptForm.ts'
import {
  findReceipt,
  keepReceipt,
  keyOfReceipt,
  listReceipts,
  type Receipt,
  receiptId,
} from '../../src/server/receipts/receipts.ts'
import { said } from '../../src/stores/conformance/fixtures.ts'
import { ramStore } from '../../src/stores/ram.ts'

const ann = parseKey('acme:ann')
const home = receiptsKey(ann)
const start = 1_800_000_000_000

const ledger: Ledger = {
  ...{
    profile: 'support',
    tokenizer: 'o200k_base',
    counted: 'exact',
    budget: 8_000,
    spent: 500,
    history: 900,
    due: false,
  },
  cacheable: { messages: 4, tokens: 300 },
  lines: [
    { band: 'frame', entries: null, count: 0, verdict: 'whole', tokens: 7, why: 'headings and what the provider adds' },
    { band: 'none', entries: ['m1', 'm9'], count: 8, verdict: 'dropped', tokens: 0, why: 'no room' },
    { band: 'recent', entries: ['m10', 'm12'], count: 3, verdict: 'whole', tokens: 400, why: 'recent' },
    { band: 'recent', entries: ['m13', 'm13'], count: 1, verdict: 'shortened', tokens: 93, why: 'recent; clip' },
    { band: 'none', entries: ['k1', 'k1'], count: 1, verdict: 'dropped', tokens: 0, why: 'no room', from: 'scope' },
    { band: 'none', entries: ['k2', 'k2'], count: 1, verdict: 'dropped', tokens: 0, why: 'no room', from: 'scope' },
    { band: 'none', entries: ['k3', 'k3'], count: 1, verdict: 'dropped', tokens: 0, why: 'no room', from: 'person' },
  ],
  knowledge: ['k4'],
  degraded: [{ step: 'summary', why: 'timeout' }],
}

const receiptOf = (number: number): Receipt => ({
  ...{
    id: receiptId(ann),
    key: 'acme:ann',
    at: start + number,
    request: `req${number}`,
    response: `chatcmpl-${number}`,
    sequence: 2 * number,
  },
  ...{ protocol: 'chat', model: 'gpt-5.4-mini', upstream: 'openai', how: 'continued' },
  tokens: {
    shown: 500,
    history: 900,
    saved: 400,
    cacheable: 300,
    cacheableShare: 0.6,
    prompt: 510,
    completion: 12,
    cached: null,
  },
  cost: { input: 0.0005, output: 0.0001, total: 0.0006, currency: 'USD', isEstimated: false, spared: null },
  degraded: ['summary timeout'],
  ledger,
})

/** A store with a session, and so many receipts beside it. */
async function withReceipts(many: number): Promise<{ readonly store: Store; readonly kept: readonly Receipt[] }> {
  const store = ramStore()
  await store.commit({ key: ann, at: start, epoch: 0, append: [said('Hello')], put: [], drop: [], expiresAt: never })
  const kept = Array.from({ length: many }, (_, place) => receiptOf(place + 1))
  for (const receipt of kept) await keepReceipt(store, ann, receipt)
  return { store, kept }
}

/** What of a store is the receipts of one session: bytes of their JSON. */
async function bytesIn(store: Store): Promise<number> {
  const { derived } = await store.head(home, 0)
  return JSON.stringify([await store.page(home, { limit: 9_999 }), derived]).length
}

describe('a receipt', () => {
  it('is the same after it was kept, down to its last byte', async () => {
    const { store, kept } = await withReceipts(1)
    expect(JSON.stringify(await findReceipt(store, ann, { id: kept[0]?.id ?? '' }))).toBe(JSON.stringify(kept[0]))
  })

  it('is the same without a ledger, a reply of its own id or a count of its tokens', () => {
    const tokens = {
      ...receiptOf(1).tokens,
      shown: 0,
      history: 0,
      saved: 0,
      cacheable: 0,
      cacheableShare: 0,
      prompt: null,
      completion: null,
    }
    const bare: Receipt = {
      ...receiptOf(1),
      response: null,
      sequence: null,
      cost: null,
      degraded: [],
      ledger: null,
      tokens,
    }
    expect(restored(compacted(bare), 'acme:ann', bare.at)).toEqual(bare)
  })

  it('takes less than half as many bytes by itself, and a tenth among others', async () => {
    const whole = JSON.stringify(receiptOf(1)).length
    expect(JSON.stringify(compacted(receiptOf(1))).length).toBeLessThan(whole / 2)
    const { store } = await withReceipts(201)
    expect((await bytesIn(store)) / 201).toBeLessThan(whole / 10)
  })

  it('names hundreds of entries that were left out for the same reason by their ids alone', () => {
    const line = { band: 'none', count: 1, verdict: 'dropped', tokens: 0, why: 'no room', from: 'scope' } as const
    const lines = Array.from({ length: 400 }, (_, at) => ({ ...line, entries: [`k${at}`, `k${at}`] as const }))
    const receipt = { ...receiptOf(1), ledger: { ...ledger, lines } }
    expect(restored(compacted(receipt), 'acme:ann', receipt.at)).toEqual(receipt)
    expect(JSON.stringify(compacted(receipt)).length).toBeLessThan(400 * 12)
  })

  it('is found under the key to which its session has moved', async () => {
    const { store, kept } = await withReceipts(9)
    const [ben] = [parseKey('acme:ben')]
    const { derived } = await store.head(home, 0)
    const append = (await store.page(home, { limit: 99 })).map(({ at, calls }) => ({
      ...said(''),
      at,
      ...(calls === undefined ? {} : { calls }),
    }))
    const from = { sequence: 9, offset: 0 }
    await store.commit({
      key: receiptsKey(ben),
      at: start,
      epoch: 0,
      append,
      from,
      put: derived,
      drop: [],
      expiresAt: never,
    })
    const { items } = await listReceipts(store, ben, 99)
    expect(items.map(({ response }) => response)).toEqual(kept.map(({ response }) => response).reverse())
    for (const { id, key } of items) expect([key, keyOfReceipt(id)]).toEqual(['acme:ben', ben])
  })
})

describe('the receipts of a session', () => {
  it('are the last thousand at least, newest first, each of them once', async () => {
    const { store, kept } = await withReceipts(1_203)
    const newest = kept.toReversed()
    const { items } = await listReceipts(store, ann, 5_000)
    expect(items.length).toBeGreaterThanOrEqual(1_000)
    expect(items.length).toBeLessThan(1_100)
    expect(items.map((item) => JSON.stringify(item))).toEqual(
      newest.slice(0, items.length).map((item) => JSON.stringify(item)),
    )
    for (const place of [0, 7, 500, 999])
      expect(await findReceipt(store, ann, { response: newest[place]?.response ?? '' })).toEqual(newest[place])
    expect(await findReceipt(store, ann, { id: kept[0]?.id ?? '' })).toBeUndefined()
  })

  it('are told page by page, across those that were packed together', async () => {
    const { store, kept } = await withReceipts(30)
    const pages: string[][] = []
    for (let next: string | null = String(never); next !== null; ) {
      const page: Awaited<ReturnType<typeof listReceipts>> = await listReceipts(store, ann, 7, Number(next))
      pages.push(page.items.map(({ request }) => request))
      next = page.next
    }
    expect(pages.map(({ length }) => length)).toEqual([7, 7, 7, 7, 2])
    expect(pages.flat()).toEqual(kept.map(({ request }) => request).reverse())
  })

  it('are told in order beside blocks of any size, packed or plain, and fill up those that have room', async () => {
    const { store } = await withReceipts(0)
    const kept = Array.from({ length: 240 }, (_, place) => receiptOf(place + 1))
    const plain = JSON.stringify(kept.slice(0, 5).map((receipt, place) => [place + 1, receipt.at, compacted(receipt)]))
    const tight = JSON.stringify(kept.slice(5, 45).map((receipt, place) => [place + 6, receipt.at, compacted(receipt)]))
    const put = [
      { kind: 'about', id: 'r1-5', at: start, metadata: plain, sources: [] },
      {
        kind: 'about',
        id: 'r6-45',
        at: start,
        metadata: zstdCompressSync(Buffer.from(tight)).toString('base64'),
        sources: [],
      },
    ] as const
    await store.commit({
      key: home,
      at: start,
      epoch: 0,
      from: { sequence: 46, offset: 0 },
      append: [],
      put,
      drop: [],
      expiresAt: never,
    })
    for (const receipt of kept.slice(45)) await keepReceipt(store, ann, receipt)
    const { items } = await listReceipts(store, ann, 999)
    expect(items.map((item) => JSON.stringify(item))).toEqual(kept.map((item) => JSON.stringify(item)).reverse())
    const { derived } = await store.head(home, 0)
    const small = ['r190-197', 'r198-205', 'r206-213', 'r214-221', 'r222-229', 'r230-237']
    expect(derived.map(({ id }) => id)).toEqual(['r1-61', 'r62-125', 'r126-189', ...small])
  })

  it('are told beside those of an earlier form, which had all in one, and packed with them', async () => {
    const { store } = await withReceipts(0)
    const kept = Array.from({ length: 80 }, (_, place) => receiptOf(place + 1))
    const append = kept.slice(0, 3).map((receipt) => ({
      ...said(''),
      at: receipt.at,
      calls: [{ id: '', name: '', arguments: JSON.stringify(compacted(receipt)) }],
    }))
    await store.commit({ key: home, at: start, epoch: 0, append, put: [], drop: [], expiresAt: never })
    const told = async () => (await listReceipts(store, ann, 99)).items.map((item) => JSON.stringify(item))
    expect(await told()).toEqual(
      kept
        .slice(0, 3)
        .map((item) => JSON.stringify(item))
        .reverse(),
    )
    for (const receipt of kept.slice(3)) await keepReceipt(store, ann, receipt)
    expect(await told()).toEqual(kept.map((item) => JSON.stringify(item)).reverse())
  })

  it('are all kept when many come at the same time, and packed together later', async () => {
    const { store } = await withReceipts(0)
    const many = Array.from({ length: 300 }, (_, place) => receiptOf(place + 1))
    await Promise.all(many.map((receipt) => keepReceipt(store, ann, receipt)))
    for (let number = 301; number <= 306; number++) await keepReceipt(store, ann, receiptOf(number))
    const { items } = await listReceipts(store, ann, 999)
    expect(new Set(items.map(({ request }) => request)).size).toBe(306)
    expect(items).toHaveLength(306)
    expect((await store.head(home, 0)).messages).toBeLessThan(64)
  })

  it('are not packed with one that is damaged, and are all there once that is gone', async () => {
    const { store, kept } = await withReceipts(7)
    await store.commit({
      key: home,
      at: start,
      epoch: 0,
      append: [said('no receipt')],
      put: [],
      drop: [],
      expiresAt: never,
    })
    await expect(keepReceipt(store, ann, receiptOf(9))).rejects.toMatchObject({ code: 'corrupt' })
    await store.erase(home, { entries: ['m8'] })
    const { items } = await listReceipts(store, ann, 99)
    expect(items.map(({ request }) => request)).toEqual(kept.map(({ request }) => request).reverse())
  })

  it('do not come back when their session ends while one of them is kept', async () => {
    const { store } = await withReceipts(3)
    await store.erase(ann)
    await store.erase(home)
    await keepReceipt(store, ann, receiptOf(4))
    expect(await store.list({ limit: 9 })).toEqual([])
  })

  it('have no end of their own', async () => {
    const { store } = await withReceipts(9)
    expect((await store.head(home, 0)).expiresAt).toBe(never)
  })
})
