import { afterAll, describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import type { Ledger } from '../../src/domain/ledger.ts'
import type { Store } from '../../src/domain/ports.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { openMemory } from '../../src/index.ts'
import {
  findReceipt,
  findReceiptById,
  hasReceiptBetween,
  keyOfReceipt,
  listReceipts,
  newReceiptId,
  type Receipt,
  storeReceipt,
} from '../../src/server/receipts.ts'
import { newMessage } from '../../src/stores/conformance/fixtures.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { zstdCompressor } from '../../src/stores/zstd.ts'
import { sendRaw, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { startServer, user } from './start.ts'

const ann = parseKey('acme:ann')
const start = 1_800_000_000_000

const ledger: Ledger = {
  profile: 'support',
  tokenizer: 'o200k_base',
  counted: 'exact',
  budget: 8_000,
  spent: 500,
  history: 900,
  due: false,
  cacheable: { messages: 4, tokens: 300 },
  lines: [
    { band: 'frame', entries: null, count: 0, verdict: 'whole', tokens: 7, why: 'headings and provider overhead' },
    { band: 'none', entries: ['m1', 'm9'], count: 8, verdict: 'dropped', tokens: 0, why: 'budget used up' },
    { band: 'recent', entries: ['m10', 'm12'], count: 3, verdict: 'whole', tokens: 400, why: 'recent message' },
    {
      band: 'none',
      entries: ['k1', 'k1'],
      count: 1,
      verdict: 'dropped',
      tokens: 0,
      why: 'budget used up',
      from: 'scope',
    },
  ],
  knowledge: ['k4'],
  degraded: [{ step: 'summary', why: 'timeout', code: 'summary-timeout', message: 'No summary.' }],
}

const receiptOf = (number: number): Receipt => ({
  id: newReceiptId(ann),
  key: 'acme:ann',
  at: start + number,
  request: `req${number}`,
  response: `chatcmpl-${number}`,
  sequence: 2 * number,
  history: 'thin',
  client: '00000000',
  protocol: 'chat',
  model: 'gpt-5.4-mini',
  upstream: 'openai',
  relation: 'continued',
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
  cost: {
    input: 0.0005,
    output: 0.0001,
    total: 0.0006,
    currency: 'USD',
    isEstimated: false,
    saved: 0.0004,
    cacheDiscount: 0,
  },
  degraded: [{ code: 'summary-timeout', message: 'No summary.' }],
  ledger,
})

const compressingStore = () => ramStore(zstdCompressor === undefined ? {} : { compressor: zstdCompressor })

/** A store with a session and this many receipts beside it. */
async function storeWithReceipts(count: number): Promise<{ readonly store: Store; readonly kept: readonly Receipt[] }> {
  const store = compressingStore()
  await store.commit({
    key: ann,
    at: start,
    epoch: 0,
    append: [newMessage('Hello')],
    put: [],
    drop: [],
    expiresAt: noExpiry,
  })
  const kept = Array.from({ length: count }, (_, index) => receiptOf(index + 1))
  for (const receipt of kept) await storeReceipt(store, ann, receipt)
  return { store, kept }
}

describe('a stored receipt', () => {
  it('reads back byte for byte', async () => {
    const { store, kept } = await storeWithReceipts(1)
    expect(JSON.stringify(await findReceiptById(store, ann, kept[0]?.id ?? ''))).toBe(JSON.stringify(kept[0]))
  })

  it('without ledger, response id and token counts reads back equal', async () => {
    const { store } = await storeWithReceipts(0)
    const bare: Receipt = {
      ...receiptOf(1),
      response: null,
      sequence: null,
      cost: null,
      degraded: [],
      ledger: null,
      tokens: { ...receiptOf(1).tokens, prompt: null, completion: null },
    }
    await storeReceipt(store, ann, bare)
    expect((await listReceipts(store, ann, 1)).items).toEqual([bare])
  })

  it('names its session in its id', () => {
    expect(keyOfReceipt(newReceiptId(ann))).toEqual(ann)
    expect(keyOfReceipt('rc_x')).toBeUndefined()
  })

  it('is found under the new key after a transfer, with an id of that key', async () => {
    const { store, kept } = await storeWithReceipts(9)
    const memory = await openMemory({ profile: 'support', sessions: store as never })
    await memory.transfer('acme:ann', 'acme:ben')
    const ben = parseKey('acme:ben')
    const { items } = await listReceipts(store, ben, 99)
    expect(items.map((item) => 'response' in item && item.response)).toEqual(
      kept.map(({ response }) => response).reverse(),
    )
    for (const { id, key } of items) expect([key, keyOfReceipt(id)]).toEqual(['acme:ben', ben])
    expect((await listReceipts(store, ann, 99)).items).toEqual([])
  })

  it('that is damaged is reported as corrupt', async () => {
    const { store } = await storeWithReceipts(0)
    await store.appendRecord(ann, { id: '0123456789abcdef', at: start, body: '{' }, 10)
    await expect(listReceipts(store, ann, 1)).rejects.toMatchObject({ code: 'corrupt' })
  })
})

describe('the receipts of a session', () => {
  it('are at least the newest thousand, newest first, each once', async () => {
    const { store, kept } = await storeWithReceipts(1_203)
    const newest = kept.toReversed()
    const { items } = await listReceipts(store, ann, 5_000)
    expect(items.length).toBeGreaterThanOrEqual(1_000)
    expect(items.length).toBeLessThan(1_100)
    expect(items.map((item) => JSON.stringify(item))).toEqual(
      newest.slice(0, items.length).map((item) => JSON.stringify(item)),
    )
    for (const index of [0, 7, 500, 999])
      expect(await findReceipt(store, ann, { response: newest[index]?.response ?? '' })).toEqual(newest[index])
    expect(await findReceiptById(store, ann, kept[0]?.id ?? '')).toBeUndefined()
  })

  it('are listed page by page across compressed blocks', async () => {
    const { store, kept } = await storeWithReceipts(30)
    const pages: string[][] = []
    for (let next: string | null = String(noExpiry); next !== null; ) {
      const page: Awaited<ReturnType<typeof listReceipts>> = await listReceipts(store, ann, 7, Number(next))
      pages.push(page.items.map((item) => ('request' in item ? item.request : '')))
      next = page.next
    }
    expect(pages.map(({ length }) => length)).toEqual([7, 7, 7, 7, 2])
    expect(pages.flat()).toEqual(kept.map(({ request }) => request).reverse())
  })

  it('take less than a third of their JSON in RAM once there are many', async () => {
    const store = compressingStore()
    await store.commit({
      key: ann,
      at: start,
      epoch: 0,
      append: [newMessage('Hello')],
      put: [],
      drop: [],
      expiresAt: noExpiry,
    })
    const before = store.capabilities.memoryLimit.memoryUsage.usedBytes
    for (let number = 1; number <= 200; number++) await storeReceipt(store, ann, receiptOf(number))
    expect((store.capabilities.memoryLimit.memoryUsage.usedBytes - before) / 200).toBeLessThan(
      JSON.stringify(receiptOf(1)).length / 3,
    )
    await store.erase(ann)
    expect(store.capabilities.memoryLimit.memoryUsage.usedBytes).toBe(0)
  })

  it('are all stored when many arrive at once', async () => {
    const { store } = await storeWithReceipts(0)
    await Promise.all(Array.from({ length: 300 }, (_, index) => storeReceipt(store, ann, receiptOf(index + 1))))
    const { items } = await listReceipts(store, ann, 999)
    expect(new Set(items.map((item) => 'request' in item && item.request)).size).toBe(300)
    expect(items).toHaveLength(300)
  })

  it('are not stored after their session was erased', async () => {
    const { store } = await storeWithReceipts(3)
    await store.erase(ann)
    await storeReceipt(store, ann, receiptOf(4))
    expect(await store.list({ limit: 9 })).toEqual([])
    expect((await listReceipts(store, ann, 9)).items).toEqual([])
  })

  it('tell whether a reply in a range of sequence numbers came from this server', async () => {
    const { store } = await storeWithReceipts(3)
    expect(await hasReceiptBetween(store, ann, 3, 5)).toBe(true)
    expect(await hasReceiptBetween(store, ann, 7, 99)).toBe(false)
  })

  it('are in no session list, head, transcript or search result', async () => {
    const { store } = await storeWithReceipts(9)
    expect((await store.list({ limit: 9 })).map(({ key, messages }) => [key.id, messages])).toEqual([['ann', 1]])
    const head = await store.readHead(ann, 99)
    expect([head.messages, head.recent.length, head.derived]).toEqual([1, 1, []])
    const memory = await openMemory({ store: store as never })
    expect(await memory.search('acme', 'chatcmpl gpt continued support')).toEqual([])
    afterAll(() => memory.close())
  })
})

verifies('X-08', 'the receipt of a turn › with a secret as model and as id of the response › has neither', async () => {
  const [model, id] = ['a', 'b'].map((letter) => `gh${'p_'}${`${letter}B3dE5gH7jK9`.repeat(3)}`)
  const message = { role: 'assistant', content: 'Fine.' }
  const reply = { id, choices: [{ index: 0, message, finish_reason: 'stop' }] }
  await using upstream = await startUpstream(sendRaw('application/json', JSON.stringify(reply)))
  const store = ramStore()
  await using server = await startServer({ upstream: upstream.url, memory: { store, sessions: store, upkeep: false } })
  expect((await server.postChat('acme:ann', { model, messages: [user('Hello.')] })).status).toBe(200)
  const [record] = await store.records(ann, { limit: 9 })
  expect(JSON.parse(record?.body ?? '')).toMatchObject({ model: '⟨secret:0⟩', response: '⟨secret:0⟩' })
})
