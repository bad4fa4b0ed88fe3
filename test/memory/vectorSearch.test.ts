import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { type Embedder, type Memory, type MemoryOptions, openMemory } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'

const fresh = createTempPaths()
const key = 'acme:ann'

const openMemoryAt = (file: string, options: MemoryOptions = {}): Promise<Memory> =>
  openMemory({ store: `sqlite:${file}`, ...options })
const appendTexts = (memory: Memory, ...texts: string[]) =>
  memory.append(
    key,
    texts.map((content) => ({ role: 'user', content })),
  )

/** Embedder with a fixed vector per text. */
const embedderOf = (name: string, vectorOf: (text: string) => readonly number[]): Embedder => ({
  name,
  embed: async (texts) => texts.map((text) => Float32Array.from(vectorOf(text))),
})

/** Embedder by topic: how much a text is about animals and about vehicles. */
const topicEmbedder = embedderOf('toy', (text) =>
  [/cat|grimalkin|kitten/i, /car|vehicle|automobile/i, /./].map(
    (words, axis) => (words.test(text) ? 1 : 0) * (axis === 2 ? 0.1 : 1),
  ),
)

const broken: Embedder = { name: 'toy', embed: () => Promise.reject(new Error('the embedder is out of order')) }

function deferred<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

/** Embedder whose calls, numbered from 0, are answered by the test. */
function manualEmbedder({ name, embed }: Embedder) {
  const steps: {
    asked: ReturnType<typeof deferred<readonly string[]>>
    released: ReturnType<typeof deferred<void>>
  }[] = []
  const step = (place: number) => {
    steps[place] ??= { asked: deferred(), released: deferred() }
    return steps[place]
  }
  let calls = 0
  const embedder: Embedder = {
    name,
    async embed(texts) {
      const { asked, released } = step(calls++)
      asked.resolve(texts)
      await released.promise
      return embed(texts)
    },
  }
  return {
    embedder,
    asked: (place: number) => step(place).asked.promise,
    release: (place: number) => step(place).released.resolve(),
  }
}

/** The last word of each text found. */
const lastWords = (results: readonly { readonly entry: object }[]): string[] =>
  results.map(({ entry }) => ('content' in entry ? String(entry.content) : '').split(' ').at(-1) ?? '')

/** The vectors in a file: entry, owner, length. */
function storedVectors(file: string): readonly string[] {
  const database = new DatabaseSync(file, { readOnly: true })
  const rows = database
    .prepare('SELECT id, kind, model, dimensions, length(data) AS bytes FROM vector ORDER BY kind, id')
    .all()
  database.close()
  return rows.map((row) => Object.values(row).join(' '))
}

