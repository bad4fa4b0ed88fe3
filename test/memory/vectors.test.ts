import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { type Embedder, type Memory, type MemoryOptions, openMemory } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { freshFiles } from '../stores/tempPaths.ts'

const fresh = freshFiles()
const key = 'acme:ann'

const openAt = (file: string, options: MemoryOptions = {}): Promise<Memory> =>
  openMemory({ store: `sqlite:${file}`, ...options })
const say = (memory: Memory, ...texts: string[]) =>
  memory.append(
    key,
    texts.map((content) => ({ role: 'user', content })),
  )

/** An embedder that knows a vector for every text. */
const embedderOf = (name: string, vectorOf: (text: string) => readonly number[]): Embedder => ({
  name,
  embed: async (texts) => texts.map((text) => Float32Array.from(vectorOf(text))),
})

/** Knows what some words mean: animals, vehicles, and how much of each a text is about. */
const toy = embedderOf('toy', (text) =>
  [/cat|feline|kitten/i, /car|vehicle|automobile/i, /./].map(
    (words, axis) => (words.test(text) ? 1 : 0) * (axis === 2 ? 0.1 : 1),
  ),
)

const broken: Embedder = { name: 'toy', embed: () => Promise.reject(new Error('the embedder is out of order')) }

/** A promise, and what settles it. */
function settleable<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

