import { describe, expect } from 'vitest'
import type { Embedder } from '../../src/domain/ports.ts'
import { type Memory, openMemory, profiles } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from './tempPaths.ts'

const fresh = createTempPaths()
const topics = [
  'the walrus on the ice',
  'trains to Lisbon',
  'a cat called Miso',
  'the invoice of March',
  'rust on the old bridge',
  'tea with ginger',
]

/** Counts letters: a poor but deterministic embedder. */
const letters: Embedder = {
  name: 'letters',
  embed: async (texts) =>
    texts.map((text) => Float32Array.from('abcdefghijklmnop', (letter) => text.toLowerCase().split(letter).length)),
}

async function fillScope(memory: Memory, scope: string, seed: number): Promise<void> {
  for (let session = 0; session < 3; session++) {
    const messages = Array.from({ length: 12 }, (_, at) => {
      const topic = topics[(seed + session + at) % topics.length] as string
      return {
        role: at % 2 === 0 ? ('user' as const) : ('assistant' as const),
        content: `${topic}, number ${(seed * 7 + at) % 50}`,
        at: 1_000_000 * (at + 1),
      }
    })
    await memory.append(`${scope}:s${session}`, messages)
  }
  await memory.remember(scope, { category: 'domain', key: 'opening hours', value: `nine to ${seed % 12}` })
}

/** Serializes all search results and contexts of a tenant. */
async function readEverything(memory: Memory, scope: string): Promise<string> {
  await memory.embeddingProgress({ settled: true })
  const found = await Promise.all(topics.map((topic) => memory.search(scope, topic, { limit: 20 })))
  const contexts = []
  for (let session = 0; session < 3; session++) {
    for (const budget of [60, 200, 1_000])
      contexts.push(
        await memory.context(`${scope}:s${session}`, { query: 'what of the walrus and the invoice?', budget }),
      )
  }
  const inSession = await memory.search(scope, 'walrus', { session: 's1' })
  return JSON.stringify([found, contexts, inSession])
}

describe('a tenant with fifty others in the same file', () => {
  for (const profile of ['thread', 'agent', 'summary', 'handoff'] as const) {
    verifies('X-06', `with profile ${profile} gets the same bytes as alone`, async () => {
      const open = () =>
        openMemory({
          profile: profiles[profile],
          store: `sqlite:${fresh()}`,
          embedder: letters,
          clock: () => 50_000_000,
        })
      await using alone = await open()
      await fillScope(alone, 'acme', 3)
      await using shared = await open()
      for (let other = 0; other < 25; other++) await fillScope(shared, `tenant${other}`, other)
      await fillScope(shared, 'acme', 3)
      for (let other = 25; other < 50; other++)
        await fillScope(shared, other % 2 === 0 ? `acme${other}` : `acme-${other}`, other)
      const [aloneResult, sharedResult] = [await readEverything(alone, 'acme'), await readEverything(shared, 'acme')]
      expect(aloneResult).toContain('walrus')
      expect(sharedResult).toBe(aloneResult)
      // The other tenants have different data.
      expect(await readEverything(shared, 'tenant4')).not.toBe(sharedResult)
    })
  }
})
