import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { Renderer, singleUnit } from '../../src/context/render.ts'
import { copyText } from '../../src/domain/copyText.ts'
import { parseKey } from '../../src/domain/key.ts'
import { EmbeddingCache } from '../../src/memory/embeddingCache.ts'
import { SecretValues } from '../../src/memory/secretValues.ts'
import { ScopeIndex } from '../../src/search/scopeIndex.ts'
import { type SearchSource, StoreSearch } from '../../src/search/storeSearch.ts'
import { PackedWordTable } from '../../src/search/wordTable.ts'
import { LineAnalyzer } from '../../src/selection/conversationLines.ts'
import { computeRequestCost, parsePrices } from '../../src/server/observability/prices.ts'
import { SessionModels } from '../../src/server/upstreams/sessionModels.ts'
import { EncryptedSessions } from '../../src/stores/encrypted/sessions.ts'
import { EventCounts } from '../../src/stores/ram/eventCounts.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { textAnalysis, wordTable } from '../../src/stores/textAnalysis.ts'
import { LongTextCounts } from '../../src/tokenizers/recentCounts.ts'
import { exactTokenizer, tokenizerNamed } from '../../src/tokenizers/tokenizers.ts'
import { annKey, factWithSpan, nextChange, testKeyring } from '../stores/encrypted/fixtures.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
const megabyte = 1_000_000

