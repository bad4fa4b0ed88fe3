import { afterAll, describe, expect, it } from 'vitest'
import { formatKey, parseKey } from '../../../src/domain/key.ts'
import type { IndexHit, SearchIndex, Store } from '../../../src/domain/ports.ts'
import { newChange, newFact, newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { postgresStore } from '../../../src/stores/postgres.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { textAnalysis } from '../../../src/stores/textAnalysis.ts'
import { getPostgres } from '../../support/postgres.ts'

const dimensions = 8
const count = 60
/** Fixed numbers between -1 and 1, some of them tiny, negative or zero. */
const vectorOf = (seed: number): Float32Array =>
  Float32Array.from({ length: dimensions }, (_, at) =>
    at === seed % dimensions ? 0 : Math.sin(seed * 7.1 + at) / 10 ** (at % 3),
  )

async function fill(store: Store & SearchIndex): Promise<void> {
  for (const scope of ['acme', 'zeta'])
    for (const name of ['ann', 'bob']) {
      const key = parseKey(`${scope}:${name}`)
      const texts = Array.from({ length: count / 2 }, (_, at) => `walrus ${at} of ${formatKey(key)}`)
      await store.commit(
        newChange('1', { key, append: texts.map((text) => newMessage(text)), put: [newFact('f1', name)] }),
      )
      const entries = [...texts.map((text, at) => ({ id: `m${at + 1}`, text })), { id: 'f1', text: name }]
      const seed = `${scope}${name}`.length + scope.charCodeAt(0) + name.charCodeAt(0)
      await store.storeVectors(
        'e',
        entries.map(({ id, text }, at) => ({ key, id, epoch: 0, text, values: vectorOf(seed * 100 + at) })),
      )
    }
}

const summarize = (hits: readonly IndexHit[]): readonly string[] =>
  hits.map(
    ({ key, entry, score, why }) => `${formatKey(key)} ${entry.id} ${score.toFixed(5)} ${why.meaning?.toFixed(5)}`,
  )

describe('pgvector', () => {
  const opened = postgresStore('pglite:memory://', { maxExactVectors: 20 })
  afterAll(async () => (await opened).close())

  it('above the number of vectors to compare › finds the same entries with an index', async () => {
    const [store, ram] = [await opened, ramStore({ analysis: textAnalysis })]
    await fill(store)
    await fill(ram)
    const vector = { model: 'e', values: vectorOf(3) }
    const queries = [
      [{ scope: 'acme' }, { vector, limit: 10 }],
      [{ scope: 'acme' }, { vector, text: 'walrus 7', limit: 10 }],
      [parseKey('acme:bob'), { vector, limit: 5, before: 12 }],
      [{ scope: 'zeta' }, { vector, limit: 5, kinds: ['fact'] as const }],
      [{ scope: 'nobody' }, { vector, limit: 5 }],
    ] as const
    const searchAll = async (searched: SearchIndex): Promise<unknown> => {
      const results = []
      for (const [where, query] of queries) results.push(summarize(await searched.search(where, query)))
      return results
    }
    const exact = await searchAll(ram)
    expect(await searchAll(store)).toEqual(exact)
    const readIndexes = async () =>
      (await store.database.query("SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%hnsw%'"))[0]?.[0]
    await expect.poll(readIndexes, { timeout: 30_000 }).toBeGreaterThan(0)
    expect(await searchAll(store)).toEqual(exact)
  })

  it('after an entry was erased › no longer finds it', async () => {
    const store = await opened
    const search = async () =>
      (await store.search({ scope: 'acme' }, { vector: { model: 'e', values: vectorOf(3) }, limit: 1 }))[0]
    const best = await search()
    await store.erase(best?.key ?? parseKey('acme'), { entries: [best?.entry.id ?? ''] })
    expect((await search())?.entry.id).not.toBe(best?.entry.id)
  })
})

describe('a server without pgvector', () => {
  it('with vectors › is noticed once at open', async () => {
    const server = await getPostgres()
    const [available] = await server.administer("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")
    const url = await server.createDatabase()
    const warnings: string[] = []
    const open = () => postgresStore(url, { onWarning: (warning) => warnings.push(warning) })
    const first = await open()
    await fill(first)
    await first.close()
    expect(warnings).toEqual([])
    await (await open()).close()
    expect(warnings).toEqual(available === undefined ? [expect.stringMatching(/no pgvector.*CREATE EXTENSION/)] : [])
  })
})