/** An embedder that answers each of its calls, numbered from 0, when it is told to. */
function stepwise({ name, embed }: Embedder) {
  const steps: {
    asked: ReturnType<typeof settleable<readonly string[]>>
    released: ReturnType<typeof settleable<void>>
  }[] = []
  const step = (place: number) => {
    steps[place] ??= { asked: settleable(), released: settleable() }
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

/** What a search found, as the last word of each text. */
const wordsOf = (results: readonly { readonly entry: object }[]): string[] =>
  results.map(({ entry }) => ('content' in entry ? String(entry.content) : '').split(' ').at(-1) ?? '')

/** The vectors in a file: which entry, whose, how long. */
function vectorsIn(file: string): readonly string[] {
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
  /** Of different lengths, which must not matter. */
  const direction = (seed: number): number[] =>
    Array.from({ length: dimensions }, (_, at) => noise(seed, at) * (1 + (seed % 7)))
  const cosine = (a: readonly number[], b: readonly number[]): number =>
    a.reduce((sum, value, at) => sum + value * (b[at] as number), 0) / (Math.hypot(...a) * Math.hypot(...b))

  verifies(
    'A-13',
    'is exact: the nearest of thousands with their cosines, as plain arithmetic gives them',
    async () => {
      const count = 3_000
      const vectors = Array.from({ length: count }, (_, place) => [...Float32Array.from(direction(place))])
      const embedder = embedderOf('noise', (text) => vectors[Number(text)] as number[])
      // A summary of them all would want a vector of its own.
      await using memory = await openAt(fresh(), { embedder, upkeep: false })
      await say(memory, ...vectors.map((_, place) => `${place}`))
      expect(await memory.embedded({ settled: true })).toEqual({ model: 'noise', done: count, total: count })
      const property = fc.asyncProperty(
        fc.integer({ min: count, max: 1_000_000 }),
        fc.integer({ min: 1, max: 40 }),
        async (seed, limit) => {
          const query = direction(seed)
          const cosines = vectors.map((vector) => cosine(vector, query))
          const found = await memory.search('acme', { vector: query }, { limit })
          const best = [...cosines].sort((a, b) => b - a).slice(0, limit)
          expect(found).toHaveLength(limit)
          expect(new Set(wordsOf(found)).size).toBe(limit)
          for (const [rank, word] of wordsOf(found).entries()) {
            const score = found[rank]?.score as number
            // What 32 bits can tell apart is in order; each result has the cosine of its own vector.
            expect([
              Math.abs(score - (cosines[Number(word)] as number)) < 1e-6,
              Math.abs(score - (best[rank] as number)) < 1e-6,
            ]).toEqual([true, true])
          }
        },
      )
      await fc.assert(property, { numRuns: 25 })
    },
  )

  verifies('A-13', 'finds by a text what shares its meaning and none of its words, with the similarity', async () => {
    await using memory = await openAt(fresh(), { embedder: toy })
    await say(memory, 'My cat is called Miso', 'I drive an old automobile', 'It rains in Oslo')
    await memory.embedded({ settled: true })
    const [best, ...others] = await memory.search('acme', 'feline')
    expect(best).toMatchObject({
      key,
      entry: { id: 'm1', content: 'My cat is called Miso' },
      why: { meaning: expect.closeTo(1, 6) },
    })
    expect(others.map(({ entry, why }) => [entry.id, why.meaning])).toEqual([
      ['m3', expect.closeTo(0.0995, 4)],
      ['m2', expect.closeTo(0.0099, 4)],
    ])
    expect(wordsOf(await memory.search('acme', 'vehicle', { limit: 1 }))).toEqual(['automobile'])
    expect(await memory.search('zeta', 'feline')).toEqual([])
  })

  verifies(
    'A-13',
    'finds by a given vector without an embedder, after reopening, what the model named has embedded',
    async () => {
      const file = fresh()
      {
        await using memory = await openAt(file, { embedder: toy })
        await say(memory, 'A cat', 'A car', 'A cat in a car')
        await memory.embedded({ settled: true })
      }
      await using memory = await openAt(file)
      expect(await memory.embedded()).toBeUndefined()
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
    },
  )

  verifies(
    'A-01',
    'messages, derived entries and knowledge of a scope are in one file with their vectors, and found together',
    async () => {
      const file = fresh()
      {
        await using memory = await openAt(file, { embedder: toy })
        await say(memory, 'Miso is a cat', ' ')
        await memory.remember('acme', { category: 'user_preference', key: 'travel', value: 'prefers the car' })
        await memory.embedded({ settled: true })
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
      await using memory = await openAt(file, { embedder: toy })
      expect(await memory.embedded({ settled: true })).toEqual({ model: 'toy', done: 3, total: 3 })
      const found = await memory.search('acme', { vector: [1, 0, 0] })
      expect(found.map((hit) => [hit.key, hit.entry.kind, hit.score])).toEqual([
        ['acme:ann', 'message', expect.closeTo(0.995, 3)],
        ['acme:ann', 'fact', expect.closeTo(0.705, 3)],
        ['acme', 'knowledge', 0],
      ])
      expect(
        (await memory.search('acme', { vector: [0, 1, 0] }, { kinds: ['knowledge'] })).map(({ entry }) => entry.kind),
      ).toEqual(['knowledge'])
      expect(vectorsIn(file).map((row) => row.replace(/^\S{36}/, 'k'))).toEqual([
        'f1 fact toy 3 12',
        'k1 knowledge toy 3 12',
        'm1 message toy 3 12',
      ])
    },
  )
})

describe('an embedder', () => {
  const about = (text: string): number => (text.startsWith('cat') ? 1 : 0)
  /** What one calls near, the other calls far: comparing their vectors would find the wrong half. */
  const older = embedderOf('older', (text) => [about(text), 1 - about(text)])
  const newer = embedderOf('newer', (text) => [1 - about(text), about(text)])
  const texts = Array.from({ length: 100 }, (_, place) => `${place % 2 === 0 ? 'cat' : 'dog'} ${place}`)

  verifies(
    'A-13',
    'that is changed embeds everything again in the background, and its vectors are compared with no others',
    async () => {
      const file = fresh()
      {
        await using memory = await openAt(file, { embedder: older })
        await say(memory, ...texts)
        await memory.embedded({ settled: true })
      }
      const steps = stepwise(newer)
      await using memory = await openAt(file, { embedder: steps.embedder })
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
      expect(await memory.embedded()).toEqual({ model: 'newer', done: 0, total: 100 })
      expect([await near('older'), await near('newer')]).toEqual([
        { all: 100, right: 100 },
        { all: 0, right: 0 },
      ])
      steps.release(0)
      await steps.asked(1)
      expect(await memory.embedded()).toEqual({ model: 'newer', done: 64, total: 100 })
      expect([await near('older'), await near('newer')]).toEqual([
        { all: 36, right: 36 },
        { all: 64, right: 64 },
      ])
      steps.release(1)
      expect(await memory.embedded({ settled: true })).toEqual({ model: 'newer', done: 100, total: 100 })
      expect([await near('older'), await near('newer')]).toEqual([
        { all: 0, right: 0 },
        { all: 100, right: 100 },
      ])
    },
  )

  it('that fails leaves everything to be found by its words, and says so; a later opening catches up', async () => {
    const file = fresh()
    {
      await using memory = await openAt(file, { embedder: broken })
      await say(memory, 'My cat is called Miso')
      expect(await memory.embedded({ settled: true })).toEqual({
        model: 'toy',
        done: 0,
        total: 1,
        fault: 'the embedder is out of order',
      })
      expect(wordsOf(await memory.search('acme', 'what is my cat called?'))).toEqual(['Miso'])
      expect(await memory.search('acme', 'feline')).toEqual([])
      expect((await memory.context(key)).messages).toHaveLength(1)
    }
    await using memory = await openAt(file, { embedder: toy })
    expect(await memory.embedded({ settled: true })).toEqual({ model: 'toy', done: 1, total: 1 })
    expect(wordsOf(await memory.search('acme', 'feline'))).toEqual(['Miso'])
  })

  it('does not keep anybody waiting who stores or searches by words', async () => {
    const steps = stepwise(toy)
    await using memory = await openAt(fresh(), { embedder: steps.embedder })
    await say(memory, 'My cat is called Miso')
    expect(await steps.asked(0)).toEqual(['My cat is called Miso'])
    await say(memory, 'It rains')
    expect(await memory.transcript(key)).toHaveLength(2)
    expect(await memory.embedded()).toEqual({ model: 'toy', done: 0, total: 2 })
    steps.release(0)
    steps.release(1)
    expect(await memory.embedded({ settled: true })).toEqual({ model: 'toy', done: 2, total: 2 })
  })

  verifies('A-01', 'that answers late gives no vector to what was forgotten meanwhile', async () => {
    const file = fresh()
    const steps = stepwise(toy)
    await using memory = await openAt(file, { embedder: steps.embedder })
    await say(memory, 'The cat knows the code 1234', 'The car is red')
    await steps.asked(0)
    await memory.forget({ key, messageId: 'm1' })
    steps.release(0)
    expect(await memory.embedded({ settled: true })).toEqual({ model: 'toy', done: 1, total: 1 })
    expect(wordsOf(await memory.search('acme', { vector: [1, 0, 0] }))).toEqual(['red'])
    expect(vectorsIn(file)).toEqual(['m2 message toy 3 12'])
  })

  verifies(
    'A-01',
    'that answers late gives the vector of a forgotten session to none that begins in its place',
    async () => {
      const file = fresh()
      const steps = stepwise(toy)
      await using memory = await openAt(file, { embedder: steps.embedder })
      await say(memory, 'A cat')
      await steps.asked(0)
      await memory.forget({ key })
      await say(memory, 'A car')
      steps.release(0)
      await steps.asked(1)
      expect(vectorsIn(file)).toEqual([])
      steps.release(1)
      await memory.embedded({ settled: true })
      expect((await memory.search('acme', { vector: [0, 1, 0] })).map(({ entry, score }) => [entry.id, score])).toEqual(
        [['m1', expect.closeTo(0.995, 3)]],
      )
    },
  )

  it('has its vectors go with what is forgotten', async () => {
    const file = fresh()
    await using memory = await openAt(file, { embedder: toy })
    await say(memory, 'A cat', 'A car')
    await memory.remember('acme', { category: 'domain', key: 'pet', value: 'kitten' })
    await memory.embedded({ settled: true })
    expect(await memory.search('acme', { vector: [1, 0, 0] })).toHaveLength(3)
    await memory.forget({ key, messageId: 'm1' })
    expect((await memory.search('acme', { vector: [1, 0, 0] })).map(({ entry }) => entry.kind)).toEqual([
      'knowledge',
      'message',
    ])
    await memory.forget({ scope: 'acme' })
    expect([await memory.search('acme', { vector: [1, 0, 0] }), vectorsIn(file)]).toEqual([[], []])
  })
})