async function measureHeap(): Promise<number> {
  for (let round = 0; round < 3; round++) {
    await delay(1)
    collectGarbage()
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Bytes that some work leaves behind. */
async function measureRetained(work: () => unknown): Promise<number> {
  const before = await measureHeap()
  await work()
  return (await measureHeap()) - before
}

let wordCount = 0
/** Text of words that were not used before. */
const createText = (words: number): string =>
  Array.from({ length: words }, () => `word${(wordCount++).toString(26)}`).join(' ')
const createMessage = (sequence: number, content: string) =>
  ({ sequence, at: sequence, role: 'user', lineTokens: 1, content }) as const

describe('a cache', () => {
  it('of decrypted entries › holds none after the store was closed', async () => {
    const inner = ramStore()
    const sessions = new EncryptedSessions(inner, testKeyring('old'))
    const put = Array.from({ length: 20 }, (_, at) => factWithSpan(`f${at}`, 'x'.repeat(megabyte / 10)))
    await sessions.commit(nextChange({ put }))
    const { derived } = await inner.readHead(annKey, 0)
    const before = await measureHeap()
    await sessions.readHead(annKey, 0)
    expect((await measureHeap()) - before).toBeGreaterThan(1.5 * megabyte)
    await sessions.close()
    expect((await measureHeap()) - before).toBeLessThan(0.5 * megabyte)
    expect(derived.length).toBeGreaterThan(20)
  })

  it('of related stems › stays below its bytes', async () => {
    const table = wordTable() as PackedWordTable
    expect(table).toBeInstanceOf(PackedWordTable)
    const related = (stem: string): readonly string[] =>
      [...table.relatedStems(stem, () => true)].map((one) => one.stem)
    const frequent = 'kid hous work money citi friend school car music food travel doctor book game dog weather'
    const stems = new Set(frequent.split(' ').flatMap(related))
    const counts = [...stems].map((stem) => related(stem).length).filter((count) => count <= 1_024)
    // Kept as bytes of numbers, all of them would take more than the limit.
    expect(counts.reduce((sum, count) => sum + 8 * count, 0)).toBeGreaterThan(3 * megabyte)
    expect(table.cachedBytes).toBeGreaterThan(1.9 * megabyte)
    expect(table.cachedBytes).toBeLessThanOrEqual(2 * megabyte)
  })

  it('of search indexes › stays below its bytes, and each is estimated within a third', async () => {
    const source: SearchSource = {
      changes: async ({ scope, id = '' }, { stamp }) => ({
        stamp: 1,
        lineage: '0',
        sessions: stamp === 0 ? [parseKey(`${scope}:${id}`)] : [],
      }),
      readMessages: async (_, after) => (after === 0 ? [createMessage(1, createText(200))] : []),
      readDerived: async () => [],
      readVectors: async (_, __, after) => ({ vectors: [], next: after }),
      readVector: async () => undefined,
      createVectorIndex: () => undefined,
      loadSnapshot: async () => undefined,
      saveSnapshot: () => undefined,
      pause: async () => undefined,
      readEntries: async () => [],
      analysis: textAnalysis,
    }
    const finder = new StoreSearch(source, 5 * megabyte)
    for (let session = 0; session < 100; session++)
      await finder.search({ scope: 'acme', id: `s${session}` }, { text: 'word1', limit: 9 })
    expect(finder.bytes).toBeGreaterThan(3 * megabyte)
    expect(finder.bytes).toBeLessThanOrEqual(5 * megabyte)
    const indexes: ScopeIndex[] = []
    const retained = await measureRetained(() => {
      for (let count = 0; count < 300; count++) {
        const index = new ScopeIndex(textAnalysis)
        index.addMessages(parseKey('acme:ann'), [createMessage(1, createText(500))])
        indexes.push(index)
      }
    })
    const estimate = indexes.reduce((sum, { bytes }) => sum + bytes, 0)
    expect(estimate / retained).toBeGreaterThan(0.67)
    expect(estimate / retained).toBeLessThan(1.5)
  })

  it('of line analyses › stays below its bytes', async () => {
    const analyzer = new LineAnalyzer({ name: 'words', count: (text: string) => text.length } as never)
    for (let message = 0; message < 120; message++)
      analyzer.analyze([Array.from({ length: 500 }, (_, line) => `${message} ${line}`).join('\n')])
    expect(analyzer.cachedBytes).toBeGreaterThan(12 * megabyte)
    expect(analyzer.cachedBytes).toBeLessThanOrEqual(16 * megabyte)
  })

  it('of secret values › drops the oldest of a session', () => {
    const values = new SecretValues()
    for (let number = 0; number < 2_000; number++) values.set(`mark${number}`, `${number}`.padEnd(500, 'x'))
    expect(values.bytes).toBeLessThanOrEqual(256_000)
    expect([values.has('mark0'), values.has('mark1999')]).toEqual([false, true])
    for (const mark of values.keys()) values.delete(mark)
    expect(values.bytes).toBe(0)
  })

  it('of names that clients choose › does not grow with their length', async () => {
    const models = new SessionModels({ upstreams: 'http://127.0.0.1:1/v1' })
    const prices = parsePrices({ asOf: '2026-11-01', models: { m: { input: 1, output: 1 } } })
    const retained = await measureRetained(() => {
      for (let session = 0; session < 600; session++) {
        const model = `${session}`.padEnd(100_000, 'é')
        models.record(parseKey(`acme:s${session}`), model, 'upstream', {}, true)
        computeRequestCost(prices, model, { prompt: 1 })
      }
    })
    expect(models.get(parseKey('acme:s599'))).toBeDefined()
    expect(retained).toBeLessThan(30 * megabyte)
  })

  it('of renderings › keeps no second copy of the messages', async () => {
    const tokenizer = await tokenizerNamed('upper-bound')
    const renderer = new Renderer(tokenizer)
    const messages = Array.from({ length: 150 }, (_, at) => ({
      ...createMessage(at + 1, createText(2_000)),
      ...{ kind: 'message' as const, id: `m${at + 1}`, tokens: 1, tokenizer: 'none', weight: 1, offset: 0 },
    }))
    const size = messages.reduce((sum, { content }) => sum + content.length, 0)
    expect(size).toBeGreaterThan(2 * megabyte)
    const mode = { show: 'block', label: 'Earlier: ', separator: '\n\n' } as const
    const render = () =>
      messages.map((message) => renderer.renderUnit(singleUnit(message), mode, { as: 'whole' }, size)?.tokens)
    const retained = await measureRetained(() => void render())
    expect(render()).toEqual(messages.map(({ content }) => tokenizer.count(`Earlier: user: ${content}\n\n`)))
    expect(retained).toBeLessThan(0.3 * size)
  })

  it('of token counts › does not keep the texts it counted', async () => {
    const tokenizer = await exactTokenizer('o200k_base')
    const retained = await measureRetained(() => {
      for (let text = 0; text < 40; text++) tokenizer.count(`${createText(200)} ${'word '.repeat(200_000)}`)
    })
    expect(retained).toBeLessThan(8 * megabyte)
  })

  it('of counts of long texts › forgets the oldest', () => {
    const counts = new LongTextCounts()
    const texts = ['a', 'b', 'c'].map((letter) => letter.repeat(megabyte))
    let counted = 0
    const countAll = (from: number): void => {
      for (const text of texts.slice(from)) counts.getOrCount(text, () => ++counted)
    }
    countAll(0)
    countAll(1)
    expect(counted).toBe(3)
    countAll(0)
    expect(counted).toBeGreaterThan(3)
  })

  it('of vectors › embeds the oldest texts again', async () => {
    let embedded = 0
    const dimensions = 2_048
    const embed = async (texts: readonly string[]) => texts.map(() => new Float32Array(dimensions).fill(++embedded))
    const cache = new EmbeddingCache({ name: 'constant', dimensions, embed } as never)
    const { signal } = new AbortController()
    const texts = Array.from({ length: 2_100 }, (_, number) => `text ${number}`)
    await cache.embed(texts, signal)
    await cache.embed(texts.slice(-1_500), signal)
    expect(embedded).toBe(2_100)
    await cache.embed(texts.slice(0, 50), signal)
    expect(embedded).toBe(2_150)
  })

  it('of counts by name › forgets names, but no count falls', () => {
    const counts = new EventCounts(100)
    for (let round = 0; round < 3; round++) counts.increment('first')
    for (let name = 0; name < 1_000; name++) counts.increment(`name${name}`)
    expect(counts.size).toBe(100)
    expect(counts.get('first')).toBeGreaterThanOrEqual(3)
    expect(counts.get('name5')).toBeGreaterThanOrEqual(1)
    const before = counts.get('name5')
    counts.increment('name5')
    expect(counts.get('name5')).toBe(before + 1)
  })
})

describe('copyText', () => {
  it('releases the text that a part was cut from', async () => {
    const parts: string[] = []
    const retained = await measureRetained(() => {
      for (let count = 0; count < 50; count++) parts.push(copyText(`${count}`.padEnd(megabyte, 'x').slice(0, 40)))
    })
    expect(retained).toBeLessThan(5 * megabyte)
    expect([parts[7], copyText('short'), copyText('')]).toEqual(['7'.padEnd(40, 'x'), 'short', ''])
  })
})