describe('vector search', () => {
  const dimensions = 24
  const noise = (seed: number, at: number): number => {
    const wave = Math.sin(seed * 12.9898 + at * 78.233) * 43_758.5453
    return wave - Math.floor(wave) - 0.5
  }
  /** Vectors of different lengths; similarity must not depend on length. */
  const direction = (seed: number): number[] =>
    Array.from({ length: dimensions }, (_, at) => noise(seed, at) * (1 + (seed % 7)))
  const cosine = (a: readonly number[], b: readonly number[]): number =>
    a.reduce((sum, value, at) => sum + value * (b[at] as number), 0) / (Math.hypot(...a) * Math.hypot(...b))

  verifies('A-13', 'over thousands of vectors › returns the exact nearest with their cosines', async () => {
    const count = 3_000
    const vectors = Array.from({ length: count }, (_, place) => [...Float32Array.from(direction(place))])
    const embedder = embedderOf('noise', (text) => vectors[Number(text)] as number[])
    // A summary would get a vector of its own.
    await using memory = await openMemoryAt(fresh(), { embedder, upkeep: false })
    await appendTexts(memory, ...vectors.map((_, place) => `${place}`))
    expect(await memory.embeddingProgress({ settled: true })).toEqual({ model: 'noise', done: count, total: count })
    const property = fc.asyncProperty(
      fc.integer({ min: count, max: 1_000_000 }),
      fc.integer({ min: 1, max: 40 }),
      async (seed, limit) => {
        const query = direction(seed)
        const cosines = vectors.map((vector) => cosine(vector, query))
        const found = await memory.search('acme', { vector: query }, { limit })
        const best = [...cosines].sort((a, b) => b - a).slice(0, limit)
        expect(found).toHaveLength(limit)
        expect(new Set(lastWords(found)).size).toBe(limit)
        for (const [rank, word] of lastWords(found).entries()) {
          const score = found[rank]?.score as number
          // Order is checked up to float32 precision; each result has the cosine of its own vector.
          expect([
            Math.abs(score - (cosines[Number(word)] as number)) < 1e-6,
            Math.abs(score - (best[rank] as number)) < 1e-6,
          ]).toEqual([true, true])
        }
      },
    )
    await fc.assert(property, { numRuns: 25 })
  })

  verifies(
    'A-13',
    'by text › finds entries of the same meaning without common words, with the similarity',
    async () => {
      await using memory = await openMemoryAt(fresh(), { embedder: topicEmbedder })
      await appendTexts(memory, 'My cat is called Miso', 'I drive an old automobile', 'It rains in Oslo')
      await memory.embeddingProgress({ settled: true })
      const [best, ...others] = await memory.search('acme', 'grimalkin')
      expect(best).toMatchObject({
        key,
        entry: { id: 'm1', content: 'My cat is called Miso' },
        why: { meaning: expect.closeTo(1, 6) },
      })
      expect(others.map(({ entry, why }) => [entry.id, why.meaning])).toEqual([
        ['m3', expect.closeTo(0.0995, 4)],
        ['m2', expect.closeTo(0.0099, 4)],
      ])
      expect(lastWords(await memory.search('acme', 'vehicle', { limit: 1 }))).toEqual(['automobile'])
      expect(await memory.search('zeta', 'grimalkin')).toEqual([])
    },
  )

  verifies('A-13', 'by vector › needs no embedder and, after reopening, finds entries of the named model', async () => {
    const file = fresh()
    {
      await using memory = await openMemoryAt(file, { embedder: topicEmbedder })
      await appendTexts(memory, 'A cat', 'A car', 'A cat in a car')
      await memory.embeddingProgress({ settled: true })
    }
    await using memory = await openMemoryAt(file)
    expect(await memory.embeddingProgress()).toBeUndefined()
    const found = await memory.search('acme', { vector: [5, 0, 0], model: 'toy' }, { limit: 2 })
    expect(found.map(({ entry, score, why }) => [entry.id, score, why])).toEqual([
      ['m1', expect.closeTo(0.995037, 5), { meaning: expect.closeTo(0.995037, 5) }],
      ['m3', expect.closeTo(0.705346, 5), { meaning: expect.closeTo(0.705346, 5) }],
    ])
    expect(await memory.search('acme', { vector: [5, 0, 0], model: 'other' })).toEqual([])
    expect(await memory.search('acme', { vector: [5, 0], model: 'toy' })).toEqual([])
    await expect(memory.search('acme', { vector: [5, 0, 0] })).rejects.toMatchObject({
      code: 'bad-option',
      param: 'model',
    })
  })

  verifies(
    'A-01',
    'finds messages, derived entries and knowledge of a scope, all stored in one file with their vectors',
    async () => {
      const file = fresh()
      {
        await using memory = await openMemoryAt(file, { embedder: topicEmbedder })
        await appendTexts(memory, 'Miso is a cat', ' ')
        await memory.remember('acme', { category: 'user_preference', key: 'travel', value: 'prefers the car' })
        await memory.embeddingProgress({ settled: true })
      }
      {
        const store = sqliteStore(file)
        const fact = {
          kind: 'fact',
          id: 'f1',
          at: 1,
          field: 'facts',
          key: 'pet',
          value: 'a kitten in the car',
          importance: 1,
          sources: [{ message: 'm1' }],
        } as const
        await store.commit({
          id: 'learn',
          key: parseKey(key),
          at: 1,
          epoch: 0,
          append: [],
          put: [fact],
          drop: [],
          expiresAt: Number.MAX_SAFE_INTEGER,
        })
        await store.close()
      }
      await using memory = await openMemoryAt(file, { embedder: topicEmbedder })
      expect(await memory.embeddingProgress({ settled: true })).toEqual({ model: 'toy', done: 3, total: 3 })
      const found = await memory.search('acme', { vector: [1, 0, 0] })
      expect(found.map((hit) => [hit.key, hit.entry.kind, hit.score])).toEqual([
        ['acme:ann', 'message', expect.closeTo(0.995, 3)],
        ['acme:ann', 'fact', expect.closeTo(0.705, 3)],
        ['acme', 'knowledge', 0],
      ])
      expect(
        (await memory.search('acme', { vector: [0, 1, 0] }, { kinds: ['knowledge'] })).map(({ entry }) => entry.kind),
      ).toEqual(['knowledge'])
      expect(storedVectors(file).map((row) => row.replace(/^\S{36}/, 'k'))).toEqual([
        'f1 fact toy 3 12',
        'k1 knowledge toy 3 12',
        'm1 message toy 3 12',
      ])
    },
  )
})

