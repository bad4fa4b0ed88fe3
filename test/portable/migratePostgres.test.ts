import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect } from 'vitest'
import { formatMessageId } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import type { Embedder, SearchIndex, Store } from '../../src/domain/ports.ts'
import { openGraph } from '../../src/graph/graph.ts'
import { openMemory } from '../../src/index.ts'
import { internalsOf } from '../../src/memory.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { migrateStore } from '../../src/portable/migrate.ts'
import { openStore } from '../../src/stores/open.ts'
import { isCampaign } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { getPostgres } from '../support/postgres.ts'

const [sessions, messagesPerSession] = isCampaign ? [1_000, 100] : [11, 20]
const folder = mkdtempSync(join(tmpdir(), 'threadkeep-migrate-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Vectors that depend on the text. */
const embedder: Embedder = {
  name: 'digest-8',
  embed: async (texts) =>
    texts.map((text) => {
      const digest = createHash('sha256').update(text).digest()
      return Float32Array.from({ length: 8 }, (_, at) => digest.readInt32LE(at * 4) / 2 ** 31)
    }),
}

/** Fills a file with conversations, receipts, knowledge, vectors, rows and a graph. */
async function fill(url: string): Promise<void> {
  let now = 1_700_000_000_000
  await using memory = await openMemory({ store: url, embedder, clock: () => ++now })
  for (let session = 0; session < sessions; session++) {
    const key = `tenant${session % 5}:s${session}`
    const messages = Array.from({ length: messagesPerSession }, (_, at) => ({
      role: at % 2 === 0 ? ('user' as const) : ('assistant' as const),
      content: `Parcel ${session * 1_000 + at} of Zoë \u{1f4e6} is in bay ${(session * 7 + at) % 31}\u0000.`,
    }))
    await memory.append(key, messages)
    if (session % 10 === 0) {
      const receipt = { id: `rc_${session}`, at: now, body: JSON.stringify({ parcel: `${session}\u0000` }) }
      await internalsOf(memory).sessions.appendRecord(parseKey(key), receipt, 100)
    }
  }
  for (let scope = 0; scope < 5; scope++) {
    await memory.remember(`tenant${scope}`, { category: 'domain', key: 'opening hours', value: `nine to ${scope}` })
    await memory.table(`tenant${scope}`).put(['orders'], 'newest', Uint8Array.of(0, 255, scope))
  }
  await memory.table('rows-only').put([], 'lone', '\ud800')
  await memory.embeddingProgress({ settled: true })
  const graph = await openGraph(url)
  for (let at = 0; at < 10; at++)
    await graph.write('tenant1', { entities: [{ type: 'bay', id: `bay${at}`, properties: { row: at % 7 } }] })
  await graph.close()
}

async function hashExport(store: Store): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of exportBundle(store)) hash.update(chunk)
  return hash.digest('hex')
}

const vectorsOf = (store: SearchIndex) =>
  store.readVectors(parseKey('tenant1:s1'), [1, 2, messagesPerSession, messagesPerSession + 1].map(formatMessageId))

const receiptsOf = (store: Store) => store.records(parseKey('tenant0:s10'), { limit: 9 })

describe('migrateStore', () => {
  verifies(
    'T-17',
    'from SQLite to PostgreSQL and back › keeps messages, receipts, knowledge, graph, rows and vectors',
    async () => {
      const files = ['old.db', 'new.db'].map((name) => `sqlite:${join(folder, name)}`) as [string, string]
      await fill(files[0])
      const source = await openStore(files[0])
      const database = await openStore(await (await getPostgres()).createDatabase())
      const target = await openStore(files[1])
      const messages = sessions * messagesPerSession
      const result = await migrateStore(source, database)
      expect(result.messages).toBe(messages)
      expect(result.vectors).toBeGreaterThanOrEqual(messages)
      const back = await migrateStore(database, target)
      expect([back.messages, back.vectors]).toEqual([messages, result.vectors])
      expect(back.hashes).toEqual(result.hashes)
      expect(Object.keys(back.hashes)).toContain('rows-only')
      const hashes = await Promise.all([source, database, target].map(hashExport))
      expect(new Set(hashes).size).toBe(1)
      expect((await vectorsOf(source)).map((vector) => vector?.model)).toEqual([
        ...Array(3).fill(embedder.name),
        undefined,
      ])
      for (const store of [database, target]) {
        expect(await vectorsOf(store)).toEqual(await vectorsOf(source))
        expect(await receiptsOf(store)).toEqual([expect.objectContaining({ id: 'rc_10' })])
        expect(await store.countVectors(embedder.name)).toEqual(await source.countVectors(embedder.name))
      }
      expect((await migrateStore(source, target)).vectors).toBe(0)
      for (const store of [source, database, target]) await store.close()
    },
  )
})
