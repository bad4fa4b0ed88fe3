import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import { key, newChange, newFact, newMessage } from '../../src/stores/conformance/fixtures.ts'
import { HeadCache } from '../../src/stores/sqlite/headCache.ts'
import { Reader } from '../../src/stores/sqlite/read.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { createTempPaths } from './tempPaths.ts'

const long = (word: string): string => `${word} `.repeat(400_000)

describe('large entries of a SQLite store', () => {
  const path = createTempPaths()()
  const [store, other] = [sqliteStore(path), sqliteStore(path)]
  afterAll(() => Promise.all([store.close(), other.close()]))
  const idsOf = async (from: typeof store) => {
    const { recent, derived } = await from.readHead(key, 9)
    return [...recent, ...derived].map(({ id }) => id)
  }

  it('read in several turns while another process erases some › are those of one state', async () => {
    const append = ['one', 'two', 'three', 'four', 'five'].map((word) => newMessage(long(word)))
    const put = ['f1', 'f2', 'f3', 'f4'].map((id) => newFact(id, long(id)))
    await store.commit(newChange('a', { append, put }))
    const all = ['m1', 'm2', 'm3', 'm4', 'm5', 'f1', 'f2', 'f3', 'f4']
    const left = all.filter((id) => id !== 'm2' && id !== 'f3')
    const [during] = await Promise.all([idsOf(other), store.erase(key, { entries: ['m2', 'f3'] })])
    expect([all, left]).toContainEqual(during)
    expect([await idsOf(store), await idsOf(other)]).toEqual([left, left])
    const messages = await other.readMessages(key, { limit: 9 })
    expect(messages.map(({ content }) => content)).toEqual(['one', 'three', 'four', 'five'].map(long))
  })

  it('erased by another process while they are loaded › are not kept', async () => {
    const database = new DatabaseSync(path, { readOnly: true })
    const cache = new HeadCache(new Reader(database, () => undefined))
    let queries = 0
    await cache.loadDerived(key, async (query) => {
      // The second query reads entries, the third others.
      if (++queries === 3) await store.erase(key, { entries: ['f1'] })
      return query()
    })
    expect(queries).toBeGreaterThan(3)
    expect(cache.head(key, 0).derived.map(({ id }) => id)).toEqual(['f2', 'f4'])
    database.close()
  })
})
