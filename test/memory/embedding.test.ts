import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../src/domain/error.ts'
import type { IndexQuery, SearchIndex } from '../../src/domain/ports.ts'
import { type Embedder, type Memory, type MemoryOptions, openMemory, profiles, ramStore } from '../../src/index.ts'
import { createEmbeddingQueue, type EmbeddingQueueOptions, type Sleep } from '../../src/memory/embedding.ts'
import { sharedStore } from '../../src/stores/sharedStore.ts'

const key = 'acme:ann'
const user = (content: string) => ({ role: 'user', content }) as const
const appendTexts = (memory: Memory, ...texts: string[]) => memory.append(key, texts.map(user))
const numbered = (count: number): string[] => Array.from({ length: count }, (_, place) => `note ${place}`)

/** Embedder that records the texts of each call; `fail` may throw instead of an answer. */
function recordingEmbedder(fail: (texts: readonly string[], call: number) => void = () => undefined) {
  const calls: (readonly string[])[] = []
  const embedder: Embedder = {
    name: 'toy',
    async embed(texts) {
      calls.push(texts)
      fail(texts, calls.length - 1)
      return texts.map((text) => Float32Array.of(/cat|grimalkin/.test(text) ? 1 : 0, 1))
    },
  }
  return { embedder, calls, sent: () => calls.flat() }
}

/** Timer whose waits end when the test says so. */
function manualSleep() {
  const waits: { readonly ms: number; readonly end: () => void }[] = []
  const sleep: Sleep = (ms, signal) =>
    new Promise((resolve, reject) => {
      const abort = (): void => reject(signal.reason)
      signal.addEventListener('abort', abort)
      waits.push({ ms, end: resolve })
    })
  return { sleep, waits }
}

const open = (embedder: Embedder, queue: EmbeddingQueueOptions = {}, options: MemoryOptions = {}): Promise<Memory> =>
  openMemory({
    embedder,
    upkeep: false,
    embedding: (store, by, defaults) => createEmbeddingQueue(store, by, { ...defaults, ...queue }),
    ...options,
  })

/** Time for queues to hash the texts of their entries and to call the embedder. */
const reachEmbedder = () => new Promise((resolve) => setTimeout(resolve, 50))

const settled = (memory: Memory) => memory.embeddingProgress({ settled: true })

