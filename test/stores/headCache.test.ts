import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { key, newChange, newFact, newMessage } from '../../src/stores/conformance/fixtures.ts'
import { connectReader } from '../../src/stores/sqlite/connect.ts'
import { HeadCache } from '../../src/stores/sqlite/headCache.ts'
import { Reader } from '../../src/stores/sqlite/read.ts'
import type { SessionRow } from '../../src/stores/sqlite/rows.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { createTempFolder } from '../fault/tempFolder.ts'

describe('HeadCache', () => {
  it('with long messages stays within its byte limit and returns the same cache', async () => {
    using folder = createTempFolder()
    const path = join(folder.path, 'heads.db')
    const store = sqliteStore(path)
    const keys = Array.from({ length: 20 }, (_, at) => parseKey(`acme:s${at}`))
    const change = { at: 1, epoch: 0, put: [], drop: [], expiresAt: noExpiry }
    for (const key of keys)
      await store.commit({ ...change, key, append: [newMessage('x'.repeat(10_000)), newMessage(key.id)] })
    await store.close()
    const database = connectReader(path, 'checked')
    const cache = new HeadCache(new Reader(database, () => expect.fail('damaged')), 50_000)
    for (const key of [...keys, ...keys]) {
      expect(cache.head(key, 2).recent.map(({ content }) => content.slice(0, 3))).toEqual(['xxx', key.id])
      expect(cache.bytes).toBeGreaterThan(10_000)
      expect(cache.bytes).toBeLessThanOrEqual(50_000)
    }
    for (const key of keys) cache.drop(key)
    expect(cache.bytes).toBe(0)
    database.close()
  })

  it('with derived entries that are put again and again counts the size of what it holds', async () => {
    using folder = createTempFolder()
    const path = join(folder.path, 'heads.db')
    const store = sqliteStore(path)
    const database = connectReader(path, 'checked')
    const reader = new Reader(database, () => expect.fail('damaged'))
    const [cache, fresh] = [new HeadCache(reader), new HeadCache(reader)]
    for (let round = 0; round < 20; round++) {
      const put = [newFact('f1', 'x'.repeat(100 * round)), newFact(`f${round}`, 'seal')]
      await store.commit(newChange(`${round}`, { put }))
      if (round > 0) cache.applyWrite(key, reader.session(key) as SessionRow, [], put)
      cache.head(key, 0)
    }
    expect(cache.head(key, 0)).toStrictEqual(fresh.head(key, 0))
    expect(cache.bytes).toBe(fresh.bytes)
    await store.close()
    database.close()
  })
})