describe('an embedder', () => {
  const about = (text: string): number => (text.startsWith('cat') ? 1 : 0)
  /** The two embedders disagree on what is near: mixing their vectors would return the wrong half. */
  const older = embedderOf('older', (text) => [about(text), 1 - about(text)])
  const newer = embedderOf('newer', (text) => [1 - about(text), about(text)])
  const texts = Array.from({ length: 100 }, (_, place) => `${place % 2 === 0 ? 'cat' : 'dog'} ${place}`)

  verifies(
    'A-13',
    'replaced › re-embeds everything in the background and never compares vectors across models',
    async () => {
      const file = fresh()
      {
        await using memory = await openMemoryAt(file, { embedder: older })
        await appendTexts(memory, ...texts)
        await memory.embeddingProgress({ settled: true })
      }
      const steps = manualEmbedder(newer)
      await using memory = await openMemoryAt(file, { embedder: steps.embedder })
      const near = async (model: string) => {
        const vector = model === 'newer' ? [0, 1] : [1, 0]
        const found = await memory.search('acme', { vector, model }, { limit: 1_000 })
        return {
          all: found.length,
          right: found.filter(({ entry, score }) => 'content' in entry && about(entry.content) === Math.round(score))
            .length,
        }
      }
      await steps.asked(0)
      expect(await memory.embeddingProgress()).toEqual({ model: 'newer', done: 0, total: 100 })
      expect([await near('older'), await near('newer')]).toEqual([
        { all: 100, right: 100 },
        { all: 0, right: 0 },
      ])
      steps.release(0)
      await steps.asked(1)
      expect(await memory.embeddingProgress()).toEqual({ model: 'newer', done: 64, total: 100 })
      expect([await near('older'), await near('newer')]).toEqual([
        { all: 36, right: 36 },
        { all: 64, right: 64 },
      ])
      steps.release(1)
      expect(await memory.embeddingProgress({ settled: true })).toEqual({ model: 'newer', done: 100, total: 100 })
      expect([await near('older'), await near('newer')]).toEqual([
        { all: 0, right: 0 },
        { all: 100, right: 100 },
      ])
    },
  )

  it('failing › leaves lexical search working, is reported, and a later opening catches up', async () => {
    const file = fresh()
    {
      await using memory = await openMemoryAt(file, { embedder: broken })
      await appendTexts(memory, 'My cat is called Miso')
      expect(await memory.embeddingProgress({ settled: true })).toEqual({
        model: 'toy',
        done: 0,
        total: 1,
        fault: 'the embedder is out of order',
      })
      expect(lastWords(await memory.search('acme', 'what is my cat called?'))).toEqual(['Miso'])
      expect(await memory.search('acme', 'grimalkin')).toEqual([])
      expect((await memory.context(key)).messages).toHaveLength(1)
    }
    await using memory = await openMemoryAt(file, { embedder: topicEmbedder })
    expect(await memory.embeddingProgress({ settled: true })).toEqual({ model: 'toy', done: 1, total: 1 })
    expect(lastWords(await memory.search('acme', 'grimalkin'))).toEqual(['Miso'])
  })

  it('does not delay append or lexical search', async () => {
    const steps = manualEmbedder(topicEmbedder)
    await using memory = await openMemoryAt(fresh(), { embedder: steps.embedder })
    await appendTexts(memory, 'My cat is called Miso')
    expect(await steps.asked(0)).toEqual(['My cat is called Miso'])
    await appendTexts(memory, 'It rains')
    expect(await memory.transcript(key)).toHaveLength(2)
    expect(await memory.embeddingProgress()).toEqual({ model: 'toy', done: 0, total: 2 })
    steps.release(0)
    steps.release(1)
    expect(await memory.embeddingProgress({ settled: true })).toEqual({ model: 'toy', done: 2, total: 2 })
  })

  verifies('A-01', 'answering late › adds no vector for entries forgotten meanwhile', async () => {
    const file = fresh()
    const steps = manualEmbedder(topicEmbedder)
    await using memory = await openMemoryAt(file, { embedder: steps.embedder })
    await appendTexts(memory, 'The cat knows the code 1234', 'The car is red')
    await steps.asked(0)
    await memory.forget({ key, messageId: 'm1' })
    steps.release(0)
    expect(await memory.embeddingProgress({ settled: true })).toEqual({ model: 'toy', done: 1, total: 1 })
    expect(lastWords(await memory.search('acme', { vector: [1, 0, 0] }))).toEqual(['red'])
    expect(storedVectors(file)).toEqual(['m2 message toy 3 12'])
  })

  verifies('A-01', 'answering late › adds no vector of a forgotten session to a new one with its key', async () => {
    const file = fresh()
    const steps = manualEmbedder(topicEmbedder)
    await using memory = await openMemoryAt(file, { embedder: steps.embedder })
    await appendTexts(memory, 'A cat')
    await steps.asked(0)
    await memory.forget({ key })
    await appendTexts(memory, 'A car')
    steps.release(0)
    await steps.asked(1)
    expect(storedVectors(file)).toEqual([])
    steps.release(1)
    await memory.embeddingProgress({ settled: true })
    expect((await memory.search('acme', { vector: [0, 1, 0] })).map(({ entry, score }) => [entry.id, score])).toEqual([
      ['m1', expect.closeTo(0.995, 3)],
    ])
  })

  it('its vectors are deleted with the entries', async () => {
    const file = fresh()
    await using memory = await openMemoryAt(file, { embedder: topicEmbedder })
    await appendTexts(memory, 'A cat', 'A car')
    await memory.remember('acme', { category: 'domain', key: 'pet', value: 'kitten' })
    await memory.embeddingProgress({ settled: true })
    expect(await memory.search('acme', { vector: [1, 0, 0] })).toHaveLength(3)
    await memory.forget({ key, messageId: 'm1' })
    expect((await memory.search('acme', { vector: [1, 0, 0] })).map(({ entry }) => entry.kind)).toEqual([
      'knowledge',
      'message',
    ])
    await memory.forget({ scope: 'acme' })
    expect([await memory.search('acme', { vector: [1, 0, 0] }), storedVectors(file)]).toEqual([[], []])
  })
})