describe('embedding queue', () => {
  it('with a text that was embedded before › does not send it again, as an entry or as a question', async () => {
    const { embedder, sent } = recordingEmbedder()
    await using memory = await open(embedder)
    await appendTexts(memory, 'a cat', 'a car', 'a cat')
    await settled(memory)
    await memory.append('acme:bob', [user('a car')])
    await settled(memory)
    await memory.search('acme', 'a cat')
    await memory.search('acme', 'a dog')
    await memory.search('acme', 'a dog')
    expect(sent()).toEqual(['a cat', 'a car', 'a dog'])
    expect(await settled(memory)).toEqual({ model: 'toy', done: 4, total: 4 })
  })

  it('with a text that is being embedded for another memory › waits for its vector', async () => {
    let release: () => void = () => undefined
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const { embedder, sent } = recordingEmbedder()
    const slow: Embedder = {
      name: 'toy',
      async embed(texts) {
        const vectors = await embedder.embed(texts)
        await gate
        return vectors
      },
    }
    await using first = await open(slow)
    await using second = await open(slow)
    await Promise.all([appendTexts(first, 'a cat'), appendTexts(second, 'a cat')])
    await reachEmbedder()
    release()
    expect([await settled(first), await settled(second)].map((progress) => progress?.done)).toEqual([1, 1])
    expect(sent()).toEqual(['a cat'])
  })

  it('with a text whose question ran out of time › sends it again', async () => {
    const { embedder, calls } = recordingEmbedder()
    const { sleep, waits } = manualSleep()
    const slow: Embedder = {
      name: 'toy',
      async embed(texts) {
        const vectors = await embedder.embed(texts)
        return calls.length === 1 ? new Promise(() => undefined) : vectors
      },
    }
    await using memory = await open(slow, { sleep })
    const search = memory.search('acme', 'a cat')
    await expect.poll(() => calls.length).toBe(1)
    await appendTexts(memory, 'a cat')
    await reachEmbedder()
    waits[0]?.end()
    await search
    expect(await settled(memory)).toMatchObject({ done: 1, total: 1 })
    expect(calls).toEqual([['a cat'], ['a cat']])
  })

  it('after something was forgotten › keeps no vector in its cache', async () => {
    const { embedder, sent } = recordingEmbedder()
    await using memory = await open(embedder)
    await appendTexts(memory, 'a cat')
    await settled(memory)
    await memory.forget({ key })
    await memory.search('acme', 'a cat')
    expect(sent()).toEqual(['a cat', 'a cat'])
  })

  it('with more entries than may wait › leaves the rest to the store and loses none', async () => {
    const { embedder, calls } = recordingEmbedder()
    const store = ramStore()
    let pagesRead = 0
    const index: SearchIndex = {
      ...sharedStore(store),
      listUnembedded: (...args) => {
        pagesRead++
        return store.listUnembedded(...args)
      },
    }
    const embedding = (_: SearchIndex, by: Embedder) => createEmbeddingQueue(index, by, { maxPending: 10 })
    await using memory = await openMemory({ embedder, store, embedding, upkeep: false })
    await settled(memory)
    const pagesBefore = pagesRead
    await appendTexts(memory, ...numbered(200))
    expect(await settled(memory)).toEqual({ model: 'toy', done: 200, total: 200 })
    expect(calls[0]).toHaveLength(10)
    expect(pagesRead).toBeGreaterThan(pagesBefore)
  })

  it('with long texts › sends fewer of them per call', async () => {
    const { embedder, calls } = recordingEmbedder()
    await using memory = await open(embedder)
    await appendTexts(memory, ...numbered(6).map((text) => text.padEnd(90_000, ' long')))
    await settled(memory)
    expect(calls.map(({ length }) => length)).toEqual([2, 2, 2])
  })

  it('while the embedder fails › tries again with growing delays until all entries have vectors', async () => {
    const { embedder, calls } = recordingEmbedder((_, call) => {
      if (call < 3) throw new Error('out of order')
    })
    const { sleep, waits } = manualSleep()
    await using memory = await open(embedder, { sleep })
    await appendTexts(memory, 'a cat')
    expect(await settled(memory)).toEqual({ model: 'toy', done: 0, total: 1, fault: 'out of order' })
    await appendTexts(memory, 'a car')
    expect(calls).toHaveLength(1)
    for (const attempt of [0, 1, 2]) {
      waits[attempt]?.end()
      await new Promise((resolve) => setImmediate(resolve))
      await settled(memory)
    }
    expect(waits.map(({ ms }) => ms)).toEqual([1_000, 2_000, 4_000])
    expect(await settled(memory)).toEqual({ model: 'toy', done: 2, total: 2 })
  })

  it('with a text that the server refuses › embeds all others and reports the refusal', async () => {
    const { embedder } = recordingEmbedder((texts) => {
      if (texts.includes('note 13')) throw new MemoryError('upstream', 'too long', { status: 400 })
    })
    await using memory = await open(embedder)
    await appendTexts(memory, ...numbered(40))
    expect(await settled(memory)).toEqual({ model: 'toy', done: 39, total: 40, fault: 'too long' })
  })

  it('with too few vectors or other dimensions than before › reports it and stores none of them', async () => {
    const lengths = [2, 3]
    const changing: Embedder = {
      name: 'toy',
      embed: async (texts) => texts.map(() => new Float32Array(lengths.shift() ?? 3).fill(1)),
    }
    await using memory = await open(changing)
    await appendTexts(memory, 'a cat')
    await settled(memory)
    await appendTexts(memory, 'a car')
    expect(await settled(memory)).toMatchObject({
      done: 1,
      fault: 'Embedder toy returned a vector of 3 numbers after vectors of 2. Check that its model has not changed.',
    })
    await using other = await open({ name: 'toy', embed: async () => [] })
    await appendTexts(other, 'a cat')
    expect(await settled(other)).toMatchObject({ done: 0, fault: expect.stringContaining('0 vectors for 1 texts') })
  })
})

describe('a question', () => {
  const profile = { ...profiles.thread, budget: 700 }
  const fill = async (memory: Memory): Promise<void> => {
    const notes = numbered(100).map((text) => `${text} on the invoice`)
    await appendTexts(memory, ...notes.slice(0, 20), 'Our tabby cat is called Miso', ...notes.slice(20))
    await settled(memory)
  }
  const recall = (memory: Memory) => memory.context(key, { query: 'grimalkin' })

  it('of a context › finds a message without a common word', async () => {
    const { embedder, sent } = recordingEmbedder()
    await using memory = await open(embedder, {}, { profile })
    await fill(memory)
    const { text, ledger } = await recall(memory)
    expect(text).toContain('Miso')
    expect(ledger.degraded).toEqual([])
    await recall(memory)
    expect(sent().filter((each) => each === 'grimalkin')).toHaveLength(1)
  })

  it('of a session that fits the context › is not embedded', async () => {
    const { embedder, sent } = recordingEmbedder()
    await using memory = await open(embedder)
    await appendTexts(memory, 'a cat', 'a car')
    await memory.context(key, { query: 'grimalkin' })
    await settled(memory)
    expect(sent()).toEqual(['a cat', 'a car'])
  })

  it('that takes longer than the limit › is recalled by words, with the reason in the ledger', async () => {
    const { embedder } = recordingEmbedder()
    const { sleep, waits } = manualSleep()
    let aborted = false
    const hanging: Embedder = {
      name: 'toy',
      embed: (texts, signal) => {
        if (!texts.includes('grimalkin')) return embedder.embed(texts)
        signal?.addEventListener('abort', () => {
          aborted = true
        })
        setImmediate(() => waits.at(-1)?.end())
        return new Promise(() => undefined)
      },
    }
    await using memory = await open(hanging, { sleep }, { profile })
    await fill(memory)
    const { text, ledger } = await recall(memory)
    expect([text.includes('Miso'), aborted, waits.at(-1)?.ms]).toEqual([false, true, 2_000])
    expect(ledger.degraded).toMatchObject([
      {
        code: 'recall-by-words',
        step: 'recall',
        why: 'the embedder toy did not answer a question within 2000 ms; older messages were found by their words only',
      },
    ])
  })

  it('after a failure › waits a while before it asks the embedder again', async () => {
    let isBroken = true
    const { embedder, sent } = recordingEmbedder((texts) => {
      if (isBroken && texts.includes('grimalkin')) throw new Error('the grimalkin is out')
    })
    let now = 1_000_000
    await using memory = await open(embedder, {}, { profile, clock: () => now })
    await fill(memory)
    const whys: (string | undefined)[] = []
    for (const step of [0, 500, 600]) {
      now += step
      if (step === 600) isBroken = false
      whys.push((await recall(memory)).ledger.degraded[0]?.why.split(';')[0])
    }
    expect(whys).toEqual(['the embedder toy failed', 'the embedder toy failed a moment ago', undefined])
    expect(sent().filter((each) => each === 'grimalkin')).toHaveLength(2)
  })

  it('of a trace › is ranked by words, so that a replay with the same profile shows no difference', async () => {
    const { embedder, sent } = recordingEmbedder()
    await using memory = await open(embedder, {}, { profile })
    await fill(memory)
    const trace = await memory.trace(key, { query: 'grimalkin' })
    expect(trace.ledger.degraded).toMatchObject([
      {
        step: 'recall',
        why: 'a trace is ranked without the embedder; older messages were found by their words only',
      },
    ])
    expect(memory.replay(trace, profile).differences).toEqual([])
    expect(sent()).not.toContain('grimalkin')
  })

  it.each([
    [undefined, 0.2],
    [0.7, 0.7],
  ])('by an embedder of weight %s › gives the ranking the weight %s', async (weight, expected) => {
    const { embedder } = recordingEmbedder()
    const store = ramStore()
    const queries: IndexQuery[] = []
    const recording = {
      ...sharedStore(store),
      search: (...[where, query]: Parameters<SearchIndex['search']>) => {
        queries.push(query)
        return store.search(where, query)
      },
    }
    const weighted = { ...embedder, ...(weight !== undefined && { weight }) }
    await using memory = await open(weighted, {}, { profile, store: recording })
    await fill(memory)
    await recall(memory)
    expect(queries.map(({ vector }) => vector?.weight)).toEqual([expected])
  })

  it('by an embedder whose weight is no share › is refused when the memory opens', async () => {
    const { embedder } = recordingEmbedder()
    await expect(open({ ...embedder, weight: 2 })).rejects.toMatchObject({
      code: 'bad-option',
      message: 'embedder.weight is 2; it must be a number from 0 to 1.',
    })
  })
})
